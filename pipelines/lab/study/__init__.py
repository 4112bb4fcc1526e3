"""Studies of learning: simulated users, and what their feedback is worth."""
