"""Queries that a store has no answer to: how often they would be answered all the same is bounded by them (RET-15)."""

from __future__ import annotations

from pathlib import Path

from pipelines.domain.errors import SourceError

BUNDLED = "bundled"


def probes(named: str) -> list[str]:
    """The queries of a file, one a line; empty for "".

    Args:
        named: A path, or `BUNDLED` for everyday questions that few collections answer.

    Raises:
        SourceError: There is no such file.
    """
    if not named:
        return []
    path = Path(__file__).with_name("probes.txt") if named == BUNDLED else Path(named)
    if not path.is_file():
        raise SourceError(f"consolidation.calibration.probes: expected a file of queries, found none at {path}")
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line]
