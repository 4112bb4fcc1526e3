"""Values only: what weft talks about. No I/O, no clock, no randomness."""
