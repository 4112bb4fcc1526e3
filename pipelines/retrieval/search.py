"""From queries to what each is ranked on: candidates by channel, and beliefs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from pipelines.domain.documents import Domain
from pipelines.domain.ids import question_of
from pipelines.domain.matching import MatchFeatures
from pipelines.domain.ranking import Channel, Query, Signal
from pipelines.retrieval.answer.confidence import features_of, is_doubtful
from pipelines.retrieval.channels.following import GraphChannel
from pipelines.retrieval.channels.run import (
    ChannelRankings,
    ChannelRequest,
    Channels,
    Hits,
    Ints,
    Ranked,
    ScoreRows,
    run_channels,
)
from pipelines.retrieval.channels.searching import with_learned_triggers
from pipelines.retrieval.channels.second_pass import Hints, nearness_to_session, search_again
from pipelines.retrieval.query.plan import Plan, make_plan
from pipelines.retrieval.query.understanding import usage_share
from pipelines.retrieval.ranking.fusion import SharedWeights, SignalWeights, WeightDraws, believed_in_common
from pipelines.retrieval.ranking.signals import Moment, active_signals, answering, available_signals, own_scores
from pipelines.retrieval.ranking.table import Candidates
from pipelines.retrieval.rerank.best import Rerankers, matcher, rerankers
from pipelines.retrieval.rerank.diversity import vectors_of
from pipelines.retrieval.settings import RetrievalSettings
from pipelines.retrieval.snapshot.documents import GenerationFacts
from pipelines.retrieval.snapshot.ports import PairScorer
from pipelines.retrieval.snapshot.snapshot import BeliefReading, Snapshot

Batch = TypeVar("Batch")
Searched = TypeVar("Searched")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Resources:
    """One snapshot, its opened channels and facts, the settings, and the threads that channels search in."""

    snapshot: Snapshot
    channels: Channels
    facts: GenerationFacts
    settings: RetrievalSettings
    threads: Executor
    pairs: PairScorer | None = None

    @property
    def graph(self) -> GraphChannel | None:
        """The graph channel; None where the generation has none."""
        channel = self.channels.following.get(Channel.GRAPH)
        return channel if isinstance(channel, GraphChannel) else None

    def texts_of(self, rows: Sequence[int] | Ints) -> list[str]:
        """Texts of contents by row."""
        return [content.text for content in self.snapshot.generation.chunks.contents(rows)]


class Stopwatch:
    """Times the stages of answers that are made together; each answer has its share."""

    def __init__(self, channels_ms: float, answers: int) -> None:
        """Begin with the time that the channels took for each of so many answers."""
        self.timings_ms: dict[str, float] = {"channels": channels_ms}
        self._answers = answers

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time what runs inside under this name, beside what ran under it before."""
        started = time.perf_counter()
        yield
        elapsed_ms = (time.perf_counter() - started) * 1000.0 / self._answers
        self.timings_ms[name] = self.timings_ms.get(name, 0.0) + elapsed_ms


def search(resources: Resources, queries: Sequence[Query]) -> tuple[list[Plan], ChannelRankings]:
    """Plan, search, and search again for queries that need it."""
    graph, tuned = resources.graph, resources.settings
    plans = [make_plan(query, resources.facts, resources.snapshot.filters, tuned) for query in queries]
    run = partial(run_channels, resources.channels, budget_ms=tuned.budget_ms, threads=resources.threads)
    first = run([ChannelRequest(plan.words, plan.channels, plan.depth, plan.among) for plan in plans])
    hints = Hints(resources.texts_of, graph.names_near if graph is not None else lambda _text, _count: [])
    return search_again(plans, first, run, hints, tuned)


def one_ahead(
    batches: Sequence[Batch], search: Callable[[Batch], Searched], rank: Callable[[Searched], list[Result]]
) -> list[Result]:
    """`rank(search(batch))` of all batches, in their order; no more than one batch is searched for ahead."""
    if len(batches) == 1:
        return rank(search(batches[0]))
    results: list[Result] = []
    with ThreadPoolExecutor(1, thread_name_prefix="ahead") as ahead:
        upcoming = [ahead.submit(search, batch) for batch in batches[:1]]
        for at in range(len(batches)):
            searched = upcoming.pop().result()
            upcoming += [ahead.submit(search, batch) for batch in batches[at + 1 : at + 2]]
            results += rank(searched)
    return results


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingContext:
    """What one query is ranked on: what channels gave, and what is believed.

    Attributes:
        answered: Channels that have something to say.
        reranking: What scores the best candidates again.
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

    def match_features(self, candidates: Candidates) -> list[MatchFeatures]:
        """How well each candidate of this query matches it by itself."""
        compare = matcher(self.ranked) if Signal.LATE_INTERACTION in self.reranking.used else None
        unknown: list[float | None] = [None] * len(candidates)
        cosines, bm25 = (
            own_scores(candidates, channel, self.ranked) if channel in self.answered else unknown
            for channel in (Channel.DENSE, Channel.LEXICAL)
        )
        tokens = unknown if compare is None else compare(candidates.rows).tolist()
        terms = max(1, len(self.plan.words.split()))
        measured = zip(cosines, bm25, tokens, strict=True)
        return [features_of(cosine, score, terms, match) for cosine, score, match in measured]

    def passes(self, candidate: Candidates) -> bool:
        """Whether a candidate, a table of one, is likely enough to be an answer, as far as that is known."""
        answering = self.reading.answering
        return answering is None or not is_doubtful(self.match_features(candidate)[0], answering)

    def threshold(self, domain: Domain) -> float | None:
        """Confidence from which on whoever asks should act on a result; None while no decision was reviewed."""
        return self.reading.beliefs.acting_threshold(domain, self.plan.query.agent)

    def scorers(self, *, complete: bool) -> Mapping[Channel, ScoreRows]:
        """What scores contents that a channel did not rank; nothing where scores are not to be completed."""
        return {
            channel: ranked.score_rows
            for channel, ranked in self.ranked.items()
            if complete and ranked.score_rows is not None
        }


def ranking_contexts(
    resources: Resources, plans: Sequence[Plan], rankings: ChannelRankings, now: float
) -> list[RankingContext]:
    """The context of each query of a batch; queries that no belief tells apart share weights and draws."""
    believed: SharedWeights = {}
    return [_context(resources, plan, rankings.of(at), now, believed) for at, plan in enumerate(plans)]


def _context(
    resources: Resources, plan: Plan, by_channel: Mapping[Channel, Ranked], now: float, believed: SharedWeights
) -> RankingContext:
    # After a change of topic a session reads what all believe: what it learned was about another topic.
    shift, tuned, graph = plan.understanding.shift, resources.settings, resources.graph
    reading = resources.snapshot.reading(None if shift is not None and shift.happened else plan.query.session_id)
    row_of, beliefs = resources.snapshot.generation.chunks.row_of, reading.beliefs
    is_name = graph.knows if graph is not None else lambda _term: False
    plan, by_channel = with_learned_triggers(plan, by_channel, beliefs.triggers, row_of, is_name)
    reranking = rerankers(
        plan.text, by_channel, resources.pairs, tuned, wanted=plan.channels, texts_of=resources.texts_of
    )
    share = usage_share(shift, tuned.understanding.shift)
    moment = Moment(plan.query, now, resources.facts, share, nearness_to_session(by_channel, plan.query.memory))
    available = available_signals(moment, asked_before=beliefs.asked_before(question_of(plan.query.text)))
    available |= reranking.used.keys()
    if tuned.pseudo_relevance.first and vectors_of(by_channel) is not None:
        available |= {Signal.PSEUDO_RELEVANCE}
    answered = answering(by_channel)
    active = active_signals(answered, tuned.without_signals, available=available)
    weights, draws = believed_in_common(plan.query, beliefs, active, believed)
    return RankingContext(
        plan=plan,
        ranked=by_channel,
        answered=answered,
        reranking=reranking,
        reading=reading,
        weights=weights,
        draws=draws,
        moment=moment,
    )
