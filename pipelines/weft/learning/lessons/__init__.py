"""What is believed of lessons, from what was said of them and what came of them (LES-2, LES-3, LES-4)."""
