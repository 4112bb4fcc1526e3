"""What `jobs.ablate` does: every feature off in turn, on one data set (EVA-9)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.progress import Progress

from lab.ablation.features import Changes, Effect, Feature, changed, effects, features_of, harmful
from weft.app.searching.replay import StoreReplay
from weft.catalog.catalog import Catalog
from weft.cli.console.terminal import print_report, stderr, stdout
from weft.cli.reports.figures import change_cells, change_text, figures, titled
from weft.domain.ranking import Channel, Query, RankedResult, ScoredResult, Signal
from weft.evaluation.measures.beir import Dataset
from weft.evaluation.measures.compare import HEADLINE, Difference, compare_halves
from weft.evaluation.measures.measuring import as_query
from weft.evaluation.measures.metrics import Estimate, estimate, measure
from weft.evaluation.measures.runs import Ranked, Run, as_ranked
from weft.evaluation.measures.significance import Half, strength_of
from weft.learning.evidence import Evidence
from weft.settings import Settings

_AT_ONCE = 1_000  # queries whose answers, of a hundred texts each, are held at a time

LEARNED = "learned weights (priors alone)"
"""The feature of beliefs that evidence has moved; only in a store that learned anything."""


@dataclass(frozen=True, slots=True)
class Ablation:
    """The table, and what came of trusting it."""

    full: Estimate  # the headline measure with everything on
    queries: int
    effects: Sequence[Effect]
    chosen: Sequence[str]  # features that looked harmful on the half to tune on
    held_out: Difference | None  # what switching all of these off does on the other half; None where there are none


def ablated(dataset: Dataset, settings: Settings, document_id: Callable[[str], str]) -> Ablation:
    """Ask every query with everything on, and with each feature off."""
    rules, tuned = settings.evaluation, settings.retrieval
    queries, times = [as_query(query, rules) for query in dataset.queries], len(features_of(tuned))
    with closing(StoreReplay(settings, times=times)) as replay, Progress(console=stderr, transient=True) as progress:
        runs = _Runs(replay, queries, settings, document_id, progress)
        full = runs.explained("everything on")
        features = features_of(tuned, channels=runs.channels, signals=runs.signals)
        without = {feature.name: runs.run(feature.name, feature.off) for feature in features}
        if not Catalog(Path(settings.storage.root)).live.evidence().is_empty:
            without[LEARNED] = runs.run(LEARNED, {}, Evidence())
        measured = effects(full, without, dataset.qrels, rules)
        chosen = [name for name in harmful(measured) if name != LEARNED]
        combined = runs.run("all that look harmful", _together(features, chosen)) if chosen else full
    on, off = (measure(run, dataset.qrels)[HEADLINE] for run in (full, combined))
    held_out = compare_halves(on, off, rules).get(Half.HELD_OUT) if chosen else None
    return Ablation(estimate(list(on.values()), rules), len(dataset.queries), measured, chosen, held_out)


@dataclass
class _Runs:
    """Runs over the same queries under changed settings."""

    replay: StoreReplay
    queries: Sequence[Query]
    settings: Settings
    document_id: Callable[[str], str]
    progress: Progress
    channels: set[Channel] = field(default_factory=set)  # What took part in any answer of `explained`
    signals: set[Signal] = field(default_factory=set)

    def run(self, name: str, changes: Changes, evidence: Evidence | None = None) -> Run:
        """What is returned under the changes, and instead of what is believed under what follows from evidence."""
        retrieval = changed(self.settings.retrieval, changes)
        side = self.settings.model_copy(update={"retrieval": retrieval}), evidence
        run = {}
        for part in self._parts(name):
            (rankings,) = self.replay.rankings(part, [side])
            run.update({str(query.query_id): self._ranked(each) for query, each in zip(part, rankings, strict=True)})
        return run

    def explained(self, name: str) -> Run:
        """What is returned with everything on, which tells what takes part."""
        run = {}
        for answer in (answer for part in self._parts(name) for answer in self.replay(part, self.settings)):
            self.channels.update(answer.heads)
            parts = (part for result in answer.results for part in result.contributions if part.belief is not None)
            self.signals.update(Signal(part.name) for part in parts)
            run[str(answer.query.query_id)] = self._ranked(answer.results)
        return run

    def _parts(self, name: str) -> Iterator[Sequence[Query]]:
        for start in self.progress.track(range(0, len(self.queries), _AT_ONCE), description=name):
            yield self.queries[start : start + _AT_ONCE]

    def _ranked(self, results: Iterable[RankedResult | ScoredResult]) -> Ranked:
        return as_ranked(results, self.settings.evaluation.depth, document_id=self.document_id)


def as_json(dataset: Dataset, ablation: Ablation) -> dict[str, Any]:
    """For machines."""
    return {
        "dataset": dataset.name,
        "split": dataset.split,
        "queries": ablation.queries,
        "strength": strength_of(ablation.queries).value,
        HEADLINE: ablation.full.mean,
        "interval": [ablation.full.low, ablation.full.high],
        "features": [effect.as_json() for effect in ablation.effects],
        "harmful_on_tuned_half": list(ablation.chosen),
        "held_out_without_them": None if ablation.held_out is None else ablation.held_out.as_json(),
    }


def show(dataset: Dataset, settings: Settings, ablation: Ablation) -> None:
    """For people: one table, the most valuable feature first."""
    strength = strength_of(ablation.queries)
    title = (
        f"{dataset.name} {dataset.split}: nDCG@10 {ablation.full.mean:.4f} with everything on; "
        f"{ablation.queries} queries, {strength.value} evidence"
    )
    interval = f"{settings.evaluation.interval:.0%} interval"
    headings = ("effect", interval, "p (Holm)", "better", "worse", "tuned half", "held-out half")
    table = titled(title, "without", *figures(headings), "the feature")
    for effect in ablation.effects:
        table.add_row(*_row(effect))
    print_report(table)
    if ablation.held_out is None:
        stdout.print("no feature looks harmful on the half to tune on")
        return
    stdout.print(
        f"without all that look harmful on the half to tune on ({', '.join(ablation.chosen)}), the held-out half "
        f"changes by {change_text(ablation.held_out)}"
    )


def _row(effect: Effect) -> list[str]:
    difference, halves = effect.difference, [effect.halves.get(half) for half in Half]
    return [
        effect.feature,
        *change_cells(difference),
        f"{effect.p_adjusted:.3f}",
        str(difference.better),
        str(difference.worse),
        *("" if half is None else change_cells(half)[0] for half in halves),
        effect.verdict,
    ]


def _together(features: Sequence[Feature], names: Sequence[str]) -> Changes:
    """All of these off at once: what several of them take from the same list, all of them take."""
    together: dict[tuple[str, ...], Any] = {}
    for feature in features:
        if feature.name in names:
            for path, value in feature.off.items():
                together[path] = _merged(path, together.get(path), value)
    return together


def _merged(path: tuple[str, ...], one: Any, other: Any) -> Any:
    if one is None or not isinstance(other, tuple):
        return other
    if path == ("channels",):
        return tuple(item for item in one if item in other) or one
    return tuple(dict.fromkeys((*one, *other)))
