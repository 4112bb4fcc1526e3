"""Partial pooling: what scopes take from one another, and the weights that follow."""
