"""Source code, by its syntax tree (ING-5)."""
