"""Files that last: atomic writes, locks, folders with a manifest, SQLite, DuckDB."""
