"""The query log (EVA-3): what was asked, how it was answered, and later what became of it."""
