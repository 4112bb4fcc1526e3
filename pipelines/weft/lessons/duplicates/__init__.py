"""Which lessons are one, said in other words, and which contradict one another (LES-13)."""
