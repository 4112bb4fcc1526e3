"""From queries to answers, read first: candidates → fusion → rerank → score and assembly.

Every stage is a plain function over candidates; each adds to their scores and says by how much.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

from pipelines.domain.matching import Match
from pipelines.domain.questions import question_of
from pipelines.domain.ranking import Answer, Channel, Query, RankedResult, Signal
from pipelines.domain.sessions import SessionMemory
from pipelines.retrieval.again import Hints, nearness_to_session, query_vector, search_again, with_own_scores
from pipelines.retrieval.assembly import results, score_and_cut, spelled_out
from pipelines.retrieval.candidates import Candidate, Candidates, heads, merge
from pipelines.retrieval.channels.graph import GraphChannel
from pipelines.retrieval.channels.run import (
    Asked,
    Channels,
    Finish,
    Found,
    Ranked,
    further_scores,
    run_channels,
    start_channels,
)
from pipelines.retrieval.context.assemble import with_contexts
from pipelines.retrieval.context.read import neighbours_in
from pipelines.retrieval.facts import GenerationFacts
from pipelines.retrieval.fusion import FUSIONS
from pipelines.retrieval.learned_triggers import with_learned_triggers
from pipelines.retrieval.matching import asking, doubtful, gap_in, judged, match_of, uncalibrated, with_matches
from pipelines.retrieval.mpab import UNITS
from pipelines.retrieval.order import WeightDraws, with_certainty, with_propensity
from pipelines.retrieval.plan import Plan, make_plan
from pipelines.retrieval.ports import PairScorer, ReadableBeliefs
from pipelines.retrieval.quality import Moment, telling, with_propagated
from pipelines.retrieval.rerank.best import Rerankers, reranked, rerankers
from pipelines.retrieval.rerank.diversity import after, diverse, vectors_of
from pipelines.retrieval.rerank.late_interaction import matcher
from pipelines.retrieval.settings import RetrievalSettings
from pipelines.retrieval.signals import active_signals, answering, with_similarity
from pipelines.retrieval.snapshot import Reading, Snapshot
from pipelines.retrieval.stopwatch import Stopwatch
from pipelines.retrieval.understanding.shift import remembered, usage_kept
from pipelines.retrieval.weights import SignalWeights, Weighing, believed_draws, believed_weights


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

    def matches(self, candidates: Sequence[Candidate]) -> list[Match]:
        """How well each candidate matches the query by itself."""
        own = with_own_scores(candidates, self.found)
        compare = matcher(self.found) if Signal.LATE_INTERACTION in self.looks.signals else None
        met = [None] * len(own) if compare is None else compare([candidate.row for candidate in own])
        return [
            match_of(candidate, self.answered, self.plan.text, tokens)
            for candidate, tokens in zip(own, met, strict=True)
        ]

    def passes(self, candidate: Candidates) -> bool:
        """Whether a candidate, a table of one, is likely enough to be an answer, as far as that can be told."""
        if self.reading.calibration is None:
            return True
        (match,) = self.matches(spelled_out(candidate, self.weights))
        return not doubtful(match, self.reading.calibration)


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The four stages over one snapshot; remembers nothing between calls."""

    snapshot: Snapshot
    channels: Channels
    facts: GenerationFacts
    settings: RetrievalSettings
    pool: Executor
    pairs: PairScorer | None = None

    def answer(self, queries: Sequence[Query], *, now: float) -> list[Answer]:
        """Answer queries together: channels see batches of them, and search for the next while one is ranked."""
        plans = [make_plan(query, self.facts, self.snapshot.filters, self.settings) for query in queries]
        size = self.settings.encode_batch
        waiting = [plans[start : start + size] for start in range(0, len(plans), size)]
        answers: list[Answer] = []
        started = [self._start(batch) for batch in waiting[:1]]
        for at, batch in enumerate(waiting):
            found = started.pop()()
            started += [self._start(later) for later in waiting[at + 1 : at + 2]]
            read, found = search_again(batch, found, self._run, self._hints, self.settings)
            answers += [self._rank(plan, found, index, now) for index, plan in enumerate(read)]
        return answers

    def _start(self, plans: Sequence[Plan]) -> Finish:
        asked, depth = [Asked(plan.text, plan.channels, plan.among) for plan in plans], self.settings.depth
        return start_channels(self.channels, asked, depth, budget_ms=self.settings.budget_ms, pool=self.pool)

    def _run(self, asked: Sequence[Asked], depth: int) -> Found:
        return run_channels(self.channels, asked, depth, budget_ms=self.settings.budget_ms, pool=self.pool)

    @property
    def _hints(self) -> Hints:
        chunks, graph = self.snapshot.generation.chunks, self.channels.following.get(Channel.GRAPH)
        return Hints(
            texts_of=lambda rows: [content.text for content in chunks.contents(rows)],
            names_near=graph.names_near if isinstance(graph, GraphChannel) else lambda _text, _count: [],
        )

    def _rank(self, plan: Plan, found: Found, index: int, now: float) -> Answer:
        watch, tuned = Stopwatch(found.elapsed_ms), self.settings
        ground = self._ground(plan, found.of(index), now)
        plan, query, weights, reading = ground.plan, ground.plan.query, ground.weights, ground.reading
        with watch.stage("candidates"):
            candidates = self._candidates(plan, ground.found)
        with watch.stage("fusion"):
            weighing = Weighing(tuned.channel_weights, weights)
            fused = FUSIONS[tuned.fusion](with_similarity(candidates, ground.answered), weighing, tuned)
        with watch.stage("rerank"):
            looked_at, left_out = reranked(fused, ground.looks, weights, tuned)
            united = UNITS[tuned.unit](with_propagated(looked_at, self.facts, tuned.quality), tuned)
        with watch.stage("assembly"):
            depth = max(plan.k + tuned.diversity.depth, tuned.explored_depth)
            contenders = score_and_cut(united, depth, reading.beliefs, weights, moment=ground.moment, settings=tuned)
            chosen = diverse(contenders, plan.k, vectors_of(ground.found), tuned, passes=ground.passes)
            scored = spelled_out(chosen, weights)
            shown = with_matches(results(scored, weights, reading.beliefs), ground.matches(scored))
            shown = asking(judged(shown, reading.calibration), query.query_id, tuned.ask)
            if query.explore:
                others = spelled_out(after(chosen, contenders, tuned.explored_depth), weights)
                shown = with_propensity(shown, [*scored, *others], ground.draws)
            shown = with_certainty(shown, ground.draws)
            if query.context:
                shown = self._with_contexts(plan, shown, reading.beliefs)
        return Answer(
            query=plan.query,
            results=shown,
            generation=self.snapshot.generation_id,
            learned=reading.learned,
            fusion=self.settings.fusion.value,
            truncated=plan.truncated,
            heads=heads(candidates, self.settings.heads_kept),
            failed_channels={**found.failed, **left_out},
            timings_ms=watch.timings_ms,
            understanding=plan.understanding,
            memory=self._remembered(plan, ground.found, shown),
            gap=gap_in(shown, reading.calibration),
            uncalibrated=uncalibrated(shown, reading.calibration),
        )

    def _ground(self, plan: Plan, found: Mapping[Channel, Ranked], now: float) -> Ground:
        # After a change of topic a session reads what all believe: what it learned was about another topic.
        shift, tuned = plan.understanding.shift, self.settings
        reading = self.snapshot.reading(None if shift is not None and shift.happened else plan.query.session_id)
        plan, found = self._with_learned_triggers(plan, found, reading.beliefs)
        answered, looks = answering(found), rerankers(plan.text, found, self.pairs, tuned)
        nearness = nearness_to_session(found, plan.query.memory)
        asked_before = reading.beliefs.asked_before(question_of(plan.query.text))
        told = telling(plan.query, self.facts, nearness=nearness, asked_before=asked_before) | looks.signals
        active = active_signals(answered, tuned.without_signals, telling=told)
        return Ground(
            plan=plan,
            found=found,
            answered=answered,
            looks=looks,
            reading=reading,
            weights=believed_weights(plan.query, reading.beliefs, active),
            draws=believed_draws(plan.query, reading.beliefs, active, tuned.order_draws),
            moment=Moment(plan.query, now, self.facts, usage_kept(shift, tuned.understanding.shift), nearness),
        )

    def _with_learned_triggers(
        self, plan: Plan, found: Mapping[Channel, Ranked], beliefs: ReadableBeliefs
    ) -> tuple[Plan, dict[Channel, Ranked]]:
        graph, row_of = self.channels.following.get(Channel.GRAPH), self.snapshot.generation.chunks.row_of
        is_name = graph.knows if isinstance(graph, GraphChannel) else lambda _term: False
        return with_learned_triggers(plan, found, beliefs.triggers, row_of, is_name)

    def _with_contexts(
        self, plan: Plan, shown: Sequence[RankedResult], beliefs: ReadableBeliefs
    ) -> tuple[RankedResult, ...]:
        tuned = self.settings.context
        neighbours = neighbours_in(self.snapshot.generation, most=max(tuned.most.values()))

        def moved(result: RankedResult) -> float:
            return beliefs.threshold_moved(result.domain, plan.query.agent)

        return with_contexts(shown, plan.understanding.type, neighbours, moved, tuned)

    def _remembered(
        self, plan: Plan, found: Mapping[Channel, Ranked], shown: Sequence[RankedResult]
    ) -> SessionMemory | None:
        if plan.query.memory is None:
            return None
        asked = remembered(query_vector(found), plan.query.memory, self.settings.understanding.shift)
        return asked.given((result.content_hash for result in shown), kept=self.settings.session.shown_kept)

    def _candidates(self, plan: Plan, found: Mapping[Channel, Ranked]) -> Candidates:
        rankings = {channel: ranked.ranking[: plan.depth] for channel, ranked in found.items()}
        rows = sorted({row for ranking in rankings.values() for row, _ in ranking})
        further = further_scores(found, rankings, rows) if self.settings.complete_scores else {}
        generation, documents = self.snapshot.generation, self.facts.documents
        return merge(
            rankings,
            further,
            hashes=generation.contents,
            store=generation.chunks,
            documents=documents,
            filters=plan.query.filters,
        )
