"""What outcomes say, as masses of the evidence table."""
