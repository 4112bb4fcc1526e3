"""The tables of sessions: overlays beside the shared evidence, and how one becomes part of it or leaves it again.

Always inside the caller's transaction. Moving evidence between overlay and shared tables is integer addition, so
that merging sessions in any order, and taking one out again, is exact to the bit (ARC-1).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from weft.catalog.overlays import SessionRows
from weft.domain.arrays import Floats
from weft.feedback.fold.names import Draw
from weft.feedback.fold.sessions import (
    OPEN,
    OverlayTallies,
    Phase,
    SessionChanges,
    SessionLifecycle,
    Sessions,
    Timeline,
    silence_ms,
)
from weft.feedback.settings import FeedbackSettings, LimitSettings, milliseconds
from weft.feedback.store.rows import Row, add_masses, columns_of, delete_rows
from weft.learning.evidence import Evidence, EvidenceKey
from weft.learning.observe.impressions import EXAMINATION
from weft.learning.parameters import SIGNAL, SURPLUS
from weft.learning.pooling.gathering import Path
from weft.learning.pooling.sessions import moments_among, observed_by
from weft.learning.pooling.shrinkage import Moments
from weft.learning.uses import UsageKey

# One rule for what settled sessions draw on allowances (LRN-3, LRN-20): of all that those of a principal said on a day,
# as large a share counts as its allowance leaves beside what was said outside of sessions. It follows from sums of
# integers alone, so the order of merges changes nothing, and of one that is unlearned nothing is left. What nobody can
# take out again is counted as it comes, up to the allowance (`updates`): that needs no sum for each principal.

_OF = "payer = ? and allowance = ? and day = ?"


def counted(connection: sqlite3.Connection, draws: Iterable[Draw], limits: LimitSettings) -> Evidence:
    """What settled sessions have in the shared evidence by some allowances: what counts, and the rest as surplus."""
    return Evidence.sum(_shared(connection, draw, limits.daily_of(draw.allowance)) for draw in draws)


def drawn_by_settled(connection: sqlite3.Connection, draws: Iterable[Draw]) -> set[Draw]:
    """Those allowances that settled sessions draw on."""
    if connection.execute("select 1 from merged_evidence limit 1").fetchone() is None:
        return set()
    here = f"select 1 from merged_evidence where {_OF} limit 1"  # noqa: S608 - names of ours
    return {draw for draw in draws if connection.execute(here, draw).fetchone()}


def forget_days(connection: sqlite3.Connection, oldest_day: int) -> None:
    """Forget what was drawn on days on which nothing more happens, where no remembered session may still change it."""
    for table in ("allowances", "merged_evidence"):
        remembered = (
            f"select 1 from overlay_draws where overlay_draws.day = {table}.day"  # noqa: S608 - names of ours
            f" and overlay_draws.payer = {table}.payer and overlay_draws.allowance = {table}.allowance"
        )
        delete_rows(connection, table, f"day < ? and not exists ({remembered})", (oldest_day,))
    connection.execute("delete from newcomers where since <= ?", (oldest_day,))


def _shared(connection: sqlite3.Connection, draw: Draw, daily: int) -> Evidence:
    drawn = dict(connection.execute(f"select merged, micro from allowances where {_OF}", draw))  # noqa: S608
    left, whole = max(0, daily - drawn.get(0, 0)), drawn.get(1, 0)
    rows = connection.execute(f"select {_KEY}, micro from merged_evidence where {_OF}", draw)  # noqa: S608
    all_of_it = {EvidenceKey(*key): micro for *key, micro in rows}
    if whole <= left:
        return Evidence(all_of_it)
    counts = {key: micro * left // whole for key, micro in all_of_it.items()}
    # Of clicks that do not count there is no trace: they stand beside what was shown, which counts as a whole.
    beside = {
        key._replace(parameter=SURPLUS + key.parameter): micro - counts[key]
        for key, micro in all_of_it.items()
        if key.parameter != EXAMINATION
    }
    return Evidence(counts | beside)


PENDING, SETTLED = 0, 1
"""Whose rows of an overlay are: the session's alone, or a part of the shared evidence."""

_TABLES = {
    "evidence": ("payer", "allowance", *EvidenceKey._fields),
    "usage": UsageKey._fields,
    "draws": Draw._fields,
}
"""What overlays hold: `overlay_evidence` and so on, behind the session's offset and whether it is settled."""
_READ = {"evidence": EvidenceKey._fields, "usage": UsageKey._fields}
_LIFE = ", ".join(SessionLifecycle._fields)


def lifecycle_of(row: tuple[object, ...]) -> SessionLifecycle:
    """A session from the columns that `select_lifecycles` names."""
    life = SessionLifecycle(*row)  # type: ignore[arg-type]  # the table's columns are the fields
    return life._replace(phase=Phase(life.phase))


def select_lifecycles(condition: str) -> str:
    """The statement that reads sessions."""
    return f"select {_LIFE} from sessions {condition}"  # noqa: S608 - names of ours


def write_sessions(connection: sqlite3.Connection, sessions: Sessions, drawn: Mapping[Draw, int]) -> None:
    """All evidence of a batch, what it drew outside of sessions, and everything that it did to sessions."""
    works, limits = [*sessions.forgotten, *sessions.works.values()], sessions.rules.limits
    moved = _moved(connection, works) | drawn_by_settled(connection, drawn)
    before = counted(connection, moved, limits)
    add_masses(connection, "allowances", [(*draw, 0, micro) for draw, micro in drawn.items()])
    for work in works:
        _move_stored(connection, work)
    frozen = sessions.tallies.freeze()
    settled = [(work.life, each) for work in works for each in work.settled]
    pending = [(work.life, work.pending) for work in works if work.pending is not None]
    for kind, overlays in ((SETTLED, settled), (PENDING, pending)):
        rows = _rows_of(overlays, frozen)
        for table, some in rows.items():
            add_masses(connection, f"overlay_{table}", [(session, kind, *row) for session, *row in some])
        if kind == SETTLED:
            _share(connection, {table: [row[1:] for row in some] for table, some in rows.items()}, sign=1)
    shared = frozen[sessions.shared.number] + counted(connection, moved, limits) - before
    for table, masses in (("evidence", shared.counts), ("usage", shared.usage)):
        _add(connection, table, [(*key, micro) for key, micro in masses.items()])
    for work in sessions.forgotten:
        for kind in (PENDING, SETTLED):
            _drop_rows(connection, work.life, kind)
        connection.execute("delete from sessions where offset = ?", (work.life.offset,))
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
        write_sessions(connection, closing, {})
    return closing.merges


def _works(connection: sqlite3.Connection, condition: str, values: Iterable[object]) -> list[SessionChanges]:
    return [SessionChanges(life) for life in _lives(connection, condition, values)]


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
    """What a session has `PENDING`, or `SETTLED`: what it brought, however much of it counts."""
    life = session_in(connection, session_id)
    if life is None:
        return Evidence()
    return Evidence(
        {EvidenceKey(*key): micro for *key, micro in _read(connection, life.offset, kind, "evidence")},
        {UsageKey(*key): micro for *key, micro in _read(connection, life.offset, kind, "usage")},
    )


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
        yield SessionRows(session, base, started_ms, *(_read(connection, offset, PENDING, table) for table in _READ))


def _read(connection: sqlite3.Connection, session: int, kind: int, table: str) -> list[tuple[Any, ...]]:
    """What a session has of evidence or usage, sorted, each key once, whoever pays for it."""
    key = ", ".join(_READ[table])
    select = f"select {key}, sum(micro) from overlay_{table} where session = ? and settled = ?"  # noqa: S608
    return connection.execute(f"{select} group by {key} order by {key}", (session, kind)).fetchall()


def _moved(connection: sqlite3.Connection, works: Sequence[SessionChanges]) -> set[Draw]:
    """The allowances on which settled sessions draw more, or less, after a batch."""
    moved = {draw for work in works for each in work.settled for draw in each.drawn}
    for work in works:
        for kind, moves in ((SETTLED, work.unlearn), (PENDING, work.settle)):
            if moves:
                moved |= {Draw(*row[:-1]) for row in _overlay_rows(connection, work.life.offset, kind, "draws")}
    return moved


def _move_stored(connection: sqlite3.Connection, work: SessionChanges) -> None:
    """What becomes of the rows that a session had before the batch."""
    offset = work.life.offset
    if work.unlearn:
        _share(connection, {table: _overlay_rows(connection, offset, SETTLED, table) for table in _TABLES}, sign=-1)
        _drop_rows(connection, work.life, SETTLED)
    if work.settle:
        rows = {table: _overlay_rows(connection, offset, PENDING, table) for table in _TABLES}
        _share(connection, rows, sign=1)
        for table, some in rows.items():
            add_masses(connection, f"overlay_{table}", [(offset, SETTLED, *row) for row in some])
    if work.settle or work.drop:
        _drop_rows(connection, work.life, PENDING)


def _share(connection: sqlite3.Connection, rows: Mapping[str, Sequence[Row]], *, sign: int) -> None:
    """Add rows of overlays to what all share, or take them out: at once, or where a share of them is counted."""
    signed = {table: [(*row[:-1], sign * row[-1]) for row in some] for table, some in rows.items()}
    _add(connection, "usage", signed["usage"])
    _add(connection, "evidence", [row[2:] for row in signed["evidence"] if not row[0]])
    _add(connection, "merged_evidence", [row for row in signed["evidence"] if row[0]])
    _add(connection, "allowances", [(*row[:-1], 1, row[-1]) for row in signed["draws"]])


def _add(connection: sqlite3.Connection, table: str, rows: Sequence[Row]) -> None:
    add_masses(connection, table, rows)
    # Evidence that was never there leaves no row behind.
    if taken := [row[:-1] for row in rows if row[-1] < 0]:
        here = " and ".join(f"{name} = ?" for name in columns_of(connection, table)[:-1])
        connection.executemany(f"delete from {table} where {here} and micro = 0", taken)  # noqa: S608 - names of ours


def _overlay_rows(connection: sqlite3.Connection, session: int, kind: int, table: str) -> list[tuple[Any, ...]]:
    return connection.execute(
        f"select {', '.join(_TABLES[table])}, micro from overlay_{table} where session = ? and settled = ?",  # noqa: S608
        (session, kind),
    ).fetchall()


def _rows_of(
    overlays: Iterable[tuple[SessionLifecycle, OverlayTallies]], frozen: Sequence[Evidence]
) -> dict[str, list[tuple[Any, ...]]]:
    """What a batch adds to overlays, the session's offset first."""
    rows: dict[str, list[tuple[Any, ...]]] = {table: [] for table in _TABLES}
    for life, overlay in overlays:
        for payer, tally in ((("", ""), overlay.free), *overlay.drawing.items()):
            evidence = frozen[tally.number]
            rows["evidence"] += [(life.offset, *payer, *key, micro) for key, micro in evidence.counts.items()]
            rows["usage"] += [(life.offset, *key, micro) for key, micro in evidence.usage.items()]
        rows["draws"] += [(life.offset, *draw, micro) for draw, micro in overlay.drawn.items()]
    return rows


def _drop_rows(connection: sqlite3.Connection, life: SessionLifecycle, kind: int) -> None:
    for table in _TABLES:
        delete_rows(connection, f"overlay_{table}", "session = ? and settled = ?", (life.offset, kind))


def _lives(connection: sqlite3.Connection, condition: str, values: Iterable[object]) -> list[SessionLifecycle]:
    return [lifecycle_of(row) for row in connection.execute(select_lifecycles(condition), tuple(values))]


_KEY = ", ".join(EvidenceKey._fields)
_SIGNALS = f"{SIGNAL}.", f"{SIGNAL}/"
"""What lies between holds every parameter of a signal and nothing else: "/" follows "." in ASCII."""
_ROWS = (
    f"select {_KEY}, sum(micro) from overlay_evidence"  # noqa: S608 - names of ours
    f" where session = ? and settled = ? and parameter >= ? and parameter < ? group by {_KEY}"
)
_NEWEST = "select offset, settled from sessions where settled > 0 order by heard desc limit ?"
_SESSIONS = 300  # that tell κ within a factor of two, each for some kilobytes of memory


class SessionVariance:
    """What was read of completed sessions, so that each is read once; not a function of the log, as bases are not."""

    def __init__(self) -> None:
        self._read: dict[tuple[int, int], Mapping[Path, Floats]] = {}

    def moments(self, connection: sqlite3.Connection) -> Moments:
        """Of the newest sessions that the shared evidence holds; inside the caller's transaction."""
        newest = connection.execute(_NEWEST, (_SESSIONS,)).fetchall()
        before = self._read
        self._read = {key: before[key] if key in before else _signals_of(connection, key[0]) for key in newest}
        return moments_among(self._read.values())


def _signals_of(connection: sqlite3.Connection, session: int) -> Mapping[Path, Floats]:
    rows = connection.execute(_ROWS, (session, SETTLED, *_SIGNALS))
    return observed_by(Evidence({EvidenceKey(*key): micro for *key, micro in rows}))
