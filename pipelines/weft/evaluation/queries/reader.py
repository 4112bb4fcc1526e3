"""The reading side of the query log: DuckDB over its files, feedback joined by query (EVA-3)."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from weft.domain.errors import StoreError
from weft.domain.events import Retrieval
from weft.domain.ids import ContentHash, QueryId
from weft.evaluation.queries.days import OUTCOME_LOG, QUERY_LOG, files_of
from weft.evaluation.queries.schema import OUTCOMES, QUERIES
from weft.runtime.clock import day_of
from weft.runtime.storage.tables import TableQueries

_MEMORY_MB = 512  # of one reader's sorts and joins; the rest is spilled
_THREADS = 2  # of one reader: searches go on beside it
_AT_ONCE = 2_000  # rows made into values at a time
_LEFT_OUT = Retrieval.__struct_config__.tag
_KEY = pa.schema([("query_id", pa.string())])

_CHOSEN = """
    select query_id from queries
    where epoch_ms(asked_at) >= $since and ($wanted = '' or query_id = $wanted)
    group by query_id, asked_at order by asked_at desc, query_id limit $most
"""

# Wide columns are read of chosen queries alone. A file that was written twice after a crash says the same twice.
_QUERIES = """
    select * exclude (part) from queries
    where epoch_ms(asked_at) >= $since
    and query_id in (select query_id from chosen)
    qualify row_number() over (partition by query_id, asked_at order by part) = 1
    order by asked_at desc, query_id limit $most
"""
_OUTCOMES = """
    select * exclude (part) from outcomes
    where query_id in (select query_id from chosen)
    qualify row_number() over (partition by event_id, content_hash order by said_at) = 1
    order by said_at, event_id, content_hash
"""


@dataclass(frozen=True, slots=True)
class LoggedOutcome:
    """What somebody did about an answer, or about one of its results."""

    at: float
    kind: str  # type of the event, such as "selection"
    content_hash: ContentHash | None  # none where it speaks of the answer as a whole
    value: float  # A verdict in [−1, 1] of an explicit one, the sureness in [0, 1] of a reference, 1 of others
    principal: str

    @property
    def is_praise(self) -> bool:
        """Whether it speaks for what it is about: that something was found, and left out, does not (FBK-12)."""
        return self.value > 0.0 and self.kind != _LEFT_OUT


@dataclass(frozen=True, slots=True)
class LoggedHit:
    """One content in a channel's head."""

    rank: int
    content_hash: ContentHash
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedResult:
    """One result as it was shown, and why."""

    rank: int
    content_hash: ContentHash
    score: float
    relevance: float
    propensity: float
    channels: Mapping[str, int]  # rank by channel that found it
    signals: Mapping[str, float]
    contributions: Mapping[str, float]  # what each part added to the score, by name
    facts: Mapping[str, Any]  # everything else that the log keeps of it

    def score_without(self, name: str) -> float:
        """What the score would have been without one of its parts."""
        return self.score - self.contributions.get(name, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedQuery:
    """One logged query with its answer and what became of it."""

    at: float  # seconds since the epoch
    query_id: QueryId
    text: str
    domain: str | None
    intent: str
    explored: bool
    heads: Mapping[str, Sequence[LoggedHit]]  # the best of each channel that answered
    results: Sequence[LoggedResult]
    # in the order of their times; empty where no feedback came, or none was collected
    outcomes: Sequence[LoggedOutcome]
    facts: Mapping[str, Any]  # everything else that the log keeps of it


def read_queries(root: Path, *, limit: int, since: float = 0.0, query_id: str | None = None) -> list[LoggedQuery]:
    """The newest `limit` logged queries since a time in seconds since the epoch, newest first.

    Raises:
        StoreError: The log cannot be read.
    """
    values = {"since": round(since * 1000), "wanted": query_id or "", "most": limit}
    try:
        return _read_queries(root, since, values)
    except StoreError:
        # A file that was listed may have been merged with others meanwhile: then it is listed anew.
        return _read_queries(root, since, values)


def _read_queries(root: Path, since: float, values: Mapping[str, object]) -> list[LoggedQuery]:
    with _opened(root, since=since) as tables:
        chosen = [row["query_id"] for row in _read(tables, _CHOSEN, _KEY, values)]
        tables.register("chosen", {"query_id": chosen})
        rows = _read(tables, _QUERIES, QUERIES, {name: values[name] for name in ("since", "most")})
        outcomes = _outcomes(tables)
    return [_query(row, outcomes.get(row["query_id"], [])) for row in rows]


@contextmanager
def _opened(root: Path, *, since: float) -> Iterator[TableQueries]:
    with (
        tempfile.TemporaryDirectory() as spill,
        TableQueries(Path(spill), memory_mb=_MEMORY_MB, threads=_THREADS, advice="read fewer days") as tables,
    ):
        files = files_of(root / QUERY_LOG, since_day=day_of(since))
        tables.define("queries", files, QUERIES)
        # Feedback comes later than what it is about.
        outcome_files = files_of(root / OUTCOME_LOG, since_day=day_of(since))
        tables.define("outcomes", outcome_files, OUTCOMES)
        yield tables


def _read(
    tables: TableQueries, query: str, schema: pa.Schema, values: Mapping[str, object] | None = None
) -> list[dict[str, Any]]:
    return [row for table in tables.rows(query, schema, at_once=_AT_ONCE, values=values) for row in table.to_pylist()]


def _outcomes(tables: TableQueries) -> dict[str, list[LoggedOutcome]]:
    by_query: defaultdict[str, list[LoggedOutcome]] = defaultdict(list)
    for row in _read(tables, _OUTCOMES, OUTCOMES):
        about = None if row["content_hash"] is None else ContentHash(row["content_hash"])
        seen = LoggedOutcome(_seconds(row["said_at"]), row["kind"], about, row["value"], row["principal"])
        by_query[row["query_id"]].append(seen)
    return by_query


def _query(row: dict[str, Any], outcomes: Sequence[LoggedOutcome]) -> LoggedQuery:
    heads: defaultdict[str, list[LoggedHit]] = defaultdict(list)
    for hit in row.pop("heads"):
        heads[hit["channel"]].append(LoggedHit(hit["rank"], ContentHash(hit["content_hash"]), hit["score"]))
    return LoggedQuery(
        at=_seconds(row.pop("asked_at")),
        query_id=QueryId(row["query_id"]),
        text=row["text"],
        domain=row["domain"],
        intent=row["intent"],
        explored=row["explored"],
        heads=dict(heads),
        results=[_result(result) for result in row.pop("results")],
        outcomes=outcomes,
        facts=row,
    )


def _result(row: dict[str, Any]) -> LoggedResult:
    return LoggedResult(
        rank=row["rank"],
        content_hash=ContentHash(row["content_hash"]),
        score=row["score"],
        relevance=row["relevance"],
        propensity=row["propensity"],
        channels={hit["channel"]: hit["rank"] for hit in row["channels"]},
        signals={part["name"]: part["value"] for part in row["signals"]},
        contributions={part["name"]: part["amount"] for part in row["contributions"]},
        facts=row,
    )


def _seconds(at: datetime) -> float:
    """Of a time without a zone, which the log keeps in UTC."""
    return float(at.replace(tzinfo=UTC).timestamp())
