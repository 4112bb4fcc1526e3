"""Before anything is computed: which units the live generation holds already (ING-25)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipelines.ingestion.settings import IngestSettings
from pipelines.ingestion.stages.parts import write_part
from pipelines.ingestion.stages.read_and_chunk import NewWork, ReadAndChunk, ReadRules
from pipelines.ingestion.units import Unit


@dataclass(frozen=True, slots=True)
class UnitComparison:
    """Neighbouring units to be compared with the live generation.

    Attributes:
        parts: Where those that are done already are written.
    """

    units: tuple[Unit, ...]
    reading: ReadRules
    parts: Path


@dataclass(frozen=True, slots=True)
class Compared:
    """What came of a comparison: units with something new, and the number and counts of the others.

    Attributes:
        work: What there is to do in the changed units.
    """

    changed: tuple[Unit, ...]
    work: NewWork
    done: int
    counts: Mapping[str, int]


def comparisons(units: Sequence[Unit], reading: ReadRules, parts: Path, *, together: int) -> list[UnitComparison]:
    """Tasks of `together` units each."""
    starts = range(0, len(units), together)
    return [UnitComparison(tuple(units[start : start + together]), reading, parts) for start in starts]


def compare(task: UnitComparison) -> Compared:
    """Read every document and look its key up; a task lost with its worker is run again."""
    reader = ReadAndChunk(task.reading)
    changed: list[Unit] = []
    work = NewWork()
    counts: Counter[str] = Counter()
    for unit in task.units:
        found = reader.compared(unit)
        if isinstance(found, NewWork):
            changed.append(unit)
            work += found
        else:
            write_part(task.parts, found)
            counts.update(found.counts)
    return Compared(tuple(changed), work, len(task.units) - len(changed), dict(counts))


def is_little(work: NewWork, settings: IngestSettings) -> bool:
    """Whether one worker is done with it before a pool of actors would have started."""
    few = settings.pools.few
    return work.documents <= few * settings.unit_documents and work.characters <= few * settings.unit_bytes
