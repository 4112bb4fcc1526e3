"""The demonstration: what it indexes, who asks, and what it shows."""
