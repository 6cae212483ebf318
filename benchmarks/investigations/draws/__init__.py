"""Parts of ``draw_check``: approaches whose draws are right or wrong, and the tables that they meet."""
