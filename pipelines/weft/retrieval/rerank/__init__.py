"""Stage 3: the best candidates are looked at again, more closely than a whole corpus could be."""
