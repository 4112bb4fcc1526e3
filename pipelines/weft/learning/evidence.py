"""The additive tables that all learning is kept in (LRN-1): integer masses per day, scope and parameter."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from weft.domain.errors import StoreError
from weft.learning.uses import UsageKey, Uses, within_int64

MICRO = 1_000_000
"""Micro-units per observation: masses are fixed point, so that sums are exact in any order."""

SECONDS_PER_DAY = 86_400


class EvidenceKey(NamedTuple):
    """Where mass about one learned parameter is kept."""

    day: int  # UTC days since the epoch, of the event, never of its processing
    domain: str
    model: str
    agent: str
    intent: str
    parameter: str  # what the mass is about, such as "signal.vector.good" or "relevance"
    bin: str  # which of the parameter's statistics, such as "for", "against" or "07/20.good"


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
_ROWS = 65_536  # that a digest reads at once
_ROWS_WRITTEN = 1_048_576  # of a group of rows in a file: as many as Parquet's writers take by themselves
TEXTS_BY_NUMBER = _TEXT_COLUMNS
"""Columns that repeat few words: whoever reads tables of evidence may read these as dictionaries."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was observed, as masses in micro-units: a group under addition, so merging is `+` and unlearning is `-`.

    Zero masses are dropped, so equal evidence compares equal however it came about. Masses may be negative in a
    difference of two histories.

    Raises:
        OverflowError: A mass leaves the range of int64.
    """

    counts: Mapping[EvidenceKey, int] = field(default_factory=dict)
    usage: Mapping[UsageKey, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", _canonical(self.counts))
        if not isinstance(self.usage, Uses):
            object.__setattr__(self, "usage", _canonical(self.usage))

    def __add__(self, other: Evidence) -> Evidence:
        return Evidence(_added(self.counts, other.counts, 1), _used(self.usage, other.usage, 1))

    def __sub__(self, other: Evidence) -> Evidence:
        return Evidence(_added(self.counts, other.counts, -1), _used(self.usage, other.usage, -1))

    @property
    def is_empty(self) -> bool:
        """Whether no mass is left."""
        return not self.counts and not self.usage

    @staticmethod
    def sum(parts: Iterable[Evidence]) -> Evidence:
        """Everything in `parts` together, in time linear in their sizes."""
        some = [part for part in parts if not part.is_empty]
        if len(some) == 1:
            return some[0]
        counts: dict[EvidenceKey, int] = {}
        usage: dict[UsageKey, int] = {}
        columns: list[tuple[Uses, int]] = []
        for part in some:
            _add_into(counts, part.counts, 1)
            if isinstance(part.usage, Uses):
                columns.append((part.usage, 1))
            else:
                _add_into(usage, part.usage, 1)
        return Evidence(counts, Uses.summed([*columns, (Uses.of(_canonical(usage)), 1)]) if columns else usage)

    def tables(self) -> Iterator[pa.Table]:
        """The rows of `to_table`, some at a time: all of them with their texts are much larger than the evidence."""
        yield table_of([(*key, micro) for key, micro in sorted(self.counts.items())], ())
        uses = Uses.of(self.usage).ordered()
        for start in range(0, len(uses), _ROWS_WRITTEN):
            yield _filled(_USAGE, uses.slice(start, _ROWS_WRITTEN))

    def to_table(self) -> pa.Table:
        """One table of schema `SCHEMA`, sorted, so that equal evidence makes equal tables."""
        return pa.concat_tables(self.tables()).combine_chunks()

    @classmethod
    def from_table(cls, table: pa.Table) -> Evidence:
        """The evidence in a table of `to_table`, whatever the order of its rows; masses of equal keys add up.

        Texts may come as numbers of words (`TEXTS_BY_NUMBER`).

        Raises:
            StoreError: The columns are not those of `SCHEMA`, or a row is of a kind that weft does not write, or a cell
                is empty.
        """
        if table.column_names != SCHEMA.names or list(map(_plain, table.schema.types)) != SCHEMA.types:
            raise StoreError(f"evidence table: expected columns {SCHEMA.names} as {SCHEMA.types}, found {table.schema}")
        if empty := [name for name in table.column_names if table[name].null_count]:
            raise StoreError(f"evidence table: expected a value in every cell, found none in some of {empty}")
        for kind in pc.unique(table["kind"]).to_pylist():
            if kind not in (_PARAMETER, _USAGE):
                raise StoreError(f"evidence table: expected kind {_PARAMETER!r} or {_USAGE!r}, found {kind!r}")
        counts: dict[EvidenceKey, int] = {}
        # Arrow makes values of dictionaries one by one, and of plain columns many times as fast.
        rows = table.filter(pc.field("kind") == _PARAMETER).cast(SCHEMA)
        for *key, micro in zip(*(rows[name].to_pylist() for name in (*EvidenceKey._fields, "micro")), strict=True):
            evidence_key = EvidenceKey(*key)
            counts[evidence_key] = counts.get(evidence_key, 0) + micro
        return cls(counts, Uses.of_table(table.filter(pc.field("kind") == _USAGE)))

    def digest(self) -> str:
        """SHA-256 over the sorted rows, 64 hex digits: equal for equal evidence, on any machine."""
        digest = hashlib.sha256()
        for row in table_rows([(*key, micro) for key, micro in sorted(self.counts.items())], ()):
            digest.update(json.dumps(row, separators=(",", ":")).encode() + b"\n")
        for line in _lines(Uses.of(self.usage).ordered()):
            digest.update(line)
        return digest.hexdigest()

    def rows(self) -> list[tuple[str | int, ...]]:
        """The rows of `to_table`."""
        counts, usage = sorted(self.counts.items()), sorted(self.usage.items())
        return table_rows([(*key, micro) for key, micro in counts], [(*key, micro) for key, micro in usage])


def _lines(uses: pa.Table) -> Iterator[bytes]:
    """What `json.dumps` makes of the rows of uses, a line each; many lines at once."""
    join: Any = pc.binary_join_element_wise
    columns: dict[str, Any] = {name: uses[name].combine_chunks() for name in UsageKey._fields[1:]}
    written = {
        name: pa.array([json.dumps(word) for word in column.dictionary.to_pylist()], pa.string())
        for name, column in columns.items()
    }
    some: Any
    for some in uses.to_batches(max_chunksize=_ROWS):
        words = {name: each.take(some[name].indices) for name, each in written.items()}
        cells = [
            words[name] if name in words else '""' if name in _TEXT_COLUMNS else pc.cast(some[name], pa.string())
            for name in SCHEMA.names[1:]
        ]
        cells[-1] = join(cells[-1], "]\n", "")
        yield "".join(join(f'["{_USAGE}"', *cells, ",").to_pylist()).encode()


def table_rows(counts: Iterable[tuple[Any, ...]], usage: Iterable[tuple[Any, ...]]) -> list[tuple[str | int, ...]]:
    """The rows of `table_of`."""
    parameters = [(_PARAMETER, *key, "", "", "", micro) for *key, micro in counts]
    uses = [
        (_USAGE, day, "", "", "", "", "", bin_, content_hash, principal, question, micro)
        for day, content_hash, bin_, principal, question, micro in usage
    ]
    return [*parameters, *uses]


def table_of(counts: Sequence[tuple[Any, ...]], usage: Sequence[tuple[Any, ...]]) -> pa.Table:
    """The table of evidence whose rows are at hand, sorted by their keys, no mass 0."""
    parts = ((_PARAMETER, EvidenceKey._fields, counts), (_USAGE, UsageKey._fields, usage))
    return pa.concat_tables([_part(*each) for each in parts]).combine_chunks()


def _filled(kind: str, rows: pa.Table) -> pa.Table:
    """A table of schema `SCHEMA` of rows that hold some of its columns."""
    cells = {"kind": kind, **dict.fromkeys(_TEXT_COLUMNS, "")}
    columns = [
        rows[part.name].cast(part.type) if part.name in rows.column_names else pa.repeat(cells[part.name], len(rows))
        for part in SCHEMA
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


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


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if isinstance(kind, pa.DictionaryType) else kind


def merge(base: Evidence, *, ours: Evidence, theirs: Evidence) -> Evidence:
    """Three-way merge: what both sides added to their common `base`, counted once each."""
    return ours + theirs - base


def day_of(timestamp: float) -> int:
    """The daily bucket of a time in seconds since the epoch."""
    return int(timestamp // SECONDS_PER_DAY)


def _canonical(masses: Mapping[_Key, int]) -> dict[_Key, int]:
    nonzero = {key: micro for key, micro in masses.items() if micro}
    within_int64(nonzero)
    return nonzero


def _added(left: Mapping[_Key, int], right: Mapping[_Key, int], sign: int) -> dict[_Key, int]:
    total = dict(left)
    _add_into(total, right, sign)
    return total


def _used(left: Mapping[UsageKey, int], right: Mapping[UsageKey, int], sign: int) -> Mapping[UsageKey, int]:
    if isinstance(left, Uses) or isinstance(right, Uses):
        return Uses.summed([(Uses.of(left), 1), (Uses.of(right), sign)])
    return _added(left, right, sign)


def _add_into(total: dict[_Key, int], masses: Mapping[_Key, int], sign: int) -> None:
    for key, micro in masses.items():
        total[key] = total.get(key, 0) + sign * micro
