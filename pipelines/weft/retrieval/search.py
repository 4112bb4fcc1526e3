"""From queries to what each is ranked on: candidates by channel, and beliefs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TypeVar

import numpy as np

from weft.domain.arrays import Ints
from weft.domain.documents import ContentType, Domain
from weft.domain.ids import principal_fingerprint
from weft.domain.matching import MatchFeatures
from weft.domain.ranking import ANONYMOUS, Channel, Query, Signal
from weft.embedding.ports import PairScorer
from weft.learning.beliefs import Beliefs
from weft.learning.thinned import NOTHING_THINNED, Thinned
from weft.retrieval.answer.confidence import features_of, is_doubtful
from weft.retrieval.answer.lessons import LessonRetriever
from weft.retrieval.channels.following import GraphChannel
from weft.retrieval.channels.run import (
    ChannelRankings,
    ChannelRequest,
    Channels,
    Hits,
    Ranked,
    ScoreRows,
    run_channels,
    scores_of,
    with_elevated,
)
from weft.retrieval.channels.searching import with_learned_triggers
from weft.retrieval.channels.second_pass import Hints, nearness_to_session, search_again
from weft.retrieval.query.near import QuestionIndex
from weft.retrieval.query.plan import Plan, make_plan
from weft.retrieval.query.understanding import usage_share
from weft.retrieval.ranking.effects import PastOutcomes, QuestionVerdicts
from weft.retrieval.ranking.fusion import SharedWeights, SignalWeights, WeightDraws, believed_in_common
from weft.retrieval.ranking.passages import Headings
from weft.retrieval.ranking.signals import (
    RequestContext,
    active_signals,
    answering,
    available_signals,
    query_scores,
)
from weft.retrieval.ranking.table import Candidates
from weft.retrieval.rerank.best import Rerankers, matcher, rerankers
from weft.retrieval.rerank.diversity import vectors_of
from weft.retrieval.settings import FusionMode, RetrievalSettings
from weft.retrieval.snapshot.documents import GenerationFacts
from weft.retrieval.snapshot.places import ContentLocator
from weft.retrieval.snapshot.relations import ResolvedRelations
from weft.retrieval.snapshot.snapshot import BeliefReading, Snapshot

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
    places: ContentLocator
    questions: QuestionIndex
    headings: Headings
    pairs: PairScorer | None = None
    relations: ResolvedRelations = field(default_factory=ResolvedRelations)
    lessons: LessonRetriever | None = None

    @property
    def graph(self) -> GraphChannel | None:
        """The graph channel; None where the generation has none."""
        channel = self.channels.following.get(Channel.GRAPH)
        return channel if isinstance(channel, GraphChannel) else None

    def texts_of(self, rows: Sequence[int] | Ints) -> list[str]:
        """Texts of contents by row."""
        return [content.text for content in self.snapshot.generation.chunks.contents(rows)]

    def is_common(self, word: str) -> bool:
        """Whether a word stands in so much of the generation that it tells nothing apart."""
        return self.snapshot.generation.lexical.share_of(word) >= self.settings.common_word

    def holding(self, words: str, phrase: bool) -> np.ndarray | None:
        """Which contents hold words; see `TextIndex`."""
        return self.snapshot.generation.lexical.holding(words, phrase)

    def count_answering(self, plan: Plan, by_channel: Mapping[Channel, Ranked], rows: Ints) -> int:
        """How many of some contents match a query better than what has no answer; all where that is not known."""
        bound = self.snapshot.reading(plan.query.session_id).answering
        if bound is None:
            return len(rows)
        compare = matcher(by_channel)
        cosines, bm25 = (
            scores_of(by_channel[channel])(rows).tolist() if channel in by_channel else [None] * len(rows)
            for channel in (Channel.DENSE, Channel.LEXICAL)
        )
        tokens = [None] * len(rows) if compare is None else compare(rows).tolist()
        terms = max(1, len(plan.words.split()))
        features = (features_of(*each[:2], terms, each[2]) for each in zip(cosines, bm25, tokens, strict=True))
        return sum(not is_doubtful(match, bound) for match in features)

    def name_of(self, row: int) -> str:
        """What a content is called: title and URI of its document, its headings and its symbol.

        The title of code is a sentence about it, which names nothing.
        """
        place = self.snapshot.generation.chunks.contents([row])[0].occurrences[0]
        title = "" if place.content_type is ContentType.CODE else place.title or ""
        return " ".join((title, place.uri, *place.label.heading_path, place.label.symbol or ""))


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
    graph, tuned, snapshot = resources.graph, resources.settings, resources.snapshot
    facts, filters, thinned = resources.facts, snapshot.filters, snapshot.learned.part(Thinned) or NOTHING_THINNED
    plans = [make_plan(query, facts, filters, tuned, resources.holding, thinned=thinned) for query in queries]
    run = partial(run_channels, resources.channels, budget_ms=tuned.channel_budgets_ms, threads=resources.threads)
    first = run([ChannelRequest(plan.words, plan.channels, plan.depth, plan.among) for plan in plans])
    if signed := [at for at, plan in enumerate(plans) if plan.first is not None]:
        asked = [plans[at] for at in signed]
        elevated = run([ChannelRequest(plan.words, plan.channels, plan.depth, plan.first) for plan in asked])
        first = with_elevated(first, dict(zip(signed, map(elevated.of, range(len(signed))), strict=True)))
    names_near = graph.names_near if graph is not None else lambda _text, _count: []
    hints = Hints(resources.texts_of, names_near, resources.name_of, resources.count_answering)
    return search_again(plans, first, run, hints, tuned)


def prefetched(
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


@dataclass(frozen=True, kw_only=True)
class RankingContext:
    """What one query is ranked on: what channels gave, and what is believed."""

    plan: Plan
    ranked: Mapping[Channel, Ranked]
    answered: frozenset[Channel]  # channels that have something to say
    reranking: Rerankers  # what scores the best candidates again
    reading: BeliefReading
    weights: SignalWeights
    draws: WeightDraws
    moment: RequestContext
    past: PastOutcomes | None = None  # what came of contents before; None where nothing did
    # row of the content that stands for it, by row of each alias; empty where aliases stay
    representatives: Mapping[int, int] = field(default_factory=dict)

    @property
    def hits(self) -> Mapping[Channel, Hits]:
        """What each channel ranked first, as deep as was planned, with representatives in the place of their aliases.

        A representative is found by the best of its class. One that the query's filters leave out stands for nobody.
        """
        leaders = {alias: leader for leader, rows in self.left_out.items() for alias in rows}
        return {channel: hits.collapsed(leaders) for channel, hits in self._heads.items()}

    @cached_property
    def left_out(self) -> Mapping[int, Sequence[int]]:
        """The aliases that were found, by the row of the content that stands for them."""
        aliases: dict[int, list[int]] = {}
        if self.representatives:
            rows = {row for hits in self._heads.values() for row in hits.rows.tolist()}
            for row in sorted(rows & self.representatives.keys()):
                leader = self.representatives[row]
                if self.plan.among is None or self.plan.among.mask[leader]:
                    aliases.setdefault(leader, []).append(row)
        return aliases

    @property
    def _heads(self) -> Mapping[Channel, Hits]:
        return {channel: ranked.ranking.head(self.plan.depth) for channel, ranked in self.ranked.items()}

    def match_features(self, candidates: Candidates) -> list[MatchFeatures]:
        """How well each candidate of this query matches it by itself."""
        compare = matcher(self.ranked) if Signal.LATE_INTERACTION in self.reranking.used else None
        unknown: list[float | None] = [None] * len(candidates)
        cosines, bm25 = (
            query_scores(candidates, channel, self.ranked) if channel in self.answered else unknown
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
    shift, tuned = plan.understanding.shift, resources.settings
    reading = resources.snapshot.reading(None if shift is not None and shift.dampens else plan.query.session_id)
    row_of, beliefs = resources.snapshot.generation.chunks.row_of, reading.beliefs
    past = past_outcomes(resources, plan, by_channel, beliefs) if tuned.effects else None
    by_channel = with_answered(plan, by_channel, past)
    plan, by_channel = with_learned_triggers(plan, by_channel, beliefs.triggers, row_of, resources.is_common)
    reranking = rerankers(
        plan.text, by_channel, resources.pairs, tuned, wanted=plan.channels, texts_of=resources.texts_of
    )
    moment = RequestContext(plan.query, now, resources.facts, nearness_to_session(by_channel, plan.query.memory))
    available = available_signals(moment)
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
        past=past,
        representatives=resources.places.representatives(beliefs.aliases) if tuned.fusion is FusionMode.LEARNED else {},
    )


def past_outcomes(
    resources: Resources, plan: Plan, by_channel: Mapping[Channel, Ranked], beliefs: Beliefs
) -> PastOutcomes | None:
    """What came of contents before, as far as it says anything of a query; None where there is nothing (LRN-18)."""
    precedents = beliefs.precedents
    if not len(precedents) or resources.settings.fusion is not FusionMode.LEARNED:
        return None
    query, vector = plan.query, by_channel[Channel.DENSE].vector if Channel.DENSE in by_channel else None
    near = resources.questions.near(query.text, vector, precedents, beliefs.near)
    placed = resources.places.of(precedents, beliefs.aliases)
    asker = "" if query.principal in {"", ANONYMOUS} else principal_fingerprint(query.principal)  # nobody's own word
    verdicts = QuestionVerdicts.of(precedents, near, placed.rows, asker)
    share = usage_share(plan.understanding.shift, resources.settings.understanding.shift)
    return PastOutcomes(precedents, verdicts, near, placed.numbers, share, placed.revised)


def with_answered(
    plan: Plan, by_channel: Mapping[Channel, Ranked], past: PastOutcomes | None
) -> Mapping[Channel, Ranked]:
    """Rankings, and what was called right when this or a near question was asked (LRN-23)."""
    hits = Hits.of(()) if past is None else past.verdicts.hits()
    if plan.among is not None and len(hits):
        some = plan.among.mask[hits.rows]
        hits = Hits(hits.rows[some], hits.scores[some])
    return {**by_channel, Channel.ANSWERED: Ranked(hits.head(plan.depth))} if len(hits) else by_channel
