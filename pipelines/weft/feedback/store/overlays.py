"""The tables of sessions: overlays beside the shared evidence, and how one becomes part of it or leaves it again.

Always inside the caller's transaction. Moving evidence between overlay and shared tables is integer addition, so
that merging sessions in any order, and taking one out again, is exact to the bit (ARC-1).
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from weft.catalog.overlays import SessionRows
from weft.domain.arrays import Floats
from weft.feedback.fold.quota import QuotaSegments
from weft.feedback.fold.sessions import (
    OPEN,
    Phase,
    SessionChanges,
    SessionLifecycle,
    Sessions,
    Timeline,
    silence_ms,
)
from weft.feedback.settings import FeedbackSettings, milliseconds
from weft.feedback.store.quota_store import Group, drop_pending, parts_in, parts_of, pending_rows, write_parts
from weft.feedback.store.rows import add_masses, delete_rows
from weft.learning.evidence import Evidence, EvidenceKey
from weft.learning.parameters import SIGNAL
from weft.learning.pooling.gathering import Path
from weft.learning.pooling.sessions import moments_among, observed_by
from weft.learning.pooling.shrinkage import Moments
from weft.learning.uses import UsageKey

PENDING, SETTLED = 0, 1
"""Whose rows of an overlay are: the session's alone, or a part of the shared evidence."""

_TABLES = (("evidence", EvidenceKey._fields), ("usage", UsageKey._fields))
_LIFE = ", ".join(SessionLifecycle._fields)


def lifecycle_of(row: tuple[object, ...]) -> SessionLifecycle:
    """A session from the columns that `select_lifecycles` names."""
    life = SessionLifecycle(*row)  # type: ignore[arg-type]  # the table's columns are the fields
    return life._replace(phase=Phase(life.phase))


def select_lifecycles(condition: str) -> str:
    """The statement that reads sessions."""
    return f"select {_LIFE} from sessions {condition}"  # noqa: S608 - names of ours


def add_evidence(connection: sqlite3.Connection, evidence: Evidence) -> None:
    """Add to what all share, or take from it."""
    for (table, fields), rows in zip(_TABLES, _rows_of(evidence), strict=True):
        _add_to_shared(connection, table, fields, rows)


def write_sessions(connection: sqlite3.Connection, sessions: Sessions, moved: Iterable[Group]) -> None:
    """All evidence of a batch, and everything that it did to sessions."""
    works = [*sessions.forgotten, *sessions.works.values()]
    for work in works:
        _move_stored(connection, work)
    frozen = sessions.tallies.freeze()
    settled = [(work.life, Evidence.sum(frozen[each.number] for each in work.settled)) for work in works]
    pending = [(work.life, frozen[work.pending.number]) for work in works if work.pending is not None]
    of_parts = write_parts(connection, works, frozen, moved, limits=sessions.rules.limits)
    shared = [frozen[sessions.shared.number], of_parts, *(evidence for _, evidence in settled)]
    add_evidence(connection, Evidence.sum(shared))
    _add_rows(connection, SETTLED, settled)
    _add_rows(connection, PENDING, pending)
    for work in sessions.forgotten:
        _delete(connection, work.life)
    connection.executemany(
        f"insert or replace into sessions ({_LIFE}) values ({', '.join('?' * len(SessionLifecycle._fields))})",  # noqa: S608
        sessions.ended(),
    )


def close_sessions(
    connection: sqlite3.Connection, timeline: Timeline, *, next_offset: int, clock_ms: int, rules: FeedbackSettings
) -> int:
    """Merge sessions that fell silent, and delete those that are forgotten; how many were merged."""
    closing = Sessions(rules, timeline=timeline)
    # Who was heard of later was heard of at a later clock: the first one to remember says how far to look.
    remembered = "select heard from sessions where heard_ms >= ? order by heard limit 1"
    first = connection.execute(remembered, (clock_ms - milliseconds(rules.time.session_remembered_s),)).fetchone()
    oldest = max(next_offset - rules.limits.session_records, first[0] if first else next_offset)
    for work in _works(connection, "where heard < ?", (oldest,)):
        closing.forget(work)
    for phase in OPEN:
        silent = "where phase = ? and heard_ms < ? and heard >= ?"
        for work in _works(connection, silent, (phase, clock_ms - silence_ms(phase, rules), oldest)):
            closing.works[work.life.session] = work
            closing.expire(work)
    if closing.works or closing.forgotten:
        write_sessions(connection, closing, ())
    return closing.merges


def _works(connection: sqlite3.Connection, condition: str, values: Iterable[object]) -> list[SessionChanges]:
    """Sessions to change, with what they draw on allowances."""
    lifecycles = _lives(connection, condition, values)
    parts = parts_of(connection, [life.offset for life in lifecycles])
    return [SessionChanges(life, parts=parts.get(life.offset, QuotaSegments())) for life in lifecycles]


def sessions_in(connection: sqlite3.Connection) -> list[SessionLifecycle]:
    """Every session that the partition remembers, the one heard of longest ago first."""
    return _lives(connection, "order by heard", ())


def session_in(connection: sqlite3.Connection, session_id: str) -> SessionLifecycle | None:
    """A session; None where the partition does not remember it."""
    return next(iter(_lives(connection, "where session = ?", (session_id,))), None)


def merge_report_in(connection: sqlite3.Connection, session_id: str) -> str | None:
    """What the last merge of a session met, as JSON; None where nobody reported it."""
    row = connection.execute(
        "select report from session_forks join sessions on sessions.offset = session_forks.session"
        " where sessions.session = ?",
        (session_id,),
    ).fetchone()
    return row[0] if row else None


def overlay_in(connection: sqlite3.Connection, session_id: str, kind: int) -> Evidence:
    """What a session has `PENDING`, or `SETTLED`: just what unlearning it takes out of the shared evidence.

    Nothing where it is not remembered.
    """
    life = session_in(connection, session_id)
    if life is None:
        return Evidence()
    counts, usage = (_overlay_rows(connection, life.offset, kind, table, fields) for table, fields in _TABLES)
    overlay = Evidence(
        {EvidenceKey(*key): micro for *key, micro in counts}, {UsageKey(*key): micro for *key, micro in usage}
    )
    return overlay + parts_in(connection, life.offset, settled=kind == SETTLED)


class Fork(NamedTuple):
    """What a session forked from."""

    session: int  # the session's offset
    life: SessionLifecycle | None  # none where the session is no longer remembered
    base: str  # empty where there is none yet, or none any more
    started_ms: int  # of the start that it forked at
    settled: int  # events that it had settled before
    report: str | None  # what its last merge met, as JSON


def has_forks(connection: sqlite3.Connection) -> bool:
    """Whether a session is open, or was when the last snapshot was published."""
    (exists,) = connection.execute(
        "select exists (select 1 from sessions where phase in (?, ?))"
        " or exists (select 1 from session_forks where base <> '')",
        OPEN,
    ).fetchone()
    return bool(exists)


def forks_in(connection: sqlite3.Connection, lost: Sequence[str], *, at_most: int) -> list[Fork]:
    """Sessions whose fork is not what it has to be, the oldest first: started since, ended since, or of a lost base."""
    columns = ", ".join(f"sessions.{name}" for name in SessionLifecycle._fields)
    rows = connection.execute(
        f"select session_forks.session, base, session_forks.started_ms, session_forks.settled, report, {columns}"  # noqa: S608
        " from session_forks left join sessions on sessions.offset = session_forks.session"
        " where base <> '' and coalesce(phase not in (?, ?), true)"
        f" union all select sessions.offset, coalesce(base, ''), 0, 0, report, {columns} from sessions"
        " left join session_forks on sessions.offset = session_forks.session where phase in (?, ?) and"
        # It may have ended and started again since the last time, even within a millisecond.
        " (coalesce(base, '') = '' or session_forks.started_ms <> sessions.started_ms"
        f" or session_forks.settled <> sessions.settled or base in ({', '.join('?' * len(lost))})) limit ?",
        (*OPEN, *OPEN, *lost, at_most),
    )
    return [Fork(row[0], None if row[5] is None else lifecycle_of(row[5:]), *row[1:5]) for row in rows]


def bases_in(connection: sqlite3.Connection) -> list[str]:
    """What sessions forked from, sorted; of those that ended, until `write_forks` says so."""
    rows = connection.execute("select distinct base from session_forks where base <> '' order by base")
    return [base for (base,) in rows]


def write_forks(connection: sqlite3.Connection, forks: Iterable[Fork]) -> None:
    """Keep what changed about forks; those of sessions that are no longer remembered go."""
    for fork in forks:
        if fork.life is None:
            connection.execute("delete from session_forks where session = ?", (fork.session,))
        else:
            connection.execute(
                "insert or replace into session_forks values (?, ?, ?, ?, ?)",
                (fork.session, fork.base, fork.started_ms, fork.settled, fork.report),
            )


def open_sessions_in(connection: sqlite3.Connection) -> Iterator[SessionRows]:
    """Every open session that has a base, with what it has pending, in the order of their starts, one at a time."""
    sessions = connection.execute(
        "select sessions.offset, sessions.session, base, sessions.started_ms from sessions"
        " join session_forks on session_forks.session = sessions.offset where phase in (?, ?) and base <> ''"
        " order by sessions.offset",
        OPEN,
    )
    for offset, session, base, started_ms in sessions:
        yield SessionRows(session, base, started_ms, *(_pending(connection, offset, *table) for table in _TABLES))


def _pending(connection: sqlite3.Connection, session: int, table: str, fields: Sequence[str]) -> list[tuple[Any, ...]]:
    """What only a session reads, sorted, each key once."""
    masses: Counter[tuple[Any, ...]] = Counter()
    rows = _overlay_rows(connection, session, PENDING, table, fields)
    for *key, micro in chain(rows, pending_rows(connection, table, session)):
        masses[tuple(key)] += micro
    return [(*key, micro) for key, micro in sorted(masses.items())]


def _move_stored(connection: sqlite3.Connection, work: SessionChanges) -> None:
    """What becomes of the rows that a session had before the batch."""
    life = work.life
    if work.unlearn:
        _move_into_shared(connection, life, SETTLED, sign=-1)
        _drop_rows(connection, life, SETTLED)
    if work.settle:
        _move_into_shared(connection, life, PENDING, sign=1)
        _settle_rows(connection, life)
    if work.settle or work.drop:
        _drop_rows(connection, life, PENDING)


def _move_into_shared(connection: sqlite3.Connection, life: SessionLifecycle, kind: int, *, sign: int) -> None:
    for table, fields in _TABLES:
        rows = [(*key, sign * micro) for *key, micro in _overlay_rows(connection, life.offset, kind, table, fields)]
        _add_to_shared(connection, table, fields, rows)


def _add_to_shared(
    connection: sqlite3.Connection, table: str, fields: Sequence[str], rows: Sequence[tuple[Any, ...]]
) -> None:
    add_masses(connection, table, rows)
    # Evidence that was never there leaves no row behind.
    if taken := [row[:-1] for row in rows if row[-1] < 0]:
        here = " and ".join(f"{name} = ?" for name in fields)
        connection.executemany(f"delete from {table} where {here} and micro = 0", taken)  # noqa: S608 - names of ours


def _settle_rows(connection: sqlite3.Connection, life: SessionLifecycle) -> None:
    for table, fields in _TABLES:
        rows = _overlay_rows(connection, life.offset, PENDING, table, fields)
        add_masses(connection, f"overlay_{table}", [(life.offset, SETTLED, *row) for row in rows])


def _overlay_rows(
    connection: sqlite3.Connection, session: int, kind: int, table: str, fields: Sequence[str]
) -> list[tuple[Any, ...]]:
    return connection.execute(
        f"select {', '.join(fields)}, micro from overlay_{table} where session = ? and settled = ?",  # noqa: S608
        (session, kind),
    ).fetchall()


def _add_rows(connection: sqlite3.Connection, kind: int, overlays: Iterable[tuple[SessionLifecycle, Evidence]]) -> None:
    by_session = [(life.offset, _rows_of(evidence)) for life, evidence in overlays if not evidence.is_empty]
    for index, (table, _) in enumerate(_TABLES):
        rows = [(offset, kind, *row) for offset, some in by_session for row in some[index]]
        add_masses(connection, f"overlay_{table}", rows)


def _rows_of(evidence: Evidence) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    counts = [(*key, micro) for key, micro in evidence.counts.items()]
    return counts, [(*key, micro) for key, micro in evidence.usage.items()]


def _drop_rows(connection: sqlite3.Connection, life: SessionLifecycle, kind: int) -> None:
    for table, _ in _TABLES:
        delete_rows(connection, f"overlay_{table}", "session = ? and settled = ?", (life.offset, kind))


def _delete(connection: sqlite3.Connection, life: SessionLifecycle) -> None:
    _drop_rows(connection, life, PENDING)
    _drop_rows(connection, life, SETTLED)
    drop_pending(connection, life.offset)
    connection.execute("delete from sessions where offset = ?", (life.offset,))


def _lives(connection: sqlite3.Connection, condition: str, values: Iterable[object]) -> list[SessionLifecycle]:
    return [lifecycle_of(row) for row in connection.execute(select_lifecycles(condition), tuple(values))]


_KEY = ", ".join(EvidenceKey._fields)
_SIGNALS = f"{SIGNAL}.", f"{SIGNAL}/"
"""What lies between holds every parameter of a signal and nothing else: "/" follows "." in ASCII."""
_ROWS = (
    f"select {_KEY}, micro from overlay_evidence"  # noqa: S608 - names of ours
    " where session = ? and settled = ? and parameter >= ? and parameter < ?"
)
_KEY_OF_PART = ", ".join(f"part_evidence.{name}" for name in EvidenceKey._fields)
_COUNTED = (
    f"select {_KEY_OF_PART}, sum(part_evidence.micro) from draws join part_evidence using (session, part)"  # noqa: S608
    " where session = ? and settled = ? and counted = 1 and parameter >= ? and parameter < ?"
    f" group by {_KEY_OF_PART}"
)
_NEWEST = (
    "select offset, settled, (select coalesce(sum(micro), 0) from draws where session = offset and counted = 1)"
    " from sessions where settled > 0 order by heard desc limit ?"
)
_SESSIONS = 300  # that tell κ within a factor of two, each for some kilobytes of memory


class SessionVariance:
    """What was read of completed sessions, so that each is read once; not a function of the log, as bases are not."""

    def __init__(self) -> None:
        self._read: dict[tuple[int, int, int], Mapping[Path, Floats]] = {}

    def moments(self, connection: sqlite3.Connection) -> Moments:
        """Of the newest sessions that the shared evidence holds; inside the caller's transaction."""
        newest = connection.execute(_NEWEST, (_SESSIONS,)).fetchall()
        before = self._read
        self._read = {key: before[key] if key in before else _signals_of(connection, key[0]) for key in newest}
        return moments_among(self._read.values())


def _signals_of(connection: sqlite3.Connection, session: int) -> Mapping[Path, Floats]:
    rows = [connection.execute(select, (session, SETTLED, *_SIGNALS)) for select in (_ROWS, _COUNTED)]
    return observed_by(Evidence.sum(Evidence({EvidenceKey(*key): micro for *key, micro in some}) for some in rows))
