"""The craft of lessons: what makes a good one, when it is of use, what came of it. Pure: no I/O, no clock (LES)."""
