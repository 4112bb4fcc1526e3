"""Rows by many keys at once."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

_VARIABLES = 30_000  # SQLite takes 32,766 in one statement


def matching(
    connection: sqlite3.Connection, select: str, keys: Iterable[bytes | int | str], *before: bytes | int | str
) -> Iterator[Any]:
    """Rows whose column is one of some keys.

    Args:
        connection: Inside the caller's transaction.
        select: The statement up to and with its last word, `in`.
        keys: As many as there are.
        before: Values of the placeholders in `select`.
    """
    rest = iter(keys)
    while some := list(islice(rest, _VARIABLES)):
        yield from connection.execute(f"{select} ({','.join('?' * len(some))})", (*before, *some))
