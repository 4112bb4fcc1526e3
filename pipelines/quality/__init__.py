"""What speaks for a candidate: signals in [0, 1], and the score they make with their weights."""
