"""What is known to be right, and who says so (EVA-4)."""
