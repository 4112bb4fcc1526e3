"""From queries to answers, read first: candidates → fusion → rerank → score and assembly.

Every stage is a plain function over candidates; each adds to their scores and says by how much.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

from pipelines.domain.ranking import Answer, Channel, Query
from pipelines.retrieval.assembly import results, score_and_cut
from pipelines.retrieval.candidates import Candidate, heads, merge
from pipelines.retrieval.channels.run import Channels, Found, Ranked, further_scores, run_channels
from pipelines.retrieval.fusion import FUSIONS
from pipelines.retrieval.mpab import UNITS
from pipelines.retrieval.order import with_certainty, with_propensity
from pipelines.retrieval.plan import Plan, make_plan
from pipelines.retrieval.rerank import late_interaction
from pipelines.retrieval.settings import RetrievalSettings
from pipelines.retrieval.signals import active_signals, answering, with_similarity
from pipelines.retrieval.snapshot import Snapshot
from pipelines.retrieval.stopwatch import Stopwatch
from pipelines.retrieval.weights import Weighing, believed_draws, believed_weights


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The four stages over one snapshot; remembers nothing between calls."""

    snapshot: Snapshot
    channels: Channels
    settings: RetrievalSettings
    pool: Executor

    def answer(self, queries: Sequence[Query], *, now: float) -> list[Answer]:
        """Answer queries together: the channels see them as one batch, the other stages one by one."""
        plans = [make_plan(query, self.settings) for query in queries]
        found = self._find(plans)
        return [self._rank(plan, found, index, now) for index, plan in enumerate(plans)]

    def _find(self, plans: Sequence[Plan]) -> Found:
        depth = max((plan.depth for plan in plans), default=0)
        texts = [plan.text for plan in plans]
        among = [self.snapshot.filters.rows(plan.query.filters) for plan in plans]
        return run_channels(self.channels, texts, among, depth, budget_ms=self.settings.budget_ms, pool=self.pool)

    def _rank(self, plan: Plan, found: Found, index: int, now: float) -> Answer:
        watch = Stopwatch(found.elapsed_ms)
        reading = self.snapshot.reading(plan.query.session_id)
        beliefs = reading.beliefs
        by_channel = found.of(index)
        answered = answering(by_channel)
        match = late_interaction.matcher(by_channel, self.settings)
        active = active_signals(answered, self.settings.without_signals, matched=match is not None)
        weights = believed_weights(plan.query, beliefs, active)
        draws = believed_draws(plan.query, beliefs, active, self.settings.order_draws)
        with watch.stage("candidates"):
            candidates = self._candidates(plan, by_channel)
        with watch.stage("fusion"):
            weighing = Weighing(self.settings.channel_weights, weights)
            fused = FUSIONS[self.settings.fusion](with_similarity(candidates, answered), weighing, self.settings)
        with watch.stage("rerank"):
            matched = late_interaction.with_late_interaction(fused, match, weights, self.settings)
            reranked = UNITS[self.settings.unit](matched, self.settings)
        with watch.stage("assembly"):
            query, mode = plan.query, self.settings.fusion
            depth = max(query.k, self.settings.explored_depth) if query.explore else query.k
            scored = score_and_cut(reranked, depth, beliefs, weights, mode, model=query.model, now=now)
            shown = results(scored[: query.k], weights, beliefs, reading.calibration)
            shown = with_certainty(with_propensity(shown, scored, draws) if query.explore else shown, draws)
        return Answer(
            query=plan.query,
            results=shown,
            generation=self.snapshot.generation_id,
            learned=reading.learned,
            fusion=self.settings.fusion.value,
            truncated=plan.truncated,
            heads=heads(candidates, self.settings.heads_kept),
            failed_channels={**found.failed, **late_interaction.left_out(by_channel, self.settings)},
            timings_ms=watch.timings_ms,
        )

    def _candidates(self, plan: Plan, found: Mapping[Channel, Ranked]) -> list[Candidate]:
        rankings = {channel: ranked.ranking[: plan.depth] for channel, ranked in found.items()}
        rows = sorted({row for ranking in rankings.values() for row, _ in ranking})
        further = further_scores(found, rankings, rows) if self.settings.complete_scores else {}
        return merge(rankings, self.snapshot.generation.chunks.contents(rows), plan.query.filters, further)
