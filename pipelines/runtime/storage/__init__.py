"""Files that last: atomic writes, locks, sealed folders, SQLite, DuckDB."""
