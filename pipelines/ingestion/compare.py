"""Before anything is computed: which units the live generation holds already (ING-25)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipelines.ingestion.parts import write_part
from pipelines.ingestion.read_and_chunk import ReadAndChunk, Reading
from pipelines.ingestion.units import Unit


@dataclass(frozen=True, slots=True)
class Comparison:
    """Neighbouring units to be compared with the live generation.

    Attributes:
        parts: Where those that are done already are written.
    """

    units: tuple[Unit, ...]
    reading: Reading
    parts: Path


@dataclass(frozen=True, slots=True)
class Compared:
    """What came of a comparison: units with something new, and the number and counts of the others."""

    changed: tuple[Unit, ...]
    done: int
    counts: Mapping[str, int]


def comparisons(units: Sequence[Unit], reading: Reading, parts: Path, *, together: int) -> list[Comparison]:
    """Tasks of `together` units each."""
    starts = range(0, len(units), together)
    return [Comparison(tuple(units[start : start + together]), reading, parts) for start in starts]


def compare(task: Comparison) -> Compared:
    """Read every document and look its key up; a task lost with its worker is run again."""
    reader = ReadAndChunk(task.reading)
    changed: list[Unit] = []
    counts: Counter[str] = Counter()
    for unit in task.units:
        done = reader.unchanged(unit)
        if done is None:
            changed.append(unit)
        else:
            write_part(task.parts, done)
            counts.update(done.counts)
    return Compared(tuple(changed), len(task.units) - len(changed), dict(counts))
