"""Every approach on real tables, in a half to tune on and a half that nobody looked at meanwhile."""
