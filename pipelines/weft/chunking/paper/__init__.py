"""Papers in LaTeX, Markdown and JSON (ING-7)."""
