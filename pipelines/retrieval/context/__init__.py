"""What surrounds a result, as far as the query and the confidence in it ask for (RET-16)."""
