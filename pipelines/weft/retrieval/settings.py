"""What tunes retrieval; the values stand in `conf/base/retrieval.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Self

from pydantic import Field, model_validator

from weft.domain.documents import Domain
from weft.domain.links import RelationSource
from weft.domain.ranking import Channel, Signal
from weft.domain.ranking import FusionMode as FusionMode  # noqa: PLC0414  it is a value of settings as well
from weft.domain.ranking import ResultUnit as ResultUnit  # noqa: PLC0414  likewise
from weft.domain.sections import Count, NonNegative, Positive, Section, Share, Whole
from weft.domain.understanding import Complexity, QueryType
from weft.embedding.settings import CrossEncoderSettings
from weft.indexes.graph.graph import EdgeKind


@dataclass(frozen=True, slots=True)
class OffValue:
    """The value at which the feature behind a setting is off: so an ablation finds it (EVA-9)."""

    value: object


class TypeSettings(Section):
    """Cues of each type of query, and the confidence from which weights are read for the type as intent."""

    cues: Mapping[QueryType, tuple[str, ...]]
    intent_from: Share

    @model_validator(mode="after")
    def _every_type_has_cues(self) -> Self:
        if missing := [kind.value for kind in QueryType if kind not in self.cues]:
            raise ValueError(f"cues: expected a list per type, none for {missing}")
        return self


class RouterSettings(Section):
    """What makes a query simple or complex, and what each kind gets."""

    enabled: bool
    simple_words: Whole
    complex_words: Count
    question_words: tuple[str, ...]
    comparisons: tuple[str, ...]
    limits: Mapping[Complexity, Count]


class ExpansionSettings(Section):
    """When and how a query is asked in other words, too."""

    enabled: bool
    fewer_than: Whole
    variants: Annotated[int, Field(ge=0, le=3)]
    original_weight: Annotated[float, Field(gt=0.0)]


class PrefilterSettings(Section):
    """From which confidence an inferred filter leaves documents out."""

    enabled: bool
    applied_above: Share


class ScopeSettings(Section):
    """Which domain each agent is at home in."""

    homes: Mapping[str, Domain]


class ShiftSettings(Section):
    """When a session has changed its topic, and what follows."""

    enabled: bool
    distance: Annotated[float, Field(ge=0.0, le=2.0)]
    most_distance: Annotated[float, Field(ge=0.0, le=2.0)]
    usage_share: Share
    widening: Annotated[float, Field(ge=1.0)]

    @model_validator(mode="after")
    def _bounds_are_in_order(self) -> Self:
        if self.distance > self.most_distance:
            raise ValueError(f"shift: expected distance <= most_distance, found {self.distance} > {self.most_distance}")
        return self


class UnderstandingSettings(Section):
    """Everything that is read out of a query."""

    type: TypeSettings
    router: RouterSettings
    expansion: ExpansionSettings
    prefilter: PrefilterSettings
    scope: ScopeSettings
    shift: ShiftSettings


class ContextSettings(Section):
    """Budget and bounds of contexts."""

    max_context_tokens: Count
    high: Share
    low: Share

    @model_validator(mode="after")
    def _bounds_are_in_order(self) -> Self:
        if self.low > self.high:
            raise ValueError(f"context: expected low <= high, found {self.low} > {self.high}")
        return self


class BudgetSettings(Section):
    """Time per query that a channel has: one that searches, and one that follows what these found (RET-7)."""

    searching: Positive
    following: Positive


class GraphSettings(Section):
    """How activation spreads."""

    edge_weights: Mapping[EdgeKind, Share]  # of kinds that `retrieval.edge_weights` does not name, or otherwise
    found_strength: Share  # of a relation that was found after the generation was built; a declared one has 1
    hops: Count
    decay: Share
    least_energy: NonNegative
    seed_hits: Whole

    @property
    def strengths(self) -> Mapping[RelationSource, float]:
        """Of relations that are no part of a generation, by who says so."""
        return {**dict.fromkeys(RelationSource, self.found_strength), RelationSource.DECLARED: 1.0}


class DegreeSettings(Section):
    """How well connected contents are."""

    references: Share  # weight of each kind of reference
    cap: Share
    excluded_tiers: tuple[str, ...]


class DiversitySettings(Section):
    """What is shown together (RET-12)."""

    depth: Count
    duplicate_cosine: Annotated[Positive, OffValue(1.1)]
    mmr: Annotated[NonNegative, OffValue(0.0)]
    represent: bool
    least_similarity: Annotated[float, Field(ge=-1.0, le=1.0)]


class RerankSettings(Section):
    """What scores the best candidates again (RET-10)."""

    depth: Count
    late_interaction: bool
    span: Positive
    cross_encoder: CrossEncoderSettings


class PseudoRelevanceSettings(Section):
    """What the first candidates say for those that are like them."""

    first: Annotated[int, Field(ge=0), OffValue(0)]
    temperature: Positive
    sharpness: Positive


class QualitySettings(Section):
    """How quickly novelty fades, and what does not go stale (RET-13, LRN-6)."""

    novelty_half_life_hours: Positive
    propagation: Annotated[Share, OffValue(0.0)]
    lasting: tuple[str, ...]  # intents of history that age does not touch
    citations_half: Positive  # citations of a paper that give back half of the freshness which its age took
    momentum_half: Positive  # change of degree that moves momentum half of the way from .5 to 0 or 1
    # share of its score that what stands aside loses, release notes, tests and examples, where nobody asks for it; and
    # what is no function, where a query asks how code works
    aside_loses: Annotated[Share, OffValue(0.0)]
    talk_loses: Annotated[Share, OffValue(0.0)]  # the latter of conversations


class SessionSettings(Section):
    """What retrieval makes of a session's memory (RET-19)."""

    repeat_penalty: Annotated[Share, OffValue(0.0)]


class ProcessSettings(Section):
    """Batches spread over processes: from how many queries on that pays."""

    processes: Whole  # how many there may be, one core each; 0 takes as many as the cluster has CPUs, 1 starts none
    # queries that each process must have to be worth starting: fewer than twice as many are answered by the
    # process that asks
    least_queries: Count

    def worth(self, queries: int) -> int:
        """How many processes so many queries are worth; 1 is the one that asks."""
        return max(1, min(self.processes or queries, queries // self.least_queries))


SEARCHING = tuple(channel for channel in Channel if channel is not Channel.ANSWERED)
"""Channels that search a generation; what was answered before is looked up in verdicts (LRN-23)."""
_FOLLOWING = frozenset({Channel.GRAPH, Channel.DEGREE})
_REFERENCES = (EdgeKind.IMPORTS, EdgeKind.REFERENCES, EdgeKind.TESTS, EdgeKind.CITES)


class RetrievalSettings(Section):
    """Depths, weights, limits and time budgets of a search."""

    channels: Annotated[tuple[Channel, ...], Field(min_length=1)]
    without_signals: tuple[Signal, ...]
    effects: Annotated[bool, OffValue(False)]
    fusion: FusionMode
    unit: ResultUnit
    depth: Count
    complete_scores: bool
    graph: GraphSettings
    degree: DegreeSettings
    budget_ms: BudgetSettings
    channel_weights: Mapping[Channel, NonNegative]  # of the static fusions; a channel that is not named has 1
    # of kinds of edges that weigh the same in the graph and in degree; one that neither names weighs 0
    edge_weights: Mapping[EdgeKind, Share]
    rrf_k: Positive
    common_word: Share
    pseudo_relevance: PseudoRelevanceSettings
    rerank: RerankSettings
    diversity: DiversitySettings
    mpab_factor: Annotated[NonNegative, OffValue(0.0)]
    mpab_floor: Annotated[Share, OffValue(0.0)]
    passage_headings: Annotated[NonNegative, OffValue(0.0)]
    encode_batch: Count
    encode_threads: Whole
    channel_threads: Count
    spread: ProcessSettings
    time_step_s: Positive
    refresh_s: Positive
    understanding: UnderstandingSettings
    context: ContextSettings
    quality: QualitySettings
    session: SessionSettings
    ask: Share

    @property
    def channel_budgets_ms(self) -> Mapping[Channel, float]:
        """Time per query of every channel that searches a generation."""
        searching, following = self.budget_ms.searching, self.budget_ms.following
        return {channel: following if channel in _FOLLOWING else searching for channel in SEARCHING}

    @property
    def static_weights(self) -> Mapping[Channel, float]:
        """NonNegative in the static fusions of every channel that searches a generation."""
        return {**dict.fromkeys(SEARCHING, 1.0), **self.channel_weights}

    @property
    def graph_weights(self) -> Mapping[EdgeKind, float]:
        """What each kind of edge passes on."""
        return {**self.edge_weights, **self.graph.edge_weights}

    @property
    def degree_weights(self) -> Mapping[EdgeKind, float]:
        """What each kind of edge counts for in degree."""
        return {**self.edge_weights, **dict.fromkeys(_REFERENCES, self.degree.references)}
