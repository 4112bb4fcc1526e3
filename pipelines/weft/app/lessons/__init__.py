"""Lessons for people and agents: commands, the table that hooks read, and the hook itself (LES-10)."""
