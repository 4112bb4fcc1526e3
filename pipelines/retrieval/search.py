"""From queries to what each is ranked on: candidates by channel, and beliefs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import TypeVar

from pipelines.domain.matching import Match
from pipelines.domain.questions import question_of
from pipelines.domain.ranking import Channel, Query, Signal
from pipelines.retrieval.answer.confidence import doubtful, match_of
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
from pipelines.retrieval.query.understanding import usage_kept
from pipelines.retrieval.ranking.fusion import Shared, SignalWeights, WeightDraws, believed_in_common
from pipelines.retrieval.ranking.signals import (
    Moment,
    active_signals,
    answering,
    own_scores,
    pseudo_relevance_signals,
    telling,
)
from pipelines.retrieval.ranking.table import Candidates
from pipelines.retrieval.rerank.best import Rerankers, matcher, rerankers
from pipelines.retrieval.rerank.diversity import vectors_of
from pipelines.retrieval.settings import RetrievalSettings
from pipelines.retrieval.snapshot.documents import GenerationFacts
from pipelines.retrieval.snapshot.ports import PairScorer, ReadableBeliefs
from pipelines.retrieval.snapshot.snapshot import BeliefReading, Snapshot


@dataclass(frozen=True, slots=True)
class Resources:
    """One snapshot, its opened channels and facts, the settings, and the threads that channels search in."""

    snapshot: Snapshot
    channels: Channels
    facts: GenerationFacts
    settings: RetrievalSettings
    threads: Executor
    pairs: PairScorer | None = None

    def texts_of(self, rows: Sequence[int] | Ints) -> list[str]:
        """Texts of contents by row."""
        return [content.text for content in self.snapshot.generation.chunks.contents(rows)]


class Stopwatch:
    """Times the stages of answers that are made together; each answer is told its share."""

    def __init__(self, channels_ms: float, answers: int) -> None:
        """Begin with the time that the channels took for each of so many answers."""
        self.timings_ms: dict[str, float] = {"channels": channels_ms}
        self._answers = answers

    def stage(self, name: str) -> _Stage:
        """Time what runs inside under this name, beside what ran under it before."""
        return _Stage(self, name)

    def add(self, name: str, seconds: float) -> None:
        """Count what a stage took."""
        self.timings_ms[name] = self.timings_ms.get(name, 0.0) + seconds * 1000.0 / self._answers


class _Stage:
    """A context: a generator would cost as much as what some stages do."""

    __slots__ = ("_name", "_started", "_watch")

    def __init__(self, watch: Stopwatch, name: str) -> None:
        self._watch = watch
        self._name = name

    def __enter__(self) -> None:
        self._started = time.perf_counter()

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._watch.add(self._name, time.perf_counter() - self._started)


def search(resources: Resources, queries: Sequence[Query]) -> tuple[list[Plan], ChannelRankings]:
    """Plan, search, and search again for queries that need it."""
    plans = [make_plan(query, resources.facts, resources.snapshot.filters, resources.settings) for query in queries]
    first = _run(resources, [ChannelRequest(plan.words, plan.channels, plan.depth, plan.among) for plan in plans])
    return search_again(plans, first, partial(_run, resources), _hints(resources), resources.settings)


def _run(resources: Resources, requests: Sequence[ChannelRequest]) -> ChannelRankings:
    tuned = resources.settings
    return run_channels(resources.channels, requests, budget_ms=tuned.budget_ms, threads=resources.threads)


def _hints(resources: Resources) -> Hints:
    graph = resources.channels.following.get(Channel.GRAPH)
    return Hints(
        texts_of=resources.texts_of,
        names_near=graph.names_near if isinstance(graph, GraphChannel) else lambda _text, _count: [],
    )


Batch = TypeVar("Batch")
Searched = TypeVar("Searched")
Result = TypeVar("Result")


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
