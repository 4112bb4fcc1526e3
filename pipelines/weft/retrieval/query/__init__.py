"""What is searched for: the plan of a query, how it is understood, its second pass."""
