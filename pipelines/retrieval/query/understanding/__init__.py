"""What a query asks for, from its words alone and from what came before it: pure functions (RET-1 … RET-6)."""
