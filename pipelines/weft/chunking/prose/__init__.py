"""Documents with headings, plain text and records (ING-6, ING-10)."""
