"""What a night looks after in what is remembered: near-duplicates, and contents that say opposite things, and links."""
