"""From queries to what each is ranked on: candidates by channel, and beliefs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import numpy as np

from weft.domain.arrays import Ints
from weft.domain.documents import ContentType
from weft.domain.ids import principal_fingerprint
from weft.domain.ranking import ANONYMOUS, Channel, Query, Signal
from weft.embedding.ports import PairScorer
from weft.learning.beliefs import Beliefs
from weft.learning.thinned import NOTHING_THINNED, Thinned
from weft.retrieval.answer.lessons import LessonRetriever
from weft.retrieval.channels.following import GraphChannel
from weft.retrieval.channels.run import (
    ChannelRankings,
    ChannelRequest,
    Channels,
    Hits,
    Ranked,
    matcher,
    run_channels,
    scores_of,
    with_elevated,
)
from weft.retrieval.channels.searching import with_learned_triggers
from weft.retrieval.channels.second_pass import Hints, nearness_to_session, search_again
from weft.retrieval.query.named import NamedPlaces
from weft.retrieval.query.near import QuestionIndex
from weft.retrieval.query.understanding import Plan, make_plan, usage_share
from weft.retrieval.ranking.context import PastOutcomes, QuestionVerdicts, RankingContext
from weft.retrieval.ranking.final_score import Headings
from weft.retrieval.ranking.fusion import SharedWeights, believed_in_common, rerankers
from weft.retrieval.ranking.signals import active_signals, answering, available_signals, features_of, is_doubtful
from weft.retrieval.settings import FusionMode, RetrievalSettings
from weft.retrieval.snapshot.asides import LinkLists
from weft.retrieval.snapshot.documents import GenerationFacts
from weft.retrieval.snapshot.places import ContentLocator
from weft.retrieval.snapshot.relations import ResolvedRelations
from weft.retrieval.snapshot.snapshot import Snapshot

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
    names: NamedPlaces
    questions: QuestionIndex
    headings: Headings
    links: LinkLists
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
        terms = max(1, len(plan.text.split()))
        features = (features_of(*each[:2], terms, each[2]) for each in zip(cosines, bm25, tokens, strict=True))
        return sum(not is_doubtful(match, bound) for match in features)

    def name_of(self, row: int) -> str:
        """What a content is called: title and URI of its document, its headings and its symbol."""
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
    look_up = partial(make_plan, holding=resources.holding, thinned=thinned, naming=resources.names.of)
    plans = [look_up(query, facts, filters, tuned) for query in queries]
    run = partial(run_channels, resources.channels, budget_ms=tuned.channel_budgets_ms, threads=resources.threads)
    first = run([ChannelRequest(plan.text, plan.channels, plan.depth, plan.among) for plan in plans])
    if signed := [at for at, plan in enumerate(plans) if plan.first is not None]:
        asked = [plans[at] for at in signed]
        elevated = run([ChannelRequest(plan.text, plan.channels, plan.depth, plan.first) for plan in asked])
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
    nearness = nearness_to_session(by_channel, plan.query.memory)
    available = available_signals(resources.facts, plan.query, in_session=nearness is not None)
    available |= reranking.used.keys()
    if tuned.pseudo_relevance.first and Channel.DENSE in by_channel and by_channel[Channel.DENSE].vectors is not None:
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
        now=now,
        facts=resources.facts,
        nearness=nearness,
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
