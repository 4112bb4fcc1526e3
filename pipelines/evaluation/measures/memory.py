"""Measures of a memory (EVA-2): what must not be missed, what is new, and which channels are worth having."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.evaluation.measures.metrics import Estimate, estimate, measure
from pipelines.evaluation.measures.off_policy import snips
from pipelines.evaluation.settings import EvaluationSettings

_SECONDS_PER_HOUR = 3600.0

DEPTH = 10
"""Results that count as shown: a first page."""

NEW_HOURS = 48.0
"""Age below which an item has had no time to earn feedback (EVA-2)."""

_CONSTITUTIONAL_DEPTH = 3  # results among which something constitutional must stand (EVA-2)
_USUAL_IMPORTANCE = 0.5  # of items that declare no tier, or another: as a normal one


@dataclass(frozen=True, slots=True)
class ItemFacts:
    """What is known of something that can be found.

    Attributes:
        tier: How important it is, as its document declares it.
        modified_at: Seconds since the epoch, None where unknown.
    """

    tier: str | None = None
    modified_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredQuery:
    """One query, its answer, and what would have been right.

    Attributes:
        at: When it was asked, seconds since the epoch.
        ranked: What was returned, best first.
        channels_by_name: The channels that found each of these.
        grades: Judgements; 0 is judged and irrelevant.
    """

    query_id: str
    at: float
    intent: str
    ranked: Sequence[str]
    channels_by_name: Mapping[str, Collection[str]]
    grades: Mapping[str, int]

    @property
    def relevant(self) -> list[str]:
        """What was judged relevant."""
        return [name for name, grade in self.grades.items() if grade > 0]


@dataclass(frozen=True, slots=True)
class ChannelShare:
    """What one channel is worth, as shares of the first results.

    Attributes:
        shown: Results that it found, among others or alone.
        exclusive: Results that it alone found.
        relevant, exclusive_relevant: The same, of the results that were judged relevant; None where none was.
    """

    shown: float
    exclusive: float
    relevant: float | None
    exclusive_relevant: float | None


@dataclass(frozen=True, slots=True)
class MemoryMeasures:
    """Estimates over those queries that say something about each; None where none does.

    Attributes:
        constitutional_surfacing: Share of queries for which something constitutional is relevant, and is among the
            first three.
        importance_weighted_recall: Share of the relevant found, everything counted by its importance.
        cold_start_recall: Share of the relevant that were under 48 hours old when asked for, and found.
        cold_start_share: Share of results under 48 hours old.
        intent_weighted_ndcg: nDCG@10, queries counted by the weight of their intent.
        queries: How many queries stand behind each of these.
        channels: By name.
    """

    constitutional_surfacing: Estimate | None
    importance_weighted_recall: Estimate | None
    cold_start_recall: Estimate | None
    cold_start_share: Estimate | None
    intent_weighted_ndcg: Estimate | None
    queries: Mapping[str, int]
    channels: Mapping[str, ChannelShare]

    def as_json(self) -> dict[str, Any]:
        """For machines."""
        measures = {
            name: None if value is None else {"mean": value.mean, "interval": [value.low, value.high]}
            for name in self.queries
            if (value := getattr(self, name)) or value is None
        }
        channels = {
            name: {part: getattr(worth, part) for part in ("shown", "exclusive", "relevant", "exclusive_relevant")}
            for name, worth in self.channels.items()
        }
        return {"measures": measures, "queries": dict(self.queries), "channels": channels}


def memory_measures(
    queries: Sequence[AnsweredQuery], items: Mapping[str, ItemFacts], settings: EvaluationSettings
) -> MemoryMeasures:
    """Measure answers as those of a memory.

    Args:
        items: Facts about what was returned or judged; what is missing is of no tier and no known age.
    """
    facts = _Facts(items, settings)
    surfacing = [float(facts.surfaces(one)) for one in queries if facts.constitutional(one)]
    recall = [share for one in queries if (share := facts.recall(one)) is not None]
    cold = [share for one in queries if (share := facts.cold_recall(one)) is not None]
    fresh = [facts.fresh_share(one) for one in queries if one.ranked]
    judged = [one for one in queries if one.relevant]
    return MemoryMeasures(
        constitutional_surfacing=_estimate(surfacing, settings),
        importance_weighted_recall=_estimate(recall, settings),
        cold_start_recall=_estimate(cold, settings),
        cold_start_share=_estimate(fresh, settings),
        intent_weighted_ndcg=_intent_weighted(judged, settings),
        queries={
            "constitutional_surfacing": len(surfacing),
            "importance_weighted_recall": len(recall),
            "cold_start_recall": len(cold),
            "cold_start_share": len(fresh),
            "intent_weighted_ndcg": len(judged),
        },
        channels=channel_contributions(queries),
    )


def channel_contributions(queries: Sequence[AnsweredQuery], depth: int = DEPTH) -> dict[str, ChannelShare]:
    """What each channel contributed to the first `depth` results, over all queries together."""
    places = list(_places(queries, depth))
    right = [channels for channels, relevant in places if relevant]
    names = sorted({channel for channels, _ in places for channel in channels})
    everything = [channels for channels, _ in places]
    return {
        name: ChannelShare(
            shown=_share(everything, name),
            exclusive=_share(everything, name, alone=True),
            relevant=_share(right, name) if right else None,
            exclusive_relevant=_share(right, name, alone=True) if right else None,
        )
        for name in names
    }


class _Facts:
    """Which results count, and for how much."""

    def __init__(self, items: Mapping[str, ItemFacts], settings: EvaluationSettings) -> None:
        self._items = items
        self._rules = settings.memory

    def constitutional(self, one: AnsweredQuery) -> set[str]:
        return {name for name in one.relevant if self._item(name).tier in self._rules.constitutional_tiers}

    def surfaces(self, one: AnsweredQuery) -> bool:
        return bool(self.constitutional(one) & {*one.ranked[:_CONSTITUTIONAL_DEPTH]})

    def recall(self, one: AnsweredQuery) -> float | None:
        total = sum(self._importance(name) for name in one.relevant)
        shown = {*one.ranked[:DEPTH]}
        return sum(self._importance(name) for name in one.relevant if name in shown) / total if total > 0.0 else None

    def cold_recall(self, one: AnsweredQuery) -> float | None:
        new = {name for name in one.relevant if self.is_new(name, one.at)}
        return len(new & {*one.ranked[:DEPTH]}) / len(new) if new else None

    def fresh_share(self, one: AnsweredQuery) -> float:
        shown = one.ranked[:DEPTH]
        return sum(self.is_new(name, one.at) for name in shown) / len(shown)

    def is_new(self, name: str, at: float) -> bool:
        modified = self._item(name).modified_at
        return modified is not None and 0.0 <= at - modified < NEW_HOURS * _SECONDS_PER_HOUR

    def _importance(self, name: str) -> float:
        tier = self._item(name).tier
        return self._rules.importance.get(tier or "", _USUAL_IMPORTANCE)

    def _item(self, name: str) -> ItemFacts:
        return self._items.get(name, _UNKNOWN)


_UNKNOWN = ItemFacts()


def _places(queries: Sequence[AnsweredQuery], depth: int) -> Iterator[tuple[Collection[str], bool]]:
    """The channels behind every result, and whether it was judged relevant."""
    for one in queries:
        for name in one.ranked[:depth]:
            yield one.channels_by_name.get(name, ()), one.grades.get(name, 0) > 0


def _share(channels_of_each: Sequence[Collection[str]], name: str, *, alone: bool = False) -> float:
    return sum(
        name in channels_of_each and not (alone and len(channels_of_each) > 1) for channels_of_each in channels_of_each
    ) / len(channels_of_each)


def _intent_weighted(judged: Sequence[AnsweredQuery], settings: EvaluationSettings) -> Estimate | None:
    if not judged:
        return None
    run = {one.query_id: {name: -float(rank) for rank, name in enumerate(one.ranked)} for one in judged}
    gains = measure(run, {one.query_id: dict(one.grades) for one in judged})["ndcg_at_10"]
    rules = settings.memory
    weights = [rules.intent_weights.get(one.intent, 1.0) for one in judged]
    if not sum(weights):
        return None
    value = snips([gains[one.query_id] for one in judged], weights, settings)
    return Estimate(value.estimate, value.low, value.high)


def _estimate(values: Sequence[float], settings: EvaluationSettings) -> Estimate | None:
    return estimate(values, settings) if values else None
