"""A partition's state on disk; the one room that knows SQL."""
