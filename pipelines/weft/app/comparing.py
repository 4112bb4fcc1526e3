"""Two run files or two configurations, paired by query (EVA-7)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft.consolidation.steps.gate import GateVerdict, judge_rankings
from weft.domain.errors import SourceError
from weft.domain.ids import ContentHash
from weft.evaluation.measures.beir import Dataset
from weft.evaluation.measures.compare import RunComparison, compare_runs
from weft.evaluation.measures.runs import Run, order_of, read_run
from weft.settings import Settings

BASE = "base"
"""Names the configuration as it stands, without a change."""

Configure = Callable[[list[Path], list[str]], Settings]
"""Settings with some files and assignments over the common ones."""

RunEach = Callable[[Sequence[Settings]], Sequence[Run]]
"""Asks every query under each of some settings."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two that are compared."""

    name: str
    run: Run
    settings: Settings | None = None  # what was asked under; None for a run file


def sides(names: Sequence[str], configure: Configure, ask: RunEach) -> list[Side]:
    """What names on the command line stand for.

    A YAML file, assignments such as "retrieval.fusion=rrf" separated by blanks, or `base` is a configuration; anything
    else is a TREC run file.

    Raises:
        SourceError: One is a run file that cannot be read.
        ConfigurationError: One is a configuration that is none.
    """
    changes = [_changes(name) for name in names]
    configured = [None if each is None else configure(*each) for each in changes]
    read = [read_run(Path(name)) for name, each in zip(names, configured, strict=True) if each is None]
    runs = {True: iter(read), False: iter(ask([each for each in configured if each is not None]))}
    return [Side(name, next(runs[each is None]), each) for name, each in zip(names, configured, strict=True)]


def configuration(name: str, configure: Configure) -> Settings:
    """The settings that a name on the command line stands for."""
    changes = _changes(name)
    if changes is None:
        raise SourceError(f"{name}: expected a YAML file, assignments or `{BASE}`: run files need a --dataset")
    return configure(*changes)


def _changes(name: str) -> tuple[list[Path], list[str]] | None:
    """Files and assignments over the common ones; None for a run file."""
    path = Path(name)
    if path.suffix in (".yaml", ".yml"):
        return [path], []
    if "=" in name and not path.is_file():
        return [], name.split()
    return ([], []) if name == BASE else None


@dataclass(frozen=True, slots=True)
class DatasetComparison:
    """Two sides on the judged queries of a data set, and what the gate says of how far the rankings moved (EVA-7)."""

    dataset: Dataset
    control: Side
    treatment: Side
    runs: RunComparison
    moved: GateVerdict


def compared(dataset: Dataset, control: Side, treatment: Side, settings: Settings) -> DatasetComparison:
    """Compare both sides."""
    runs = compare_runs(control.run, treatment.run, dataset.qrels, settings.evaluation)
    before, after = (
        [[ContentHash(name) for name in order_of(side.run.get(query_id, {}))] for query_id in dataset.qrels]
        for side in (control, treatment)
    )
    moved = judge_rankings(before, after, settings.consolidation.shadow)
    return DatasetComparison(dataset, control, treatment, runs, moved)


def verdict_as_json(moved: GateVerdict) -> dict[str, Any]:
    """What the gate says, for machines."""
    return {"decision": moved.decision.value, "reason": moved.reason, **moved.figures}
