"""Runs, measures and what a difference between them is worth."""
