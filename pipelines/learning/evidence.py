"""The additive tables that all learning is kept in (LRN-1): integer masses per day, scope and parameter."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa

from pipelines.domain.errors import StoreError

MICRO = 1_000_000
"""Micro-units per observation: masses are fixed point, so that sums are exact in any order."""

SECONDS_PER_DAY = 86_400
_INT64_LOW, _INT64_HIGH = -(2**63), 2**63 - 1


class EvidenceKey(NamedTuple):
    """Where mass about one learned parameter is kept.

    Attributes:
        day: UTC days since the epoch, of the event, never of its processing.
        parameter: What the mass is about, such as "signal.vector.good" or "relevance".
        bin: Which of the parameter's statistics, such as "for", "against" or "07/20.good".
    """

    day: int
    domain: str
    model: str
    agent: str
    intent: str
    parameter: str
    bin: str


class UsageKey(NamedTuple):
    """Where mass about the use of one content is kept (FBK-6).

    Attributes:
        bin: "positive" or "negative" for outcomes; "retrieval", "inclusion" or "reference" for uses, whatever came of
            them.
        principal: Fingerprint of who said so; "" where that is not known.
        question: Fingerprint of what was asked; "" where that is not known, and of uses.
    """

    day: int
    content_hash: str
    bin: str
    principal: str = ""
    question: str = ""


_Key = TypeVar("_Key", EvidenceKey, UsageKey)
_PARAMETER, _USAGE = "parameter", "usage"

_TEXT_COLUMNS = ("domain", "model", "agent", "intent", "parameter", "bin", "content_hash", "principal", "question")
_COLUMN_TYPES: dict[str, pa.DataType] = {
    "kind": pa.string(),
    "day": pa.int32(),
    **dict.fromkeys(_TEXT_COLUMNS, pa.string()),
    "micro": pa.int64(),
}
SCHEMA = pa.schema(_COLUMN_TYPES)
"""Both tables in one: `kind` tells them apart, columns that a kind lacks are empty strings."""
_LATER_COLUMNS = ("principal", "question")  # that tables of earlier versions lack


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was observed, as masses in micro-units: a group under addition, so merging is `+` and unlearning is `-`.

    Zero masses are dropped, so equal evidence compares equal however it came about. Masses may be negative in a
    difference of two histories.

    Raises:
        OverflowError: A mass leaves the range of int64.

    Examples:
        >>> key = UsageKey(20_000, "ab" * 32, "positive")
        >>> (Evidence(usage={key: 3}) + Evidence(usage={key: 4})).usage[key]
        7
        >>> (Evidence(usage={key: 3}) - Evidence(usage={key: 3})).is_empty
        True
    """

    counts: Mapping[EvidenceKey, int] = field(default_factory=dict)
    usage: Mapping[UsageKey, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", _canonical(self.counts))
        object.__setattr__(self, "usage", _canonical(self.usage))

    def __add__(self, other: Evidence) -> Evidence:
        return Evidence(_added(self.counts, other.counts, 1), _added(self.usage, other.usage, 1))

    def __sub__(self, other: Evidence) -> Evidence:
        return Evidence(_added(self.counts, other.counts, -1), _added(self.usage, other.usage, -1))

    @property
    def is_empty(self) -> bool:
        """Whether no mass is left."""
        return not self.counts and not self.usage

    @staticmethod
    def sum(parts: Iterable[Evidence]) -> Evidence:
        """Everything in `parts` together, in time linear in their sizes."""
        counts: dict[EvidenceKey, int] = {}
        usage: dict[UsageKey, int] = {}
        for part in parts:
            _add_into(counts, part.counts, 1)
            _add_into(usage, part.usage, 1)
        return Evidence(counts, usage)

    def to_table(self) -> pa.Table:
        """One table of schema `SCHEMA`, sorted, so that equal evidence makes equal tables."""
        counts, usage = sorted(self.counts.items()), sorted(self.usage.items())
        return table_of([(*key, micro) for key, micro in counts], [(*key, micro) for key, micro in usage])

    @classmethod
    def from_table(cls, table: pa.Table) -> Evidence:
        """The evidence in a table of `to_table`, whatever the order of its rows; masses of equal keys add up.

        Raises:
            StoreError: The columns are not those of `SCHEMA`, or a row is of a kind that weft does not write.
        """
        table = with_later_columns(table)
        if not table.schema.equals(SCHEMA):
            raise StoreError(f"evidence table: expected columns {SCHEMA.names} as {SCHEMA.types}, found {table.schema}")
        counts: dict[EvidenceKey, int] = {}
        usage: dict[UsageKey, int] = {}
        columns = (column.to_pylist() for column in table.columns)
        for kind, day, domain, model, agent, intent, parameter, bin_, content_hash, principal, question, micro in zip(
            *columns, strict=True
        ):
            if kind == _PARAMETER:
                key = EvidenceKey(day, domain, model, agent, intent, parameter, bin_)
                counts[key] = counts.get(key, 0) + micro
            elif kind == _USAGE:
                used = UsageKey(day, content_hash, bin_, principal, question)
                usage[used] = usage.get(used, 0) + micro
            else:
                raise StoreError(f"evidence table: expected kind {_PARAMETER!r} or {_USAGE!r}, found {kind!r}")
        return cls(counts, usage)

    def digest(self) -> str:
        """SHA-256 over the sorted rows, 64 hex digits: equal for equal evidence, on any machine."""
        digest = hashlib.sha256()
        for row in self.rows():
            digest.update(json.dumps(row, separators=(",", ":")).encode() + b"\n")
        return digest.hexdigest()

    def rows(self) -> list[tuple[str | int, ...]]:
        """The rows of `to_table`."""
        counts, usage = sorted(self.counts.items()), sorted(self.usage.items())
        return table_rows([(*key, micro) for key, micro in counts], [(*key, micro) for key, micro in usage])


def table_rows(counts: Iterable[tuple[Any, ...]], usage: Iterable[tuple[Any, ...]]) -> list[tuple[str | int, ...]]:
    """The rows of `table_of`."""
    parameters = [(_PARAMETER, *key, "", "", "", micro) for *key, micro in counts]
    uses = [
        (_USAGE, day, "", "", "", "", "", bin_, content_hash, principal, question, micro)
        for day, content_hash, bin_, principal, question, micro in usage
    ]
    return [*parameters, *uses]


def table_of(counts: Sequence[tuple[Any, ...]], usage: Sequence[tuple[Any, ...]]) -> pa.Table:
    """The table of evidence whose rows are at hand, sorted by their keys, no mass 0.

    Args:
        counts: Fields of `EvidenceKey`, and the mass.
        usage: Fields of `UsageKey`, and the mass.
    """
    told = ((_PARAMETER, EvidenceKey._fields, counts), (_USAGE, UsageKey._fields, usage))
    return pa.concat_tables([_part(*each) for each in told]).combine_chunks()


def _part(kind: str, fields: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    columns = dict(zip((*fields, "micro"), zip(*rows, strict=True), strict=True)) if rows else {}
    filled = {"kind": kind, **dict.fromkeys(_TEXT_COLUMNS, "")}
    arrays = [
        pa.array(columns.get(part.name, ()), type=part.type)
        if part.name in columns or not rows
        else pa.repeat(filled[part.name], len(rows))
        for part in SCHEMA
    ]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def with_later_columns(table: pa.Table) -> pa.Table:
    """A table of evidence, as an earlier version may have written it, with all columns; unknown are empty strings."""
    for name in _LATER_COLUMNS:
        if name not in table.schema.names and "micro" in table.schema.names:
            unknown = pa.array([""] * table.num_rows, type=pa.string())
            table = table.add_column(table.schema.get_field_index("micro"), SCHEMA.field(name), unknown)
    return table


def merge(base: Evidence, *, ours: Evidence, theirs: Evidence) -> Evidence:
    """Three-way merge: what both sides added to their common `base`, counted once each."""
    return ours + theirs - base


def day_of(timestamp: float) -> int:
    """The daily bucket of a time in seconds since the epoch.

    Examples:
        >>> day_of(86_399.9), day_of(86_400.0)
        (0, 1)
    """
    return int(timestamp // SECONDS_PER_DAY)


def _canonical(masses: Mapping[_Key, int]) -> dict[_Key, int]:
    kept = {key: micro for key, micro in masses.items() if micro}
    if kept and (min(kept.values()) < _INT64_LOW or max(kept.values()) > _INT64_HIGH):
        worst = max(kept, key=lambda key: abs(kept[key]))
        raise OverflowError(f"evidence: expected masses within int64, found {kept[worst]} at {worst}")
    return kept


def _added(left: Mapping[_Key, int], right: Mapping[_Key, int], sign: int) -> dict[_Key, int]:
    total = dict(left)
    _add_into(total, right, sign)
    return total


def _add_into(total: dict[_Key, int], masses: Mapping[_Key, int], sign: int) -> None:
    for key, micro in masses.items():
        total[key] = total.get(key, 0) + sign * micro
