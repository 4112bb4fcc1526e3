"""What a night writes down: pictures, tables, a page of words."""
