"""The ways to produce ranked candidates; all of them search the same generation (RET-7)."""
