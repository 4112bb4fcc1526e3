"""Lucene through Pyserini: building it, searching it, its words."""
