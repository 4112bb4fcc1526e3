"""Counts from elsewhere: four providers behind one interface, asked by the night where they are on (CIT-1)."""
