"""From queries to answers, read first: candidates → fusion → rerank → score and assembly.

Every stage is a plain function over candidates; each adds to their scores and says by how much.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from pipelines.domain.matching import Match
from pipelines.domain.questions import question_of
from pipelines.domain.ranking import Answer, Channel, Placed, Placings, Query, RankedResult, Signal
from pipelines.domain.sessions import SessionMemory
from pipelines.retrieval.answer.assembly import Verdict, results, score_and_cut
from pipelines.retrieval.answer.confidence import certainties, propensities, scored
from pipelines.retrieval.answer.explain import spelled_out
from pipelines.retrieval.answer.matching import asking, chance, doubtful, gap_in, match_of, uncalibrated
from pipelines.retrieval.batches import one_ahead
from pipelines.retrieval.channels.graph import GraphChannel
from pipelines.retrieval.channels.learned_triggers import with_learned_triggers
from pipelines.retrieval.channels.rankings import Hits, Ints, ScoreRows
from pipelines.retrieval.channels.run import (
    Asked,
    Channels,
    Found,
    Ranked,
    run_channels,
)
from pipelines.retrieval.channels.second_pass import Hints, nearness_to_session, query_vector, search_again
from pipelines.retrieval.context.assemble import with_contexts
from pipelines.retrieval.context.read import neighbours_in
from pipelines.retrieval.query.plan import Plan, make_plan
from pipelines.retrieval.query.understanding.shift import remembered, usage_kept
from pipelines.retrieval.ranking.aggregation import UNITS
from pipelines.retrieval.ranking.fusion import FUSIONS
from pipelines.retrieval.ranking.merging import Head, head, merge
from pipelines.retrieval.ranking.pseudo_relevance import told_by_first, with_pseudo_relevance
from pipelines.retrieval.ranking.quality import Moment, telling, with_propagated
from pipelines.retrieval.ranking.signals import active_signals, answering, own_scores, with_similarity
from pipelines.retrieval.ranking.table import Candidates
from pipelines.retrieval.ranking.weights import Shared, SignalWeights, Weighing, WeightDraws, believed_in_common
from pipelines.retrieval.rerank.best import Rerankers, reranked, rerankers
from pipelines.retrieval.rerank.diversity import Passes, diverse, vectors_of
from pipelines.retrieval.rerank.explored import Choice, contending
from pipelines.retrieval.rerank.late_interaction import matcher
from pipelines.retrieval.settings import RetrievalSettings
from pipelines.retrieval.snapshot.facts import GenerationFacts
from pipelines.retrieval.snapshot.ports import PairScorer, ReadableBeliefs
from pipelines.retrieval.snapshot.snapshot import Reading, Snapshot
from pipelines.retrieval.stopwatch import Stopwatch

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What one query is ranked on: what was found for it, and what is believed.

    Attributes:
        answered: Channels that have something to say.
        looks: What looks at the best candidates again.
    """

    plan: Plan
    found: Mapping[Channel, Ranked]
    answered: frozenset[Channel]
    looks: Rerankers
    reading: Reading
    weights: SignalWeights
    draws: WeightDraws
    moment: Moment

    @property
    def hits(self) -> Mapping[Channel, Hits]:
        """What each channel ranked first, as deep as was planned."""
        return {channel: ranked.ranking.head(self.plan.depth) for channel, ranked in self.found.items()}

    def matches(self, candidates: Candidates) -> list[Match]:
        """How well each candidate of this query matches it by itself."""
        compare = matcher(self.found) if Signal.LATE_INTERACTION in self.looks.signals else None
        unknown: list[float | None] = [None] * len(candidates)
        cosines, bm25 = (
            own_scores(candidates, channel, self.found) if channel in self.answered else unknown
            for channel in (Channel.DENSE, Channel.LEXICAL)
        )
        tokens = unknown if compare is None else compare(candidates.rows).tolist()
        terms = max(1, len(self.plan.words.split()))
        told = zip(cosines, bm25, tokens, strict=True)
        return [match_of(cosine, score, terms, met) for cosine, score, met in told]

    def scorers(self, *, complete: bool) -> Mapping[Channel, ScoreRows]:
        """What scores contents that a channel did not find; nothing where scores are not to be completed."""
        return {
            channel: ranked.score_rows
            for channel, ranked in self.found.items()
            if complete and ranked.score_rows is not None
        }


@dataclass(frozen=True, slots=True)
class _Chosen:
    """What is shown for the queries of a batch.

    Attributes:
        choices: By place in the batch of each query that explores: among what it chose.
        failed: For each query what was left out, and why.
    """

    grounds: Sequence[Ground]
    shown: Candidates
    choices: Mapping[int, Choice]
    failed: Sequence[Mapping[str, str]]
    watch: Stopwatch


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The four stages over one snapshot; remembers nothing between calls."""

    snapshot: Snapshot
    channels: Channels
    facts: GenerationFacts
    settings: RetrievalSettings
    threads: Executor
    pairs: PairScorer | None = None

    def answer(self, queries: Sequence[Query], *, now: float) -> list[Answer]:
        """Answer queries together: channels see batches of them, and search for the next while one is ranked."""
        return self._each(queries, now, self._answers)

    def rank(self, queries: Sequence[Query], *, now: float) -> list[Placings]:
        """The results of the same answers, and nothing that is told of them: for who compares rankings."""
        return self._each(queries, now, self._placings)

    def _each(self, queries: Sequence[Query], now: float, tell: Callable[[_Chosen], list[T]]) -> list[T]:
        size = self.settings.encode_batch
        batches = [queries[start : start + size] for start in range(0, len(queries), size)]
        return one_ahead(batches, self._search, lambda searched: tell(self._chosen(*searched, now)))

    def _search(self, queries: Sequence[Query]) -> tuple[list[Plan], Found]:
        """Plan, search, and search again for queries that need it."""
        plans = [make_plan(query, self.facts, self.snapshot.filters, self.settings) for query in queries]
        first = self._run([Asked(plan.words, plan.channels, plan.depth, plan.among) for plan in plans])
        return search_again(plans, first, self._run, self._hints, self.settings)

    def _run(self, asked: Sequence[Asked]) -> Found:
        return run_channels(self.channels, asked, budget_ms=self.settings.budget_ms, threads=self.threads)

    @property
    def _hints(self) -> Hints:
        graph = self.channels.following.get(Channel.GRAPH)
        return Hints(
            texts_of=self._texts_of,
            names_near=graph.names_near if isinstance(graph, GraphChannel) else lambda _text, _count: [],
        )

    def _texts_of(self, rows: Sequence[int] | Ints) -> list[str]:
        return [content.text for content in self.snapshot.generation.chunks.contents(rows)]

    def _chosen(self, plans: Sequence[Plan], found: Found, now: float) -> _Chosen:
        """Rank what was found for a batch of queries: all of them in one table, in which none minds the others."""
        watch, tuned = Stopwatch(found.elapsed_ms, len(plans)), self.settings
        grounds = self._grounds(plans, found, now)
        weights, beliefs = [each.weights for each in grounds], [each.reading.beliefs for each in grounds]
        with watch.stage("candidates"):
            candidates = self._candidates(grounds)
        with watch.stage("fusion"):
            similar = with_similarity(candidates, [each.answered for each in grounds])
            vectors = [vectors_of(each.found) for each in grounds]
            similar = with_pseudo_relevance(similar, vectors, tuned.pseudo_relevance)
            fused = FUSIONS[tuned.fusion](similar, Weighing(tuned.channel_weights, weights), tuned)
        with watch.stage("rerank"):
            looked_at, left_out = reranked(fused, [each.looks for each in grounds], weights, tuned)
            united = UNITS[tuned.unit](with_propagated(looked_at, self.facts, tuned.quality), tuned)
        with watch.stage("assembly"):
            ks = np.array([each.plan.k for each in grounds])
            depths, moments = (
                np.maximum(ks + tuned.diversity.depth, tuned.explored_depth),
                [each.moment for each in grounds],
            )
            contenders = score_and_cut(united, depths, beliefs, weights, moments=moments, settings=tuned)
            passes = [self._passing(each) for each in grounds]
            shown = diverse(contenders, ks, vectors, tuned, passes=passes)
            choices = {
                at: Choice(contending(contenders, at), each.plan.k, vectors[at], tuned.diversity, passes[at])
                for at, each in enumerate(grounds)
                if each.plan.query.explore
            }
        failed = [{**silent, **lacking} for silent, lacking in zip(found.failed, left_out, strict=True)]
        return _Chosen(grounds, shown, choices, failed, watch)

    def _placings(self, chosen: _Chosen) -> list[Placings]:
        shown, lines_of = chosen.shown, dict(chosen.shown.queries)
        uris = (shown.uris(number) for number in shown.number.tolist())
        placed = [Placed(*each) for each in zip(shown.hashes, uris, shown.total.tolist(), strict=True)]
        return [tuple(placed[lines_of.get(at, slice(0))]) for at in range(len(chosen.grounds))]

    def _answers(self, chosen: _Chosen) -> list[Answer]:
        with chosen.watch.stage("assembly"):
            shown = self._shown(chosen.grounds, chosen.shown, chosen.choices)
        return [
            self._answer(ground, results, failed, self._head(ground), chosen.watch)
            for ground, results, failed in zip(chosen.grounds, shown, chosen.failed, strict=True)
        ]

    def _answer(
        self,
        ground: Ground,
        shown: tuple[RankedResult, ...],
        failed: Mapping[str, str],
        head: Head,
        watch: Stopwatch,
    ) -> Answer:
        plan, reading = ground.plan, ground.reading
        return Answer(
            query=plan.query,
            results=shown,
            generation=self.snapshot.generation_id,
            learned=reading.learned,
            fusion=self.settings.fusion.value,
            truncated=plan.truncated,
            heads=head,
            failed_channels=failed,
            timings_ms=watch.timings_ms,
            understanding=plan.understanding,
            memory=self._remembered(plan, ground.found, shown),
            gap=gap_in(shown, reading.calibration),
            uncalibrated=uncalibrated(shown, reading.calibration),
        )

    def _shown(
        self, grounds: Sequence[Ground], chosen: Candidates, choices: Mapping[int, Choice]
    ) -> list[tuple[RankedResult, ...]]:
        """The chosen candidates of each query as results, with all that is told of them."""
        spelled = spelled_out(chosen, [ground.weights for ground in grounds])
        lines_of, shown, made_of = dict(chosen.queries), [], scored(chosen)
        for at, ground in enumerate(grounds):
            lines = lines_of.get(at, slice(0))
            above_next = certainties(made_of.of(lines), ground.draws)
            verdicts = self._verdicts(ground, above_next, chosen.take(lines), choices.get(at))
            told = results(spelled[lines], ground.reading.beliefs, verdicts)
            found = asking(told, ground.plan.query.query_id, self.settings.ask)
            shown.append(self._with_contexts(ground, found) if ground.plan.query.context else found)
        return shown

    def _verdicts(
        self,
        ground: Ground,
        above_next: Sequence[float | None],
        chosen: Candidates,
        choice: Choice | None,
    ) -> list[Verdict]:
        """What is told of each candidate of one query that is shown."""
        calibration, shares = ground.reading.calibration, [1.0] * len(chosen)
        if choice is not None and len(chosen):
            line_of = {number: line for line, number in enumerate(choice.contenders.number.tolist())}
            places = np.array([line_of[number] for number in chosen.number.tolist()], dtype=np.int64)
            shares = propensities(scored(choice.contenders), places, ground.draws, choice.ranked)
        return [
            Verdict(match, chance(match, calibration), doubtful(match, calibration), above, share)
            for match, above, share in zip(ground.matches(chosen), above_next, shares, strict=True)
        ]

    def _passing(self, ground: Ground) -> Passes:
        """Whether a candidate, a table of one, is likely enough to be an answer, as far as that can be told."""
        calibration = ground.reading.calibration

        def passes(candidate: Candidates) -> bool:
            if calibration is None:
                return True
            (match,) = ground.matches(candidate)
            return not doubtful(match, calibration)

        return passes

    def _grounds(self, plans: Sequence[Plan], found: Found, now: float) -> list[Ground]:
        believed: Shared = {}
        return [self._ground(plan, found.of(at), now, believed) for at, plan in enumerate(plans)]

    def _ground(self, plan: Plan, found: Mapping[Channel, Ranked], now: float, believed: Shared) -> Ground:
        # After a change of topic a session reads what all believe: what it learned was about another topic.
        shift, tuned = plan.understanding.shift, self.settings
        reading = self.snapshot.reading(None if shift is not None and shift.happened else plan.query.session_id)
        plan, found = self._with_learned_triggers(plan, found, reading.beliefs)
        answered = answering(found)
        looks = rerankers(plan.text, found, self.pairs, tuned, wanted=plan.channels, texts_of=self._texts_of)
        nearness = nearness_to_session(found, plan.query.memory)
        asked_before = reading.beliefs.asked_before(question_of(plan.query.text))
        told = telling(plan.query, self.facts, nearness=nearness, asked_before=asked_before) | looks.signals
        told |= told_by_first(vectors_of(found), self.settings.pseudo_relevance)
        active = active_signals(answered, tuned.without_signals, telling=told)
        weights, draws = believed_in_common(plan.query, reading.beliefs, active, tuned.order_draws, believed)
        return Ground(
            plan=plan,
            found=found,
            answered=answered,
            looks=looks,
            reading=reading,
            weights=weights,
            draws=draws,
            moment=Moment(plan.query, now, self.facts, usage_kept(shift, tuned.understanding.shift), nearness),
        )

    def _with_learned_triggers(
        self, plan: Plan, found: Mapping[Channel, Ranked], beliefs: ReadableBeliefs
    ) -> tuple[Plan, dict[Channel, Ranked]]:
        graph, row_of = self.channels.following.get(Channel.GRAPH), self.snapshot.generation.chunks.row_of
        is_name = graph.knows if isinstance(graph, GraphChannel) else lambda _term: False
        return with_learned_triggers(plan, found, beliefs.triggers, row_of, is_name)

    def _with_contexts(self, ground: Ground, shown: Sequence[RankedResult]) -> tuple[RankedResult, ...]:
        tuned, plan = self.settings.context, ground.plan
        neighbours = neighbours_in(self.snapshot.generation, most=max(tuned.most.values()))

        def moved(result: RankedResult) -> float:
            return ground.reading.beliefs.threshold_moved(result.domain, plan.query.agent)

        return with_contexts(shown, plan.understanding.type, neighbours, moved, tuned)

    def _remembered(
        self, plan: Plan, found: Mapping[Channel, Ranked], shown: Sequence[RankedResult]
    ) -> SessionMemory | None:
        if plan.query.memory is None:
            return None
        asked = remembered(query_vector(found), plan.query.memory, self.settings.understanding.shift)
        return asked.given((result.content_hash for result in shown), kept=self.settings.session.shown_kept)

    def _head(self, ground: Ground) -> Head:
        return head(ground.hits, self.settings.heads_kept, self.snapshot.generation.contents)

    def _candidates(self, grounds: Sequence[Ground]) -> Candidates:
        generation = self.snapshot.generation
        return merge(
            [each.hits for each in grounds],
            [each.scorers(complete=self.settings.complete_scores) for each in grounds],
            contents=generation.contents,
            store=generation.chunks,
            documents=self.facts.documents,
            filters=[each.plan.query.filters for each in grounds],
        )
