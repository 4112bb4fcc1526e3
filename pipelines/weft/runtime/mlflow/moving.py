"""Where a store's own MLflow keeps its files, put right after the store's folder has moved.

MLflow writes absolute places into its database. They lie below `mlflow/artifacts/` of the store, wherever that was when
they were written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sqlalchemy.engine import Connection, create_engine

from weft.runtime.mlflow.runs import uri_of
from weft.runtime.mlflow.tracking import mapped

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
    """Have MLflow's records in a store point into it; how many pointed elsewhere."""
    root = store.resolve()
    if not (root / "mlflow" / "mlflow.db").exists():
        return 0
    engine = create_engine(uri_of(root))
    try:
        with mapped(uri_of(root)), engine.begin() as connection:
            changes = list(_changes(connection, (root / "mlflow" / "artifacts").as_uri()))
            for table, column, row, place in changes:
                connection.exec_driver_sql(f"update {table} set {column} = ? where rowid = ?", (place, row))  # noqa: S608  ours
    finally:
        engine.dispose()
    return len(changes)


def _changes(connection: Connection, artifacts: str) -> Iterator[tuple[str, str, int, str]]:
    tables = set(connection.exec_driver_sql("select name from sqlite_master where type = 'table'").scalars())
    for table, column in _PLACES:
        if table not in tables:
            continue
        for row, place in connection.exec_driver_sql(f"select rowid, {column} from {table}").fetchall():  # noqa: S608  ours
            within = _BELOW_STORE.fullmatch(place or "")
            if within is None or (moved := f"{artifacts}/{within['place']}") == place:
                continue
            if _path_of(moved).exists() or not _path_of(place).exists():
                yield table, column, row, moved


def _path_of(place: str) -> Path:
    return Path(unquote(urlsplit(place).path))
