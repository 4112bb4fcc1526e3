"""How people and programs reach weft: the command line."""
