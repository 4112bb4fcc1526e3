"""Measures of a memory (EVA-2): what must not be missed, what is new, and which channels are worth having."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from weft.domain.ranking import RANKING_ONLY
from weft.evaluation.measures.metrics import Estimate, estimate, measure
from weft.evaluation.measures.off_policy import snips
from weft.evaluation.settings import EvaluationSettings
from weft.learning.document_priors import DeclaredPrior
from weft.quality.signals import tier

DEPTH = 10
"""Results that count as shown: a first page."""

NEW_S = 48.0 * 3600.0
"""Age in seconds below which an item has had no time to earn feedback (EVA-2)."""

_CONSTITUTIONAL = "constitutional"  # the tier that must not be missed
_CONSTITUTIONAL_DEPTH = 3  # results among which something constitutional must stand (EVA-2)


@dataclass(frozen=True, slots=True)
class ItemFacts:
    """What is known of something that can be found."""

    tier: str | None = None  # how important it is, as its document declares it
    modified_at: float | None = None  # seconds since the epoch, None where unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredQuery:
    """One query, its answer, and what would have been right."""

    query_id: str
    at: float  # when it was asked, seconds since the epoch
    intent: str
    ranked: Sequence[str]  # what was returned, best first
    channels_by_name: Mapping[str, Collection[str]]  # the channels that found each of these
    grades: Mapping[str, int]  # judgements; 0 is judged and irrelevant
    confidence: float = 1.0  # in the intent, in [0, 1]; 1 where the caller stated it

    @property
    def relevant(self) -> list[str]:
        """What was judged relevant."""
        return [name for name, grade in self.grades.items() if grade > 0]


@dataclass(frozen=True, slots=True)
class ChannelShare:
    """What one channel is worth, as shares of the first results."""

    shown: float  # results that it found, among others or alone
    exclusive: float  # results that it alone found
    relevant: float | None  # The same, of the results that were judged relevant; None where none was
    exclusive_relevant: float | None


@dataclass(frozen=True, slots=True)
class MemoryMeasures:
    """Estimates over those queries that say something about each; None where none does."""

    # share of queries that show something constitutional among the first three, of those for which some of it is
    # relevant
    constitutional_surfacing: Estimate | None
    importance_weighted_recall: Estimate | None  # share of the relevant found, everything counted by its importance
    cold_start_recall: Estimate | None  # share of the relevant that were under 48 hours old when asked for, and found
    cold_start_share: Estimate | None  # share of results under 48 hours old
    # nDCG@10, queries counted by the weight of their intent times the confidence in it
    intent_weighted_ndcg: Estimate | None
    queries: Mapping[str, int]  # how many queries stand behind each of these
    channels: Mapping[str, ChannelShare]  # by name

    def as_json(self) -> dict[str, Any]:
        """For machines."""
        values: dict[str, Estimate | None] = {name: getattr(self, name) for name in self.queries}
        measures = {
            name: None if value is None else {"mean": value.mean, "interval": [value.low, value.high]}
            for name, value in values.items()
        }
        channels = {name: asdict(worth) for name, worth in self.channels.items()}
        return {"measures": measures, "queries": dict(self.queries), "channels": channels}


def memory_measures(
    queries: Sequence[AnsweredQuery],
    items: Mapping[str, ItemFacts],
    settings: EvaluationSettings,
    declared: DeclaredPrior,  # what a tier is worth, here as in searches
) -> MemoryMeasures:
    """Measure answers as those of a memory."""
    facts = _Facts(items, declared)
    weighed = [one for one in queries if one.relevant and _intent_weight(one, settings) > 0.0]
    values: dict[str, list[float]] = {
        "constitutional_surfacing": [float(facts.surfaces(one)) for one in queries if facts.constitutional(one)],
        "importance_weighted_recall": [share for one in queries if (share := facts.recall(one)) is not None],
        "cold_start_recall": [share for one in queries if (share := facts.cold_recall(one)) is not None],
        "cold_start_share": [facts.fresh_share(one) for one in queries if one.ranked],
    }
    return MemoryMeasures(
        **{name: estimate(some, settings) if some else None for name, some in values.items()},
        intent_weighted_ndcg=_intent_weighted(weighed, settings),
        queries={name: len(some) for name, some in values.items()} | {"intent_weighted_ndcg": len(weighed)},
        channels=channel_contributions(queries),
    )


def channel_contributions(queries: Sequence[AnsweredQuery], depth: int = DEPTH) -> dict[str, ChannelShare]:
    """What each channel found of the first `depth` results, over all queries together; who only ranks finds nothing."""
    places = [(one, name) for one in queries for name in one.ranked[:depth]]
    channels_of_each = [{*one.channels_by_name.get(name, ())} - RANKING_ONLY for one, name in places]
    relevant = [
        channels for (one, name), channels in zip(places, channels_of_each, strict=True) if one.grades.get(name, 0) > 0
    ]
    names = sorted({channel for channels in channels_of_each for channel in channels})
    return {
        name: ChannelShare(*_shares(channels_of_each, name), *(_shares(relevant, name) if relevant else (None, None)))
        for name in names
    }


def _shares(channels_of_each: Sequence[Collection[str]], name: str) -> tuple[float, float]:
    """Of some results the share that a channel found, and the share that no other did."""
    of_channel = [channels for channels in channels_of_each if name in channels]
    return len(of_channel) / len(channels_of_each), sum(len(channels) == 1 for channels in of_channel) / len(
        channels_of_each
    )


class _Facts:
    """Which results count, and for how much."""

    def __init__(self, items: Mapping[str, ItemFacts], declared: DeclaredPrior) -> None:
        self._items = items
        self._declared = declared

    def constitutional(self, one: AnsweredQuery) -> set[str]:
        return {name for name in one.relevant if (self._item(name).tier or "").casefold() == _CONSTITUTIONAL}

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
        return modified is not None and 0.0 <= at - modified < NEW_S

    def _importance(self, name: str) -> float:
        value = tier(self._item(name).tier, self._declared.tiers)
        return self._declared.undeclared if value is None else value

    def _item(self, name: str) -> ItemFacts:
        return self._items.get(name, ItemFacts())


def _intent_weight(one: AnsweredQuery, settings: EvaluationSettings) -> float:
    """How much a query counts: what is known of its intent by halves counts by half."""
    return settings.memory.intent_weights.get(one.intent, 1.0) * one.confidence


def _intent_weighted(weighed: Sequence[AnsweredQuery], settings: EvaluationSettings) -> Estimate | None:
    if not weighed:
        return None
    run = {one.query_id: {name: -float(rank) for rank, name in enumerate(one.ranked)} for one in weighed}
    gains = measure(run, {one.query_id: dict(one.grades) for one in weighed})["ndcg_at_10"]
    weights = [_intent_weight(one, settings) for one in weighed]
    value = snips([gains[one.query_id] for one in weighed], weights, settings)
    return Estimate(value.estimate, value.low, value.high)
