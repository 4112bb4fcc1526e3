"""Conversations: sessions, topics, questions with their answers (ING-8)."""
