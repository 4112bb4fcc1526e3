"""Evidence as integers, beliefs computed from it (ARC-1): pure mathematics, no clock, no files."""
