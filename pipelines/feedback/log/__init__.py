"""Reading the log: the port to it, and where each partition is read on from."""
