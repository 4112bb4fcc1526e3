"""Where a store's own MLflow keeps its files, put right after the store's folder has moved.

MLflow writes absolute places into its database. They lie below `mlflow/artifacts/` of the store, wherever that was when
they were written.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pipelines.runtime.storage.errors import refused

_PLACES = (
    ("experiments", "artifact_location"),
    ("runs", "artifact_uri"),
    ("logged_models", "artifact_location"),
    ("model_versions", "source"),
    ("model_versions", "storage_location"),
)
"""Tables and columns that hold places."""

_BELOW_STORE = re.compile(r"file://(?P<store>/.*)/mlflow/artifacts/(?P<place>.*)")


def correct_places(store: Path) -> int:
    """Have MLflow's records in a store point into it; how many pointed elsewhere.

    All are changed at once or none is: a killed call is repeated. What is not below a store is left as it is, and so is
    what only the former place holds, as where a copy was used before its records were put right.

    Raises:
        StoreError: The database cannot be written.
    """
    root = store.resolve()
    database = root / "mlflow" / "mlflow.db"
    if not database.exists():
        return 0
    try:
        with closing(sqlite3.connect(database)) as connection, connection:
            changes = list(_changes(connection, (root / "mlflow" / "artifacts").as_uri()))
            for table, column, row, place in changes:
                connection.execute(f"update {table} set {column} = ? where rowid = ?", [place, row])  # noqa: S608  ours
    except sqlite3.Error as error:
        raise refused(database, error) from error
    return len(changes)


def _changes(connection: sqlite3.Connection, artifacts: str) -> Iterator[tuple[str, str, int, str]]:
    tables = {name for (name,) in connection.execute("select name from sqlite_master where type = 'table'")}
    for table, column in _PLACES:
        if table not in tables:
            continue
        for row, place in connection.execute(f"select rowid, {column} from {table}").fetchall():  # noqa: S608  ours
            within = _BELOW_STORE.fullmatch(place or "")
            if within is None or (moved := f"{artifacts}/{within['place']}") == place:
                continue
            if _path_of(moved).exists() or not _path_of(place).exists():
                yield table, column, row, moved


def _path_of(place: str) -> Path:
    return Path(unquote(urlsplit(place).path))
