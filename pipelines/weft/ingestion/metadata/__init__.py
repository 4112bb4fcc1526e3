"""Facts about documents: declared, from repositories, by kind of source."""
