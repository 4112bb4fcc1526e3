"""Updaters at work: the loop, its actors, what watches it and what it reports."""
