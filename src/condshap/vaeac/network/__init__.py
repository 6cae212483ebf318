"""The network itself: encoders and decoder, likelihoods of its outputs, and the bound that training maximises."""
