"""What the live generation holds already, and need not be made again."""
