"""Problems of the studies: cells of designs, the Abalone rows, and the truth about them."""
