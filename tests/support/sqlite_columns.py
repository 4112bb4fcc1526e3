"""Stores of earlier versions: tables without columns that came later."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from pipelines.feedback.store.rows import define_row_hash, protect


def without_column(file: Path, table: str, column: str) -> None:
    """Take a column, and what it holds, out of a table whose sum holds afterwards."""
    with contextlib.closing(sqlite3.connect(file)) as connection:
        define_row_hash(connection)
        for event in ("insert", "update", "delete"):
            connection.execute(f"drop trigger if exists check_{event}_{table}")
        connection.execute(f"alter table {table} drop column {column}")
        for sums in ("sums", "checks"):
            connection.execute(f"delete from {sums} where name = ?", (table,))
        protect(connection)
        connection.commit()
