"""The tables of parts: which of them count among all that is shared, decided anew whenever that may have changed.

Always inside the caller's transaction. Whether a part of a merged session counts follows from the state at the end of a
batch (see `quota`), never from its history. So the same sessions leave the same evidence, wherever batches begin and
whatever was merged or unlearned in between. What changes its mind moves between the parameters and their surplus as
integers.

A part outlives its session's memory. It can no longer be unlearned then, but it keeps its place in the order, and may
move up. It goes when no remembered session can add to its day any more.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from weft.feedback.fold.quota import QuotaSegment, QuotaSegments, as_surplus
from weft.feedback.fold.sessions import SessionChanges
from weft.feedback.settings import LimitSettings
from weft.feedback.store.rows import add_masses, delete_rows, matching
from weft.learning.evidence import Evidence, EvidenceKey
from weft.learning.uses import UsageKey

_TABLES = (("part_evidence", EvidenceKey._fields), ("part_usage", UsageKey._fields))
_OUTSIDE = -1
"""Stands for the session, and the offset, of what a principal said outside of sessions on a day that is over."""

_PENDING = {
    table: f"select {', '.join(f'{table}.{name}' for name in fields)}, {table}.micro from draws cross join {table}"  # noqa: S608
    f" on {table}.session = draws.session and {table}.part = draws.part where draws.session = ? and draws.settled = 0"
    for table, fields in _TABLES
}

Group = tuple[str, int, str]
"""Who draws, on which day, and on which allowance."""

_GROUP = "principal = ? and day = ? and allowance = ?"


class _Place(NamedTuple):
    """Where a part's rows are kept: its session's offset, and its number."""

    session: int
    part: int


def parts_of(connection: sqlite3.Connection, sessions: Iterable[int]) -> dict[int, QuotaSegments]:
    """What some sessions, by their offsets, draw on allowances."""
    select = (
        "select session, first, part, principal, day, allowance, settled, counted, micro from draws where session in"
    )
    parts: dict[int, QuotaSegments] = {}
    for row in sorted(matching(connection, select, sessions)):
        session, first, number, principal, day, allowance, settled, counted, micro = row
        part = QuotaSegment(number, principal, day, allowance, first, micro, bool(settled), bool(counted))
        of_session = parts.setdefault(session, QuotaSegments())
        (of_session.settled if settled else of_session.pending).append(part)
    return parts


def write_parts(
    connection: sqlite3.Connection,  # with the allowances as the batch leaves them
    works: Sequence[SessionChanges],  # what the batch does to sessions
    frozen: Sequence[Evidence],  # what it noted, by the numbers of tallies
    moved: Iterable[Group],  # whose allowances the batch drew on outside of sessions
    *,
    limits: LimitSettings,  # what allowances grant
) -> Evidence:
    """Write what a batch did to parts, and decide anew which ones count.

    Returns:
        What that adds to the shared evidence, or takes from it.
    """
    changes = [_delete(connection, work.life.offset, work.parts.gone) for work in works if work.parts.gone]
    touched = {_group(part) for work in works for part in work.parts.gone if part.was_settled}
    _write_draws(connection, works)
    for work in works:
        touched |= {_group(part) for part in work.parts.settled if part.tally is not None or not part.was_settled}
    touched |= _with_parts(connection, moved)
    decided = {
        place: counts
        for group in sorted(touched)
        for place, counts in _decide(connection, group, limits.daily_of(group[-1]))
    }
    grown: list[tuple[_Place, Evidence]] = []
    for work in works:
        for settled, parts in ((True, work.parts.settled), (False, work.parts.pending)):
            for part in parts:
                place, added = _Place(work.life.offset, part.number), _added(part, frozen)
                if settled:
                    counts = decided.pop(place, part.counted)
                    changes.append(_moved(connection, place, part, added, counts=counts))
                if part.tally is not None:
                    grown.append((place, added))
    _add_rows(connection, grown)
    for place, counts in decided.items():
        rows = _rows_of(connection, place)
        changes.append(_as(rows, counts=counts) - _as(rows, counts=not counts))
    return Evidence.sum(changes)


def parts_in(connection: sqlite3.Connection, session: int, *, settled: bool) -> Evidence:
    """What a session has in parts, pending or settled, those that do not count as they are kept then."""
    select = "select part, counted from draws where session = ? and settled = ? order by part"
    places = connection.execute(select, (session, settled)).fetchall()
    return Evidence.sum(
        _as(_rows_of(connection, _Place(session, part)), counts=bool(counted) or not settled)
        for part, counted in places
    )


def pending_rows(connection: sqlite3.Connection, table: str, session: int) -> Iterator[tuple[Any, ...]]:
    """Rows of "evidence" or "usage" in the parts that only a session reads."""
    return connection.execute(_PENDING[f"part_{table}"], (session,))


def drop_pending(connection: sqlite3.Connection, session: int) -> None:
    """Drop the parts that only a session reads."""
    pending = parts_of(connection, [session]).get(session, QuotaSegments()).pending
    _delete(connection, session, pending)


def forget_days(connection: sqlite3.Connection, oldest_day: int) -> None:
    """Forget allowances of days on which nothing more can happen outside of sessions, and parts that nothing can move.

    What was drawn is kept as a part, ahead of all others, where sessions may still be merged or unlearned.
    """
    connection.execute(
        "insert into draws (principal, day, allowance, first, part, session, settled, counted, micro)"
        " select principal, day, allowance, ?, 0, ?, 1, 1, micro from allowances where day < ? and exists"
        " (select 1 from draws where draws.principal = allowances.principal and draws.day = allowances.day"
        " and draws.allowance = allowances.allowance)"
        " on conflict do update set micro = draws.micro + excluded.micro",
        (_OUTSIDE, _OUTSIDE, oldest_day),
    )
    delete_rows(connection, "allowances", "day < ?", (oldest_day,))
    connection.execute("delete from newcomers where since <= ?", (oldest_day,))
    over = (
        "select draws.principal, day, allowance from draws left join sessions on sessions.offset = draws.session"
        " where day < ? group by draws.principal, day, allowance having count(sessions.offset) = 0"
    )
    for group in connection.execute(over, (oldest_day,)).fetchall():
        here = f"select session, part from draws where {_GROUP}"  # noqa: S608 - names of ours
        for place in connection.execute(here, group).fetchall():
            _delete_rows(connection, _Place(*place))
        connection.execute(f"delete from draws where {_GROUP}", group)  # noqa: S608


def _group(part: QuotaSegment) -> Group:
    return part.principal, part.day, part.allowance


def _added(part: QuotaSegment, frozen: Sequence[Evidence]) -> Evidence:
    return Evidence() if part.tally is None else frozen[part.tally.number]


def _as(evidence: Evidence, *, counts: bool) -> Evidence:
    return evidence if counts else as_surplus(evidence)


def _moved(
    connection: sqlite3.Connection, place: _Place, part: QuotaSegment, added: Evidence, *, counts: bool
) -> Evidence:
    """What a settled part changes of the shared evidence: what the batch adds, and all of it where its mark moved."""
    if part.was_settled and part.counted == counts:
        return _as(added, counts=counts)
    before = Evidence() if part.was_settled is None else _rows_of(connection, place)
    taken = _as(before, counts=part.counted) if part.was_settled else Evidence()
    return _as(before + added, counts=counts) - taken


def _write_draws(connection: sqlite3.Connection, works: Sequence[SessionChanges]) -> None:
    """Parts as the batch leaves them; those that it settles do not count before that was decided."""
    rows = [
        (*_group(part), part.first, part.number, work.life.offset, settled, part.micro)
        for work in works
        for settled, parts in ((1, work.parts.settled), (0, work.parts.pending))
        for part in parts
        if part.tally is not None or part.was_settled != bool(settled)
    ]
    connection.executemany(
        "insert into draws (principal, day, allowance, first, part, session, settled, counted, micro)"
        " values (?, ?, ?, ?, ?, ?, ?, 0, ?)"
        " on conflict do update set settled = excluded.settled, micro = excluded.micro",
        rows,
    )


def _with_parts(connection: sqlite3.Connection, moved: Iterable[Group]) -> set[Group]:
    """Those of some groups that have settled parts."""
    if connection.execute("select 1 from draws limit 1").fetchone() is None:
        return set()
    days: dict[tuple[int, str], set[str]] = {}
    for principal, day, allowance in moved:
        days.setdefault((day, allowance), set()).add(principal)
    select = "select distinct principal from draws where day = ? and allowance = ? and settled = 1 and principal in"
    return {(who, *of) for of, some in days.items() for (who,) in matching(connection, select, some, *of)}


def _decide(connection: sqlite3.Connection, group: Group, allowance: int) -> Iterator[tuple[_Place, bool]]:
    """Decide which parts of a principal's day count; those that change their mind."""
    outside = f"select micro from allowances where {_GROUP}"  # noqa: S608 - names of ours
    drawn = sum(micro for (micro,) in connection.execute(outside, group))
    rows = connection.execute(
        f"select first, part, session, counted, micro from draws where {_GROUP} and settled = 1"  # noqa: S608
        " order by first, part",
        group,
    )
    changed: list[tuple[int, int, int, bool]] = []
    last = (_OUTSIDE, _OUTSIDE)
    for first, part, session, counted, micro in rows:
        if drawn >= allowance and session != _OUTSIDE:
            break
        drawn, last = drawn + micro, (first, part)
        if not counted:
            changed.append((first, part, session, True))
    beyond = (
        f"select first, part, session from draws indexed by draws_counted where {_GROUP}"  # noqa: S608
        " and counted = 1 and session <> ? and (first, part) > (?, ?)"
    )
    changed += [(*row, False) for row in connection.execute(beyond, (*group, _OUTSIDE, *last))]
    for first, part, session, counts in changed:
        mark = f"update draws set counted = ? where {_GROUP} and first = ? and part = ?"  # noqa: S608
        connection.execute(mark, (counts, *group, first, part))
        yield _Place(session, part), counts


def _delete(connection: sqlite3.Connection, session: int, gone: Iterable[QuotaSegment]) -> Evidence:
    """Delete parts; what that changes about the shared evidence."""
    taken = []
    for part in gone:
        place = _Place(session, part.number)
        if part.was_settled:
            taken.append(_as(_rows_of(connection, place), counts=part.counted))
        _delete_rows(connection, place)
        connection.execute("delete from draws where session = ? and part = ?", place)
    return Evidence() - Evidence.sum(taken)


def _rows_of(connection: sqlite3.Connection, place: _Place) -> Evidence:
    counts, usage = (
        connection.execute(f"select {', '.join(fields)}, micro from {table} where session = ? and part = ?", place)  # noqa: S608
        for table, fields in _TABLES
    )
    return Evidence(
        {EvidenceKey(*key): micro for *key, micro in counts}, {UsageKey(*key): micro for *key, micro in usage}
    )


def _add_rows(connection: sqlite3.Connection, grown: Sequence[tuple[_Place, Evidence]]) -> None:
    counts = [(*place, *key, micro) for place, evidence in grown for key, micro in evidence.counts.items()]
    usage = [(*place, *key, micro) for place, evidence in grown for key, micro in evidence.usage.items()]
    add_masses(connection, "part_evidence", counts)
    add_masses(connection, "part_usage", usage)


def _delete_rows(connection: sqlite3.Connection, place: _Place) -> None:
    for table, _ in _TABLES:
        delete_rows(connection, table, "session = ? and part = ?", place)
