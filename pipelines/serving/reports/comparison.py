"""What `jobs.evaluate --compare A B` does: two run files or two configurations, paired by query."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from pipelines.consolidation.gate import GateVerdict, Ranking, judge_rankings
from pipelines.domain.errors import SourceError
from pipelines.domain.ids import ContentHash
from pipelines.evaluation.measures.beir import Dataset
from pipelines.evaluation.measures.compare import HEADLINE, UNJUDGED_DEPTH, Difference, RunComparison, compare_runs
from pipelines.evaluation.measures.measuring import Measurement
from pipelines.evaluation.measures.runs import Run, order_of, read_run
from pipelines.evaluation.measures.significance import Half
from pipelines.evaluation.settings import EvaluationSettings
from pipelines.serving.console.terminal import plain, stdout, tell
from pipelines.settings import Settings

_MOVERS = 5  # queries that gained most, and that lost most, named one by one

BASE = "base"
"""Names the configuration as it stands, without a change."""

LABELS = {
    "ndcg_at_10": "nDCG@10",
    "mrr_at_5": "MRR@5",
    "mrr_at_10": "MRR@10",
    "recall_at_20": "Recall@20",
    "recall_at_100": "Recall@100",
    "hit_rate_at_1": "Hit rate@1",
    "map": "MAP",
}

Configure = Callable[[list[Path], list[str]], Settings]
"""Settings with some files and assignments over the common ones."""

AskEach = Callable[[Sequence[Settings]], Sequence[Run]]
"""Asks every query under each of some settings."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two that are compared.

    Attributes:
        settings: What was asked under; None for a run file.
    """

    name: str
    run: Run
    settings: Settings | None = None


def sides(names: Sequence[str], configure: Configure, ask: AskEach) -> list[Side]:
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


def compared(dataset: Dataset, control: Side, treatment: Side, settings: Settings) -> tuple[RunComparison, GateVerdict]:
    """The comparison, and what the gate would say of how far the rankings moved (EVA-7)."""
    comparison = compare_runs(control.run, treatment.run, dataset.qrels, settings.evaluation)
    before, after = (_rankings(one.run, dataset) for one in (control, treatment))
    return comparison, judge_rankings(before, after, settings.consolidation.shadow)


def described(
    dataset: Dataset,
    control: Side,
    treatment: Side,
    comparison: RunComparison,
    moved: GateVerdict,
    *,
    times: Measurement | None,
) -> dict[str, Any]:
    """For machines: the treatment's measures under the names of the job's contract, and the comparison beside them.

    Args:
        times: Of some of its queries asked one by one; None for a run file, which knows none.
    """
    return {
        "dataset": dataset.name,
        "split": dataset.split,
        **{name: sum(values.values()) / len(values) for name, values in comparison.treatment.items()},
        "queries": len(dataset.qrels),
        "p50_ms": None if times is None else times.p50_ms,
        "p95_ms": None if times is None else times.p95_ms,
        "control": {
            "name": control.name,
            **{name: sum(values.values()) / len(values) for name, values in comparison.control.items()},
        },
        "treatment": {"name": treatment.name},
        "differences": {name: difference.as_json() for name, difference in comparison.differences.items()},
        "halves": {half.value: difference.as_json() for half, difference in comparison.halves.items()},
        "strength": comparison.strength.value,
        "unjudged": {"control": comparison.unjudged[0], "treatment": comparison.unjudged[1]},
        "shadow": {"decision": moved.decision.value, "reason": moved.reason, **moved.figures},
        "gained": _movers(comparison, _MOVERS, gained=True),
        "lost": _movers(comparison, _MOVERS, gained=False),
    }


def show(
    dataset: Dataset,
    control: Side,
    treatment: Side,
    comparison: RunComparison,
    moved: GateVerdict,
    *,
    settings: EvaluationSettings,
) -> None:
    """For people: the table, how strong the evidence is, and who gained and lost."""
    out = stdout
    tell(table(dataset, control, treatment, comparison, settings.interval))
    change = comparison.differences[HEADLINE]
    judgement = _judgement(change)
    out.print(
        f"\n[bold]{judgement}[/]: {len(dataset.qrels)} queries, {comparison.strength.value} evidence", highlight=False
    )
    for half, difference in comparison.halves.items():
        purpose = "to tune on" if half is Half.TUNED else "to believe"
        out.print(f"  {half.value} half, {purpose}: {_change(difference)}, {_of(difference)}", highlight=False)
    before, after = comparison.unjudged
    out.print(f"  unjudged among the first {UNJUDGED_DEPTH}: {before:.1%} of A, {after:.1%} of B", highlight=False)
    out.print(f"  rankings moved: {moved.decision.value} ({moved.reason})", highlight=False)
    texts = {query.query_id: query.text for query in dataset.queries}
    for title, gained in (("gained most", True), ("lost most", False)):
        for mover in _movers(comparison, _MOVERS, gained=gained):
            name, text = mover["query_id"], texts.get(mover["query_id"], "")[:70]
            out.print(f"  {title}: {mover['change']:+.3f}  {plain(name)}  [dim]{plain(text)}[/]", highlight=False)


def table(dataset: Dataset, control: Side, treatment: Side, comparison: RunComparison, level: float) -> Table:
    """Every measure of both, and the difference."""
    title = f"{dataset.name} {dataset.split}: A = {control.name}, B = {treatment.name}"
    shown = Table("measure", box=None, title=plain(title), title_justify="left")
    for heading in ("A", "B", "B − A", f"{level:.0%} interval", "p", "detectable", "better", "worse"):
        shown.add_column(heading, justify="right")
    for name, difference in comparison.differences.items():
        means = [
            sum(values[name].values()) / len(values[name]) for values in (comparison.control, comparison.treatment)
        ]
        change = difference.change
        shown.add_row(
            LABELS[name],
            *(f"{mean:.4f}" for mean in means),
            f"{change.mean:+.4f}",
            f"{change.low:+.4f} … {change.high:+.4f}",
            f"{difference.p:.4f}",
            f"{difference.detectable:.4f}",
            str(difference.better),
            str(difference.worse),
        )
    return shown


def _rankings(run: Run, dataset: Dataset) -> list[Ranking]:
    return [[ContentHash(name) for name in order_of(run.get(query_id, {}))] for query_id in dataset.qrels]


def _judgement(difference: Difference) -> str:
    if not difference.significant:
        return f"no difference shown in {LABELS[HEADLINE]}: {_change(difference)}"
    return f"B is {'better' if difference.change.mean > 0 else 'worse'} in {LABELS[HEADLINE]}: {_change(difference)}"


def _change(difference: Difference) -> str:
    change = difference.change
    return f"{change.mean:+.4f} ({change.low:+.4f} … {change.high:+.4f}), p = {difference.p:.4f}"


def _of(difference: Difference) -> str:
    return f"{difference.better} better, {difference.worse} worse"


def _movers(comparison: RunComparison, count: int, *, gained: bool) -> list[dict[str, Any]]:
    changes = list(comparison.changes.items())
    ordered = reversed(changes) if gained else iter(changes)
    moved = [(query_id, change) for query_id, change in ordered if (change > 0.0 if gained else change < 0.0)]
    return [{"query_id": query_id, "change": change} for query_id, change in moved[:count]]
