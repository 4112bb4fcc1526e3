"""Plumbing: one SDK per module, so that everything above stays free of them."""
