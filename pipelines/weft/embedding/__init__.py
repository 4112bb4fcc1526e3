"""Texts to vectors: the encoder, its tokens, and the cache that spares it work."""
