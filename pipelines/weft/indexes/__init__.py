"""Generations: immutable, complete sets of indexes over one corpus, built from parts and opened as one value."""
