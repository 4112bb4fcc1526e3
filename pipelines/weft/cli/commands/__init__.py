"""The commands of `weft`, a module each."""
