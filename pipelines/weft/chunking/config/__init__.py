"""Configuration files, by their keys (ING-9)."""
