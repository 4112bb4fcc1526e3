"""What must never be stored in a lesson: keys, tokens, passwords, and what leads to a person (LES-6)."""
