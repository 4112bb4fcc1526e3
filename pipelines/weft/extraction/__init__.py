"""Entities in texts: a bundled zero-shot recogniser, and its training."""
