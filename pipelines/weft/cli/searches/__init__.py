"""The commands that ask a store, and say what answers are worth."""
