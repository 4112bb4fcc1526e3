"""What `jobs.evaluate --compare A B` does: two run files or two configurations, paired by query."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from weft.cli.console.terminal import plain, print_report, stdout
from weft.cli.reports.figures import LABELS, change_cells, change_text, figures, titled
from weft.consolidation.steps.gate import GateVerdict, judge_rankings
from weft.domain.errors import SourceError
from weft.domain.ids import ContentHash
from weft.evaluation.measures.beir import Dataset
from weft.evaluation.measures.compare import HEADLINE, UNJUDGED_DEPTH, Difference, RunComparison, compare_runs
from weft.evaluation.measures.measuring import Measurement
from weft.evaluation.measures.metrics import PerQuery
from weft.evaluation.measures.runs import Run, order_of, read_run
from weft.evaluation.measures.significance import Half
from weft.settings import Settings

_MOVERS = 5  # queries that gained most, and that lost most, named one by one
_TEXT = 70  # characters of a query

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
    """The settings that a name on the command line stands for.

    Raises:
        SourceError: It stands for no configuration.
    """
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


def as_json(comparison: DatasetComparison, times: Measurement | None) -> dict[str, Any]:
    """For machines: the treatment's measures under the names of the job's contract, and the comparison beside them."""
    dataset, runs = comparison.dataset, comparison.runs
    return {
        "dataset": dataset.name,
        "split": dataset.split,
        **_means(runs.treatment),
        "queries": len(dataset.qrels),
        "p50_ms": times and times.p50_ms,
        "p95_ms": times and times.p95_ms,
        "control": {"name": comparison.control.name, **_means(runs.control)},
        "treatment": {"name": comparison.treatment.name},
        "differences": {name: difference.as_json() for name, difference in runs.differences.items()},
        "halves": {half.value: difference.as_json() for half, difference in runs.halves.items()},
        "strength": runs.strength.value,
        "unjudged": dict(zip(("control", "treatment"), runs.unjudged, strict=True)),
        "shadow": verdict_as_json(comparison.moved),
        **{name: [{"query_id": each, "change": change} for each, change in moved] for name, moved in _movers(runs)},
    }


def show(comparison: DatasetComparison, *, interval: float) -> None:
    """For people: the table, how strong the evidence is, and who gained and lost."""
    dataset, runs = comparison.dataset, comparison.runs
    print_report(_table(comparison, interval))
    judgement = _judgement(runs.differences[HEADLINE])
    stdout.print(f"\n[bold]{judgement}[/]: {len(dataset.qrels)} queries, {runs.strength.value} evidence")
    for half, each in runs.halves.items():
        purpose = "to tune on" if half is Half.TUNED else "to believe"
        stdout.print(f"  {half.value} half, {purpose}: {_change(each)}, {each.better} better, {each.worse} worse")
    before, after = runs.unjudged
    stdout.print(f"  unjudged among the first {UNJUDGED_DEPTH}: {before:.1%} of A, {after:.1%} of B")
    stdout.print(f"  rankings moved: {comparison.moved.decision.value} ({comparison.moved.reason})")
    texts = {query.query_id: query.text for query in dataset.queries}
    for name, moved in _movers(runs):
        for query_id, change in moved:
            text = plain(texts.get(query_id, "")[:_TEXT])
            stdout.print(f"  {name} most: {change:+.3f}  {plain(query_id)}  [dim]{text}[/]")


def _table(comparison: DatasetComparison, level: float) -> Table:
    """Every measure of both, and the difference."""
    dataset, runs = comparison.dataset, comparison.runs
    title = f"{dataset.name} {dataset.split}: A = {comparison.control.name}, B = {comparison.treatment.name}"
    headings = ("A", "B", "B − A", f"{level:.0%} interval", "p", "detectable", "better", "worse")
    shown = titled(title, "measure", *figures(headings))
    control, treatment = _means(runs.control), _means(runs.treatment)
    for name, each in runs.differences.items():
        means = (f"{control[name]:.4f}", f"{treatment[name]:.4f}")
        chances = (f"{each.p:.4f}", f"{each.detectable:.4f}", str(each.better), str(each.worse))
        shown.add_row(LABELS[name], *means, *change_cells(each), *chances)
    return shown


def _means(measured: PerQuery) -> dict[str, float]:
    return {name: sum(values.values()) / len(values) for name, values in measured.items()}


def _judgement(difference: Difference) -> str:
    if not difference.significant:
        return f"no difference shown in {LABELS[HEADLINE]}: {_change(difference)}"
    return f"B is {'better' if difference.change.mean > 0 else 'worse'} in {LABELS[HEADLINE]}: {_change(difference)}"


def _change(difference: Difference) -> str:
    return f"{change_text(difference)}, p = {difference.p:.4f}"


def _movers(runs: RunComparison) -> list[tuple[str, list[tuple[str, float]]]]:
    """The queries that gained most and that lost most, with their changes."""
    changes = list(runs.changes.items())
    gained = [(query_id, change) for query_id, change in reversed(changes) if change > 0.0]
    lost = [(query_id, change) for query_id, change in changes if change < 0.0]
    return [("gained", gained[:_MOVERS]), ("lost", lost[:_MOVERS])]
