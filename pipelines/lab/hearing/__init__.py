"""Hearing what people say of lessons: labelled turns, and the heads that are trained on them."""
