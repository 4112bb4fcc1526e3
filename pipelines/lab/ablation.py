"""Measure what every feature is worth on a data set, each switched off in turn (EVA-9).

    python -m jobs.ablate --dataset DIR --split test [--store DIR] [--half tuned]

Exit codes: 0 measured, 1 with a reason (unreadable data set, no such split), 2 usage.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import BaseModel
from rich.progress import Progress

from weft.app.collections import document_id, indexed, measuring
from weft.app.searching.replay import StoreReplay
from weft.catalog.catalog import Catalog
from weft.cli.console.options import MEASURED, CommonOptions, command, run_job
from weft.cli.console.output import Result, Shown
from weft.cli.console.terminal import stderr
from weft.cli.reports.evaluate import part_of
from weft.cli.reports.figures import change_cells, change_text, figures, titled
from weft.cli.reports.indexing import watch_lines
from weft.domain.ranking import Channel, Query, RankedResult, ScoredResult, Signal
from weft.evaluation.measures.beir import Dataset, Qrels, read_dataset
from weft.evaluation.measures.compare import HEADLINE, Difference, compare, compare_halves
from weft.evaluation.measures.measuring import as_query
from weft.evaluation.measures.metrics import Estimate, estimate, measure
from weft.evaluation.measures.runs import Ranked, Run, as_ranked
from weft.evaluation.measures.significance import Half, strength_of
from weft.evaluation.settings import EvaluationSettings
from weft.learning.evidence import Evidence
from weft.retrieval.settings import FusionMode, OffValue, RetrievalSettings
from weft.settings import Settings

# What `jobs.ablate` does: every feature off in turn, on one data set (EVA-9).

# Every feature off in turn, and what that does (EVA-9); features are found in the settings, so that new ones join.

_ERRS = 0.05  # probability of calling any feature that does nothing one that does something

Changes = Mapping[tuple[str, ...], Any]
"""New values by the path of names that leads to them."""


@dataclass(frozen=True, slots=True)
class Feature:
    """Something that can be switched off by configuration alone (ARC-8)."""

    name: str  # where it stands in the settings, and for one of several what it is
    off: Changes  # the change that switches it off

    def without(self, settings: RetrievalSettings) -> RetrievalSettings:
        """The settings with the feature off."""
        return changed(settings, self.off)


@dataclass(frozen=True, slots=True)
class Effect:
    """What switching one feature off does to the headline measure."""

    feature: str
    difference: Difference  # off against on, over all queries: negative where the feature is worth having
    halves: Mapping[Half, Difference]  # the same on either half of the queries
    # the p-value, corrected for as many features as were tried (Holm, Scandinavian Journal of Statistics 1979)
    p_adjusted: float

    @property
    def verdict(self) -> str:
        """What the effect shows.

        "helps" or "hurts" where it would be shown though so many features were tried; "may help" or "may hurt" where it
        would be shown had it been the only one; else "not shown", or "no effect" where no query changed.
        """
        if not self.difference.better + self.difference.worse:
            return "no effect"
        if not self.difference.significant:
            return "not shown"
        helps = self.difference.change.mean < 0.0
        if self.p_adjusted > _ERRS:
            return "may help" if helps else "may hurt"
        return "helps" if helps else "hurts"

    def as_json(self) -> dict[str, Any]:
        """For machines."""
        halves = {half.value: difference.as_json() for half, difference in self.halves.items()}
        facts = {"verdict": self.verdict, "p_adjusted": self.p_adjusted, "halves": halves}
        return {"feature": self.feature, **self.difference.as_json(), **facts}


def features_of(
    settings: RetrievalSettings,
    *,
    channels: Collection[Channel] = tuple(Channel),  # those that answer anything here; others have no effect to measure
    signals: Collection[Signal] = tuple(Signal),  # those that are weighed here
) -> list[Feature]:
    """Everything in force that can be switched off.

    Each channel where there are several, each signal that is weighed, learned fusion, every switch that is on, and
    every setting that says at which other value its feature is off (`OffValue`).
    """
    is_learned, weighed = settings.fusion is FusionMode.LEARNED, {*signals} - {*settings.without_signals}
    return [
        *(
            Feature(
                f"channel {channel.value}",
                {("channels",): tuple(each for each in settings.channels if each is not channel)},
            )
            for channel in settings.channels
            if len(settings.channels) > 1 and channel in channels
        ),
        *(
            Feature(f"signal {signal.value}", {("without_signals",): (*settings.without_signals, signal)})
            for signal in Signal
            if is_learned and signal in weighed
        ),
        *(
            Feature(f"learned fusion (instead {mode.value})", {("fusion",): mode})
            for mode in (FusionMode.RRF, FusionMode.RSF)
            if is_learned
        ),
        *_switches(settings, ()),
    ]


def changed(settings: RetrievalSettings, changes: Changes) -> RetrievalSettings:
    """The settings with some values replaced, validated anew."""
    values = settings.model_dump()
    for path, value in changes.items():
        place = values
        for name in path[:-1]:
            place = place[name]
        place[path[-1]] = value
    return RetrievalSettings.model_validate(values)


def effects(full: Run, without: Mapping[str, Run], qrels: Qrels, settings: EvaluationSettings) -> list[Effect]:
    """What each feature is worth, the most valuable first."""
    on = measure(full, qrels)[HEADLINE]
    runs = {name: measure(run, qrels)[HEADLINE] for name, run in without.items()}
    differences = {name: compare(on, off, settings) for name, off in runs.items()}
    adjusted = holm({name: difference.p for name, difference in differences.items()})
    measured = [
        Effect(name, differences[name], compare_halves(on, off, settings), adjusted[name]) for name, off in runs.items()
    ]
    return sorted(measured, key=lambda effect: (effect.difference.change.mean, effect.feature))


def harmful(measured: Sequence[Effect]) -> list[str]:
    """Features that look harmful on the half to tune on; whether that holds, the other half tells."""
    return [
        effect.feature
        for effect in measured
        if (tuned := effect.halves.get(Half.TUNED)) is not None and tuned.significant and tuned.change.mean > 0.0
    ]


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """p-values such that calling those below α significant errs at all with probability α at most.

    Examples:
        >>> holm({"a": 0.01, "b": 0.04, "c": 0.03})
        {'a': 0.03, 'c': 0.06, 'b': 0.06}
    """
    adjusted, least = {}, 0.0
    for place, (name, p) in enumerate(sorted(p_values.items(), key=lambda item: (item[1], item[0]))):
        least = max(least, min(1.0, p * (len(p_values) - place)))
        adjusted[name] = least
    return adjusted


def _switches(settings: BaseModel, path: tuple[str, ...]) -> Iterator[Feature]:
    for name, value in settings:
        here = (*path, name)
        if isinstance(value, BaseModel):
            if getattr(value, "enabled", True):
                yield from _switches(value, here)
        elif value is True:
            yield Feature(".".join(here).removesuffix(".enabled"), {here: False})
        else:
            stated = type(settings).model_fields[name].metadata
            for off in (each.value for each in stated if isinstance(each, OffValue) and each.value != value):
                yield Feature(".".join(here), {here: off})


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


def described(dataset: Dataset, ablation: Ablation) -> dict[str, Any]:
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


def shown(dataset: Dataset, settings: Settings, ablation: Ablation) -> Iterator[Shown]:
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
    yield table
    if ablation.held_out is None:
        yield "no feature looks harmful on the half to tune on"
        return
    yield (
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


@command
def ablate(
    dataset: Annotated[Path, typer.Option("--dataset", help="Folder with corpus, queries and qrels/.")],
    *,
    options: CommonOptions,
    split: Annotated[str, typer.Option("--split", help="Which judgements.")] = "test",
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Only the first queries.")] = None,
    half: Annotated[Half | None, typer.Option("--half", help="Only this half of the queries.")] = None,
) -> Result:
    """Switch every feature off in turn, and print one table."""
    settings = measuring(options.settings(MEASURED))
    judged = part_of(read_dataset(dataset, split), settings.evaluation, half=half, limit=limit)
    stored = indexed(judged, settings, watch=watch_lines())
    result = ablated(judged, stored, document_id(judged))
    return Result([described(judged, result)], shown(judged, stored, result))


main = partial(run_job, ablate)
"""Run the job on arguments."""
