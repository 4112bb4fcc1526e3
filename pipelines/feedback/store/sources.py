"""Events that a partition applied, by source and type (FBK-12)."""

from __future__ import annotations

import sqlite3
from collections import Counter

from pipelines.feedback.fold.sources import Heard
from pipelines.feedback.store import integrity


def write_heard(connection: sqlite3.Connection, heard: Heard) -> None:
    """Add what a batch heard."""
    integrity.add(connection, "heard", [(*source, events) for source, events in heard.items()])


def heard_in(connection: sqlite3.Connection) -> Heard:
    """Everything that a partition heard."""
    rows = connection.execute("select kind, name, what, events from heard")
    return Counter({(kind, name, what): events for kind, name, what, events in rows})
