"""What speaks for a candidate: signals in [0, 1]."""
