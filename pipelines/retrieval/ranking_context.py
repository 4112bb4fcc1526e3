"""What one query is ranked on: its candidates by channel, and what is believed of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipelines.domain.matching import Match
from pipelines.domain.questions import question_of
from pipelines.domain.ranking import Channel, Signal
from pipelines.retrieval.answer.matching import doubtful, match_of
from pipelines.retrieval.channels.graph import GraphChannel
from pipelines.retrieval.channels.rankings import Hits, ScoreRows
from pipelines.retrieval.channels.run import (
    ChannelRankings,
    Ranked,
)
from pipelines.retrieval.channels.second_pass import nearness_to_session
from pipelines.retrieval.channels.triggers import with_learned_triggers
from pipelines.retrieval.query.plan import Plan
from pipelines.retrieval.query.understanding.shift import usage_kept
from pipelines.retrieval.ranking.quality import Moment, telling
from pipelines.retrieval.ranking.signals import active_signals, answering, own_scores, pseudo_relevance_signals
from pipelines.retrieval.ranking.table import Candidates
from pipelines.retrieval.ranking.weights import Shared, SignalWeights, WeightDraws, believed_in_common
from pipelines.retrieval.rerank.best import Rerankers, matcher, rerankers
from pipelines.retrieval.rerank.diversity import vectors_of
from pipelines.retrieval.resources import Resources
from pipelines.retrieval.snapshot.ports import ReadableBeliefs
from pipelines.retrieval.snapshot.snapshot import BeliefReading


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingContext:
    """What one query is ranked on: what channels gave, and what is believed.

    Attributes:
        answered: Channels that have something to say.
        reranking: What reranking at the best candidates again.
    """

    plan: Plan
    ranked: Mapping[Channel, Ranked]
    answered: frozenset[Channel]
    reranking: Rerankers
    reading: BeliefReading
    weights: SignalWeights
    draws: WeightDraws
    moment: Moment

    @property
    def hits(self) -> Mapping[Channel, Hits]:
        """What each channel ranked first, as deep as was planned."""
        return {channel: ranked.ranking.head(self.plan.depth) for channel, ranked in self.ranked.items()}

    def matches(self, candidates: Candidates) -> list[Match]:
        """How well each candidate of this query matches it by itself."""
        compare = matcher(self.ranked) if Signal.LATE_INTERACTION in self.reranking.signals else None
        unknown: list[float | None] = [None] * len(candidates)
        cosines, bm25 = (
            own_scores(candidates, channel, self.ranked) if channel in self.answered else unknown
            for channel in (Channel.DENSE, Channel.LEXICAL)
        )
        tokens = unknown if compare is None else compare(candidates.rows).tolist()
        terms = max(1, len(self.plan.words.split()))
        told = zip(cosines, bm25, tokens, strict=True)
        return [match_of(cosine, score, terms, met) for cosine, score, met in told]

    def passes(self, candidate: Candidates) -> bool:
        """Whether a candidate, a table of one, is likely enough to be an answer, as far as that can be told."""
        calibration = self.reading.calibration
        if calibration is None:
            return True
        (match,) = self.matches(candidate)
        return not doubtful(match, calibration)

    def scorers(self, *, complete: bool) -> Mapping[Channel, ScoreRows]:
        """What scores contents that a channel did not find; nothing where scores are not to be completed."""
        return {
            channel: ranked.score_rows
            for channel, ranked in self.ranked.items()
            if complete and ranked.score_rows is not None
        }


def ranking_contexts(
    resources: Resources, plans: Sequence[Plan], found: ChannelRankings, now: float
) -> list[RankingContext]:
    """The context of each query of a batch; queries that no belief tells apart share weights and draws."""
    believed: Shared = {}
    return [_context(resources, plan, found.of(at), now, believed) for at, plan in enumerate(plans)]


def _context(
    resources: Resources, plan: Plan, found: Mapping[Channel, Ranked], now: float, believed: Shared
) -> RankingContext:
    # After a change of topic a session reads what all believe: what it learned was about another topic.
    shift, tuned = plan.understanding.shift, resources.settings
    reading = resources.snapshot.reading(None if shift is not None and shift.happened else plan.query.session_id)
    plan, found = _with_learned_triggers(resources, plan, found, reading.beliefs)
    answered = answering(found)
    reranking = rerankers(plan.text, found, resources.pairs, tuned, wanted=plan.channels, texts_of=resources.texts_of)
    nearness = nearness_to_session(found, plan.query.memory)
    asked_before = reading.beliefs.asked_before(question_of(plan.query.text))
    told = telling(plan.query, resources.facts, nearness=nearness, asked_before=asked_before) | reranking.signals
    told |= pseudo_relevance_signals(vectors_of(found), resources.settings.pseudo_relevance)
    active = active_signals(answered, tuned.without_signals, telling=told)
    weights, draws = believed_in_common(plan.query, reading.beliefs, active, tuned.order_draws, believed)
    return RankingContext(
        plan=plan,
        ranked=found,
        answered=answered,
        reranking=reranking,
        reading=reading,
        weights=weights,
        draws=draws,
        moment=Moment(plan.query, now, resources.facts, usage_kept(shift, tuned.understanding.shift), nearness),
    )


def _with_learned_triggers(
    resources: Resources, plan: Plan, found: Mapping[Channel, Ranked], beliefs: ReadableBeliefs
) -> tuple[Plan, dict[Channel, Ranked]]:
    graph, row_of = resources.channels.following.get(Channel.GRAPH), resources.snapshot.generation.chunks.row_of
    is_name = graph.knows if isinstance(graph, GraphChannel) else lambda _term: False
    return with_learned_triggers(plan, found, beliefs.triggers, row_of, is_name)
