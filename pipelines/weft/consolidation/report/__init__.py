"""What a person reviews of a night (CON-10): metrics, pictures, tables, and a page with examples and the decision."""
