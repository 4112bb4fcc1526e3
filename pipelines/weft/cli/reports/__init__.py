"""What evaluations found, measured and shown for people and machines."""
