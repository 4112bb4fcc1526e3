"""Work units: a fixed group of source items that passes through the pipeline as one row of Arrow tables."""

from __future__ import annotations

import json
import pickle
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from pipelines.ingestion.sources.items import FileItem, SourceItem


@dataclass(frozen=True, slots=True)
class Unit:
    """One group of items and what the stages made of it so far.

    Attributes:
        number: Position of the group, from 0: with the items it makes the unit's results reproducible (ARC-9).
        tables: Arrow tables by name, in the shapes of `indexes.schemas`.
        counts: What was done, by name; adding the counts of all units gives the run's.
    """

    number: int
    items: Sequence[SourceItem]
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)

    def work(self, document_bytes: int) -> int:
        """How much there is to do in it, in bytes of text: its items', and `document_bytes` for each document."""
        documents = sum(1 if isinstance(item, FileItem) else item.count for item in self.items)
        return sum(item.size for item in self.items) + document_bytes * documents

    def having(self, tables: Mapping[str, pa.Table], counts: Mapping[str, int]) -> Unit:
        """The unit with further tables and counts."""
        return replace(self, tables={**self.tables, **tables}, counts={**self.counts, **counts})


def grouped(items: Iterable[SourceItem], size: int, most_bytes: int) -> Iterator[Unit]:
    """Units of neighbouring items that hold `size` documents or `most_bytes` of files or more, but for the last one.

    Examples:
        >>> from pipelines.ingestion.sources.sources import FileItem
        >>> items = [FileItem("/r", (name,), f"r/{name}") for name in "abc"]
        >>> [len(unit.items) for unit in grouped(items, 2, 1000)]
        [2, 1]
        >>> large = [FileItem("/r", (name,), f"r/{name}", size=600) for name in "abc"]
        >>> [len(unit.items) for unit in grouped(large, 9, 1000)]
        [2, 1]
    """
    group: list[SourceItem] = []
    number = documents = total = 0
    for item in items:
        group.append(item)
        documents += 1 if isinstance(item, FileItem) else item.count
        total += item.size if isinstance(item, FileItem) else 0
        if documents >= size or total >= most_bytes:
            yield Unit(number, tuple(group))
            number, documents, total, group = number + 1, 0, 0, []
    if group:
        yield Unit(number, tuple(group))


def shuffled(units: Iterable[Unit], most_bytes: int) -> list[Unit]:
    """Units in an order that is always the same, and in which those that are done say what the others will take.

    Neighbours are of one kind: a folder of tests costs another time for a byte than one of generated code. A unit of
    twice `most_bytes` or more, which holds a long file, comes first, the longest before all: nobody waits for it at the
    end, and it is not half done while others are counted.
    """
    mixed = list(units)
    random.Random(0).shuffle(mixed)  # noqa: S311  nothing is kept secret by it
    return sorted(mixed, key=lambda unit: -max(unit.work(0), 2 * most_bytes))


def pack(unit: Unit) -> pa.Table:
    """A unit as a table of one row, which is how it travels between workers."""
    columns = {
        "number": pa.array([unit.number], pa.int64()),
        "items": pa.array([pickle.dumps(tuple(unit.items))], pa.large_binary()),
        "counts": pa.array([json.dumps(dict(unit.counts))], pa.string()),
        **{f"table:{name}": pa.array([_bytes(table)], pa.large_binary()) for name, table in unit.tables.items()},
    }
    return pa.table(columns)


def unpack(row: pa.Table) -> Unit:
    """The unit in a table of one row.

    Raises:
        ValueError: There is another number of rows.
    """
    if row.num_rows != 1:
        raise ValueError(f"expected one unit, found {row.num_rows}")
    tables = {
        name.removeprefix("table:"): pa.ipc.open_stream(row[name][0].as_buffer()).read_all()
        for name in row.column_names
        if name.startswith("table:")
    }
    # Written by `pack` in this same run, never read from a file or a stranger.
    items = pickle.loads(row["items"][0].as_py())  # noqa: S301
    return Unit(row["number"][0].as_py(), items, tables, json.loads(row["counts"][0].as_py()))


def _bytes(table: pa.Table) -> memoryview:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return memoryview(sink.getvalue())
