"""From sources to a staged generation."""
