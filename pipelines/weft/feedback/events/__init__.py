"""What producers say and how it travels: events as bytes, producers, attribution, other formats."""
