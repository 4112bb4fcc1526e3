"""Names that a partition tells apart, and what principals drew of their allowances."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from typing import cast

from pipelines.feedback.events.codec import Decoded
from pipelines.feedback.fold.names import (
    NAMING,
    OVERFLOW,
    Allowance,
    NameKind,
    Names,
    Naming,
    names_of,
    principal_fingerprint,
)
from pipelines.feedback.settings import LimitSettings
from pipelines.feedback.store import integrity
from pipelines.feedback.store.lookup import matching


def read_names(
    connection: sqlite3.Connection, limits: LimitSettings, events: Iterable[Decoded], principals: Iterable[str]
) -> Names:
    """What a store knows of the names in some events, and of some more principals."""
    names = Names(limits)
    fingerprints = {OVERFLOW, *map(principal_fingerprint, principals)}
    wanted: dict[NameKind, set[str]] = {kind: set() for kind in NameKind}
    for event in cast("Iterable[Naming]", [event for event in events if type(event) in NAMING]):
        for kind, name in names_of(event):
            wanted[kind].add(name)
    wanted[NameKind.PRINCIPAL] |= fingerprints
    for kind, some in wanted.items():
        count = connection.execute("select max(number) from names where kind = ?", (kind,)).fetchone()[0]
        names.counts[kind] = count or 0
        known = matching(connection, "select name from names where kind = ? and name in", some, kind)
        names.known.update((kind, name) for (name,) in known)
    for (day,) in connection.execute("select distinct day from allowances").fetchall():
        drawn = "select principal, micro from allowances where day = ? and principal in"
        for fingerprint, micro in matching(connection, drawn, fingerprints, day):
            names.allowances[day, fingerprint] = Allowance(micro)
    return names


def write_names(connection: sqlite3.Connection, names: Names) -> None:
    """What a batch changed."""
    connection.executemany("insert into names (kind, number, name) values (?, ?, ?)", names.new)
    drawn = [(*key, allowance.drawn) for key, allowance in names.allowances.items() if allowance.drawn]
    integrity.add(connection, "allowances", drawn)
    connection.executemany(
        "insert into overflow values (?, ?) on conflict do update set events = events + excluded.events",
        list(names.overflowed.items()),
    )


def overflow_in(connection: sqlite3.Connection) -> Mapping[str, int]:
    """How often a name was one too many, by kind."""
    return dict(connection.execute("select kind, events from overflow order by kind").fetchall())
