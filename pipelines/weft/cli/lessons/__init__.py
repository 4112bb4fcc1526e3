"""The commands of `weft lessons`."""
