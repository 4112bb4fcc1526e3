"""Simulated users, and what learning from them is worth (EVA-6)."""
