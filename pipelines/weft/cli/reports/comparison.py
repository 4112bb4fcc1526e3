"""Two run files or two configurations on a data set, for people and programs (EVA-7)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.table import Table

from weft.app.comparing import DatasetComparison, verdict_as_json
from weft.cli.console.output import Shown, markup
from weft.cli.console.terminal import plain
from weft.cli.reports.figures import LABELS, change_cells, change_text, figures, titled
from weft.evaluation.measures.compare import HEADLINE, UNJUDGED_DEPTH, Difference, RunComparison
from weft.evaluation.measures.measuring import Measurement
from weft.evaluation.measures.metrics import PerQuery
from weft.evaluation.measures.significance import Half

_MOVERS = 5  # queries that gained most, and that lost most, named one by one
_TEXT = 70  # characters of a query


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


def shown(comparison: DatasetComparison, *, interval: float) -> Iterator[Shown]:
    """For people: the table, how strong the evidence is, and who gained and lost."""
    dataset, runs = comparison.dataset, comparison.runs
    yield _table(comparison, interval)
    judgement = _judgement(runs.differences[HEADLINE])
    yield markup(f"\n[bold]{judgement}[/]: {len(dataset.qrels)} queries, {runs.strength.value} evidence")
    for half, each in runs.halves.items():
        purpose = "to tune on" if half is Half.TUNED else "to believe"
        yield f"  {half.value} half, {purpose}: {_change(each)}, {each.better} better, {each.worse} worse"
    before, after = runs.unjudged
    yield f"  unjudged among the first {UNJUDGED_DEPTH}: {before:.1%} of A, {after:.1%} of B"
    yield f"  rankings moved: {comparison.moved.decision.value} ({comparison.moved.reason})"
    texts = {query.query_id: query.text for query in dataset.queries}
    for name, moved in _movers(runs):
        for query_id, change in moved:
            text = plain(texts.get(query_id, "")[:_TEXT])
            yield markup(f"  {name} most: {change:+.3f}  {plain(query_id)}  [dim]{text}[/]")


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
