"""What each feature is worth: every one off in turn (EVA-9)."""
