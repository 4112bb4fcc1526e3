"""The stages that units pass through, and what they leave on disk."""
