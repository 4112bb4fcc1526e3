"""Vectors and token embeddings, and the search over them."""
