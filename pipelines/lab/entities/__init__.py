"""How the bundled recogniser is trained, measured and exported; nothing here runs while indexing."""
