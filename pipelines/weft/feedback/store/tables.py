"""What a partition's tables say, and how a change is written into them; always inside the caller's transaction."""

from __future__ import annotations

import contextlib
import hashlib
import math
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple, cast

import msgspec
import pyarrow as pa

from weft.domain.events import Feedback, Impression, SessionPhase
from weft.domain.ids import principal_fingerprint
from weft.feedback.events.codec import Decoded
from weft.feedback.fold.batch import (
    Arrivals,
    BatchState,
    Change,
    DeadLetter,
    Fate,
    LogMoment,
    PartitionClock,
    PendingFeedback,
    PendingImpression,
    answers_of,
    unlearns,
)
from weft.feedback.fold.names import (
    NAMING,
    NEWCOMERS,
    OVERFLOW,
    Allowance,
    NameKind,
    NameTracker,
    Naming,
    SourceCounts,
    names_of,
)
from weft.feedback.settings import DAY_MS, EVENT_ID_RECORDS, FeedbackSettings, LimitSettings, milliseconds
from weft.feedback.store.deduplication import SeenIndex, read_seen, write_seen
from weft.feedback.store.overlays import close_sessions, forget_days, lifecycle_of, select_lifecycles, write_sessions
from weft.feedback.store.rows import Row, add_masses, delete_rows, insert_rows, matching
from weft.learning.evidence import Evidence, EvidenceKey, table_of
from weft.learning.lessons.rows import NOTE, TEXT
from weft.learning.uses import UsageKey

_DETAIL_CHARACTERS = 500
DEAD_LETTER_BYTES = 65_536
"""Of a wrong record that are kept: any that a person can read; its SHA-256 covers all of them."""
_AT_ONCE = 10_000  # keys in one statement; SQLite takes 32,766

_encoder = msgspec.json.Encoder()
_impressions = msgspec.json.Decoder(Impression)


class _About(msgspec.Struct, gc=False):
    session_id: str
    query_id: str


_about = msgspec.json.Decoder(_About)
_feedback: msgspec.json.Decoder[Feedback] = msgspec.json.Decoder(Feedback)


LOOKED_AT = 20_000
"""Newest impressions of a partition that are looked through for a query id: some 200 MB, about a second."""


class WaitingQuery(NamedTuple):
    """A query that feedback speaks of, as that names it, and that was not shown in that session."""

    session_id: str
    query_id: str
    events: int
    since_ms: int  # when the first of them happened


class StoredDeadLetter(NamedTuple):
    """A dead letter as the store keeps it: `size` and `sha256` are of all its bytes, `original` is their head."""

    offset: int
    timestamp: int
    reason: str
    detail: str
    size: int
    sha256: str
    original: bytes


def read_batch_state(
    connection: sqlite3.Connection, seen: SeenIndex, arrivals: Arrivals, rules: FeedbackSettings
) -> BatchState:
    """The part of the state that the events of a batch mention."""
    clock_ms, next_offset = connection.execute("select clock_ms, next_offset from progress").fetchone()
    witnesses = connection.execute("select leader, leader_ms, others_ms, last, since from witnesses").fetchone()
    stored = BatchState(PartitionClock(clock_ms, *(witnesses or ())), next_offset, NameTracker(rules.limits))
    ids = [fingerprint for fingerprint in arrivals.fingerprints if fingerprint]
    queries = set(filter(None, arrivals.queries))
    # Of one id that was applied again after its time, the last counts.
    for fingerprint, offset, at_ms in read_seen(connection, seen.offsets(ids)):
        stored.seen[fingerprint] = (offset, at_ms)
    for row in matching(connection, "select * from shown where query in", queries):
        query, shown = _pending(row)
        stored.stored_queries.add(query)
        stored.shown[query] = shown
    waiting = "select query, offset, at_ms, feedback from waiting where query in"
    for query, offset, at_ms, feedback in sorted(matching(connection, waiting, queries)):
        stored.waiting.setdefault(query, []).append(
            PendingFeedback(LogMoment(offset, at_ms), _feedback.decode(feedback))
        )
    unlearned = {event.principal for event in arrivals.events if type(event) is SessionPhase and unlearns(event)}
    for row in (
        *matching(connection, select_lifecycles("where session in"), set(filter(None, arrivals.sessions))),
        *matching(connection, select_lifecycles("where principal in"), unlearned),
    ):
        life = lifecycle_of(row)
        stored.lifecycles[life.session] = life
    principals = {
        *filter(None, arrivals.principals),
        *(each.feedback.principal for some in stored.waiting.values() for each in some),
    }
    stored.names = read_names(connection, rules.limits, arrivals.events, principals)
    return stored


def write(connection: sqlite3.Connection, change: Change, rules: FeedbackSettings) -> None:
    """Everything a batch changed; the tables then hold what the next batch may need, and no more."""
    write_names(connection, change.names)
    taken_back = 0
    if change.unlearned or change.forgotten:
        with _overwriting(connection):
            taken_back = forget_principals(connection, change.unlearned)
            forget_lessons(connection, change.forgotten)
    write_sessions(connection, change.sessions, change.names.drawn())
    write_seen(connection, change.seen)
    add_masses(connection, "heard", [(*source, events) for source, events in change.sources.items()])
    _write_shown(connection, change)
    connection.executemany("delete from waiting where offset = ?", [(offset,) for offset in change.joined])
    connection.executemany(
        "insert into waiting (offset, query, at_ms, feedback) values (?, ?, ?, ?)",
        [
            (offset, query, waiting.moment.at_ms, _encoder.encode(waiting.feedback))
            for offset, (query, waiting) in change.waiting.items()
        ],
    )
    _write_dead_letters(connection, change.dead_letters)
    connection.execute("insert or replace into witnesses values (1, ?, ?, ?, ?, ?)", change.clock[1:])
    merged = close_sessions(
        connection, change.sessions.timeline, next_offset=change.next_offset, clock_ms=change.clock.now_ms, rules=rules
    )
    (before_ms,) = connection.execute("select clock_ms from progress").fetchone()
    if (oldest := _oldest_day(change.clock.now_ms, rules)) != _oldest_day(before_ms, rules):
        forget_days(connection, oldest)
    expired, unpublished = _forget(connection, change, rules)
    _write_progress(
        connection,
        change,
        unjoined=change.unjoined + expired + taken_back,
        merges=change.sessions.merges + merged,
        dead_letters_waiting=len(change.dead_letters) - unpublished,
    )


def evidence_in(connection: sqlite3.Connection) -> Evidence:
    """All evidence of the partition."""
    counts = connection.execute("select day, domain, model, agent, intent, parameter, bin, micro from evidence")
    usage = connection.execute("select day, content_hash, bin, principal, question, micro from usage")
    return Evidence(
        {EvidenceKey(*key): micro for *key, micro in counts}, {UsageKey(*key): micro for *key, micro in usage}
    )


def waiting_in(connection: sqlite3.Connection) -> list[WaitingQuery]:
    """What feedback of the partition waits for, the longest first."""
    rows = connection.execute("select at_ms, feedback from waiting order by offset").fetchall()
    queries: dict[tuple[str, str], WaitingQuery] = {}
    for at_ms, feedback in rows:
        about = _about.decode(feedback)
        session_id, query_id = about.session_id, about.query_id
        first = queries.get((session_id, query_id)) or WaitingQuery(session_id, query_id, 0, at_ms)
        later = first._replace(events=first.events + 1, since_ms=min(first.since_ms, at_ms))
        queries[session_id, query_id] = later
    return sorted(queries.values(), key=lambda each: each.since_ms)


def sessions_shown_in(connection: sqlite3.Connection, queries: Collection[str]) -> dict[str, str]:
    """The session that each of some queries was shown in, by query id; see `LOOKED_AT`."""
    rows = connection.execute("select impression from shown order by offset desc limit ?", (LOOKED_AT,))
    shown = (_about.decode(impression) for (impression,) in rows)
    return {about.query_id: about.session_id for about in shown if about.query_id in queries}


def ahead_in(connection: sqlite3.Connection, today: int) -> Counter[int]:
    """Pieces of evidence by day, of days after `today` alone: they count from then on."""
    rows: Counter[int] = Counter()
    for table in ("evidence", "usage"):
        counted = f"select day, count(*) from {table} where day > ? and micro <> 0 group by day"  # noqa: S608  ours
        rows.update(dict(connection.execute(counted, (today,)).fetchall()))
    return rows


def evidence_table_in(connection: sqlite3.Connection) -> pa.Table:
    """All evidence of the partition as a table, the same as `evidence_in(connection).to_table()`."""
    # Primary keys order text by its bytes in UTF-8, which is the order of its characters.
    counts, usage = (
        connection.execute(f"select {columns}, micro from {table} where micro <> 0 order by {columns}").fetchall()  # noqa: S608
        for table, columns in (("evidence", ", ".join(EvidenceKey._fields)), ("usage", ", ".join(UsageKey._fields)))
    )
    return table_of(counts, usage)


def forget_principals(connection: sqlite3.Connection, principals: Mapping[str, str]) -> int:
    """Take out what principals said of contents, and what they said that waits; how much of the latter there was.

    What was shown to them stays as long as others may speak of it, without name and question; their events are counted
    no longer.
    """
    fingerprints = list(principals.values())
    for place in range(0, len(fingerprints), _AT_ONCE):
        some = fingerprints[place : place + _AT_ONCE]
        for table in ("usage", "overlay_usage"):
            delete_rows(connection, table, f"principal in ({', '.join('?' * len(some))})", some)
        heard = f"kind = ? and name in ({', '.join('?' * len(some))})"
        delete_rows(connection, "heard", heard, [NameKind.PRINCIPAL, *some])
    _blank_shown(connection, principals)
    rows = connection.execute("select offset, feedback from waiting").fetchall()
    waiting = [(offset,) for offset, feedback in rows if _feedback.decode(feedback).principal in principals]
    connection.executemany("delete from waiting where offset = ?", waiting)
    return len(waiting)


def forget_lessons(connection: sqlite3.Connection, lessons: Iterable[str]) -> None:
    """Take out what lessons say, and what was written of them for people; what came of them stays under their ids."""
    for lesson in sorted(lessons):
        for table in ("usage", "overlay_usage"):
            words = "content_hash = ? and (bin glob ? or bin glob ?)"
            delete_rows(connection, table, words, [lesson, f"{TEXT}*", f"{NOTE}*"])


@contextlib.contextmanager
def _overwriting(connection: sqlite3.Connection) -> Iterator[None]:
    """Have SQLite write zeros over what is deleted in the block: else its bytes stay until others take their place."""
    connection.execute("pragma secure_delete = on")
    try:
        yield
    finally:
        connection.execute("pragma secure_delete = off")


def _blank_shown(connection: sqlite3.Connection, principals: Mapping[str, str]) -> None:
    for query, shown in map(_pending, connection.execute("select * from shown").fetchall()):
        if sum(shown.forget(*each) for each in principals.items()):
            delete_rows(connection, "shown", "query = ?", [query])
            insert_rows(connection, "shown", [_shown_row(query, shown)])


def dead_letters_in(
    connection: sqlite3.Connection, from_offset: int, at_most: int, most_bytes: float = math.inf
) -> list[StoredDeadLetter]:
    """The oldest dead letters from an offset on, until their originals exceed so many bytes."""
    rows = connection.execute(
        "select offset, timestamp, reason, detail, size, sha256, original from dead_letters"
        " where offset >= ? order by offset limit ?",
        (from_offset, at_most),
    )
    letters: list[StoredDeadLetter] = []
    for letter in map(StoredDeadLetter._make, rows):
        letters.append(letter)
        most_bytes -= len(letter.original)
        if most_bytes < 0:
            break
    return letters


def write_republished(connection: sqlite3.Connection, offset: int) -> None:
    """Note that all dead letters before an offset were republished."""
    (published,) = connection.execute(
        "select count(*) from dead_letters where offset >= (select republished from progress) and offset < ?", (offset,)
    ).fetchone()
    connection.execute(
        "update progress set republished = ?, dead_letters_waiting = dead_letters_waiting - ?", (offset, published)
    )


def _oldest_day(clock_ms: int, rules: FeedbackSettings) -> int:
    """The first day that an event by itself can still fall on."""
    return (clock_ms - milliseconds(rules.time.window_s)) // DAY_MS


def _write_shown(connection: sqlite3.Connection, change: Change) -> None:
    before = list(change.stored_queries & change.shown.keys())
    for place in range(0, len(before), _AT_ONCE):
        some = before[place : place + _AT_ONCE]
        delete_rows(connection, "shown", f"query in ({', '.join('?' * len(some))})", some)
    insert_rows(connection, "shown", [_shown_row(query, shown) for query, shown in change.shown.items()])


def _pending(row: Row) -> tuple[bytes, PendingImpression]:
    """A row of `shown`: what it is kept under, and what was shown."""
    offset, query, at_ms, impression, answers, named = row
    facts = answers_of(answers)
    return query, PendingImpression(
        LogMoment(offset, at_ms), _impressions.decode(impression), named=bool(named), **facts
    )


def _shown_row(query: bytes, shown: PendingImpression) -> tuple[int, bytes, int, bytes, str, int]:
    offset, at_ms = shown.moment
    return offset, query, at_ms, _encoder.encode(shown.impression), shown.answers(), int(shown.named)


def _write_dead_letters(connection: sqlite3.Connection, dead_letters: Iterable[DeadLetter]) -> None:
    for record, reason, detail in dead_letters:
        original = record.value or b""
        connection.execute(
            "insert into dead_letters values (?, ?, ?, ?, ?, ?, ?)",
            (
                record.offset,
                max(-(2**63), min(record.timestamp, 2**63 - 1)),
                reason,
                detail.encode("utf-8", "replace").decode()[:_DETAIL_CHARACTERS],
                len(original),
                hashlib.sha256(original).hexdigest(),
                original[:DEAD_LETTER_BYTES],
            ),
        )
        connection.execute(
            "insert into dead_letter_reasons values (?, 1) on conflict do update set count = count + 1", (reason,)
        )


def _write_progress(
    connection: sqlite3.Connection, change: Change, *, unjoined: int, merges: int, dead_letters_waiting: int
) -> None:
    fates = change.fates
    connection.execute(
        "update progress set next_offset = ?, clock_ms = ?, consumed = consumed + ?, applied = applied + ?,"
        " duplicate = duplicate + ?, dead_lettered = dead_lettered + ?, late = late + ?, holes = holes + ?,"
        " skipped = skipped + ?, unjoined = unjoined + ?, dropped = dropped + ?, version = version + ?,"
        " dead_letters_waiting = dead_letters_waiting + ?",
        (
            change.next_offset,
            change.clock.now_ms,
            change.consumed,
            fates[Fate.APPLIED],
            fates[Fate.DUPLICATE],
            fates[Fate.DEAD_LETTERED],
            fates[Fate.LATE],
            change.holes,
            change.skipped,
            unjoined,
            change.sessions.dropped,
            merges,
            dead_letters_waiting,
        ),
    )


def _forget(connection: sqlite3.Connection, change: Change, rules: FeedbackSettings) -> tuple[int, int]:
    """Delete what no later record can meet any more."""
    limits, window_ms = rules.limits, milliseconds(rules.time.window_s)
    _forget_before(connection, "seen", change, EVENT_ID_RECORDS, window_ms)
    _forget_before(connection, "shown", change, limits.waiting_records, 2 * window_ms)
    (unpublished,) = connection.execute(
        "select count(*) from dead_letters where offset >= (select republished from progress) and offset < ?",
        (change.next_offset - limits.dead_letter_records,),
    ).fetchone()
    _forget_before(connection, "dead_letters", change, limits.dead_letter_records, None)
    return _forget_before(connection, "waiting", change, limits.waiting_records, window_ms), unpublished


def _forget_before(
    connection: sqlite3.Connection, table: str, change: Change, records: int, window_ms: int | None
) -> int:
    oldest = change.next_offset - records
    if window_ms is not None:
        # Only the run of rows from the oldest up to the first live one goes: what lies behind it goes with it later.
        horizon = change.clock.now_ms - window_ms
        live = f"select offset from {table} where at_ms >= ? order by offset limit 1"  # noqa: S608 - a name of ours
        live_row = connection.execute(live, (horizon,)).fetchone()
        oldest = max(oldest, live_row[0] if live_row else change.next_offset)
    if table == "shown":
        return delete_rows(connection, table, "offset < ?", (oldest,))
    return connection.execute(f"delete from {table} where offset < ?", (oldest,)).rowcount  # noqa: S608


def read_names(
    connection: sqlite3.Connection, limits: LimitSettings, events: Iterable[Decoded], principals: Iterable[str]
) -> NameTracker:
    """What a store knows of the names in some events, and of some more principals."""
    names = NameTracker(limits)
    fingerprints = {OVERFLOW, *map(principal_fingerprint, principals)}
    wanted: dict[NameKind, set[str]] = {kind: set() for kind in NameKind}
    for event in cast("Iterable[Naming]", [event for event in events if type(event) in NAMING]):
        for kind, name in names_of(event):
            wanted[kind].add(name)
    wanted[NameKind.PRINCIPAL] |= fingerprints
    for kind, some in wanted.items():
        count = connection.execute("select max(number) from names where kind = ?", (kind,)).fetchone()[0]
        names.counts[kind] = count or 0
        existing = matching(connection, "select name from names where kind = ? and name in", some, kind)
        names.existing.update((kind, name) for (name,) in existing)
    for (day,) in connection.execute("select distinct day from allowances").fetchall():
        drawn = "select payer, allowance, micro from allowances where day = ? and merged = 0 and payer in"
        for fingerprint, name, micro in matching(connection, drawn, {NEWCOMERS, *fingerprints}, day):
            names.allowances[day, fingerprint, name] = Allowance(micro)
    names.since.update(matching(connection, "select principal, since from newcomers where principal in", fingerprints))
    names.queue.update(dict(connection.execute("select since, count(*) from newcomers group by since")))
    return names


def write_names(connection: sqlite3.Connection, names: NameTracker) -> None:
    """What a batch changed."""
    connection.executemany("insert into names (kind, number, name) values (?, ?, ?)", names.new)
    connection.executemany("insert into newcomers (principal, since) values (?, ?)", names.admitted)
    connection.executemany(
        "insert into overflow values (?, ?) on conflict do update set events = events + excluded.events",
        list(names.overflowed.items()),
    )


def source_counts_in(connection: sqlite3.Connection) -> SourceCounts:
    """Everything that a partition heard."""
    rows = connection.execute("select kind, name, what, events from heard")
    return Counter({(kind, name, what): events for kind, name, what, events in rows})
