"""From channels' rankings to one score per candidate. No I/O."""
