"""From queries to answers, read first: candidates → fusion → rerank → score and assembly.

Every stage is a plain function from one `RankingBatch` to another; each adds to scores and says by how much.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from weft.domain.ranking import Answer, Query, ScoredResults
from weft.indexes.parts import noting_failures
from weft.retrieval.answers import RankedBatch, answers, scored_results
from weft.retrieval.channels.run import ChannelRankings
from weft.retrieval.query.understanding import Plan
from weft.retrieval.ranking.batch import merge
from weft.retrieval.ranking.diversity import diverse
from weft.retrieval.ranking.effects import with_past_verdicts
from weft.retrieval.ranking.final_score import best_results
from weft.retrieval.ranking.fusion import fuse, reranked
from weft.retrieval.ranking.implementation import functions_apart, with_functions_first
from weft.retrieval.ranking.signals import (
    with_asides_lowered,
    with_propagated,
    with_pseudo_relevance,
    with_similarity,
)
from weft.retrieval.search import Resources, Stopwatch, prefetched, ranking_contexts, search


@dataclass(frozen=True, slots=True)
class Pipeline(Resources):
    """The four stages over one snapshot; remembers nothing between calls."""

    def answer(self, queries: Sequence[Query], *, now: float) -> list[Answer]:
        """Answer queries together: channels see batches of them, and search for the next while one is ranked."""
        return prefetched(self._batches(queries), self._searched, partial(self._answered, now=now))

    def rank(self, queries: Sequence[Query], *, now: float) -> list[ScoredResults]:
        """The results of the same answers, without explanations: for who compares rankings."""
        return prefetched(
            self._batches(queries), partial(search, self), lambda it: scored_results(self._rank(*it, now))
        )

    def _searched(self, queries: Sequence[Query]) -> tuple[list[Plan], ChannelRankings, dict[str, str]]:
        failed = dict[str, str]()
        with noting_failures(failed):
            return *search(self, queries), failed

    def _answered(self, some: tuple[list[Plan], ChannelRankings, dict[str, str]], *, now: float) -> list[Answer]:
        plans, rankings, failed = some
        with noting_failures(failed):
            answered = answers(self, self._rank(plans, rankings, now, explained=True))
        return [replace(answer, failed_shards=failed) for answer in answered] if failed else answered

    def _batches(self, queries: Sequence[Query]) -> list[Sequence[Query]]:
        size = self.settings.encode_batch
        return [queries[start : start + size] for start in range(0, len(queries), size)]

    def _rank(
        self, plans: Sequence[Plan], rankings: ChannelRankings, now: float, *, explained: bool = False
    ) -> RankedBatch:
        """Rank the candidates of a batch of queries: one value, in which no query minds the others."""
        watch, tuned, facts = Stopwatch(rankings.elapsed_ms, len(plans)), self.settings, self.facts
        contexts = ranking_contexts(self, plans, rankings, now)
        with watch.stage("candidates"):
            generation, complete = self.snapshot.generation, tuned.complete_scores
            batch = merge(contexts, rankings.failed, generation, facts.documents, complete=complete)
        with watch.stage("fusion"):
            batch = with_pseudo_relevance(with_similarity(batch, tuned), tuned.pseudo_relevance)
            batch = fuse(batch, tuned)
        with watch.stage("rerank"):
            batch = with_asides_lowered(reranked(batch, tuned), facts, self.links, tuned)
            batch = with_functions_first(batch, facts, tuned)
            batch = with_propagated(batch, facts, tuned.quality)
        with watch.stage("assembly"):
            best_of = partial(
                best_results,
                settings=tuned,
                named=self.headings.named(contexts),
                apart=functions_apart(contexts, facts),
            )
            page = partial(diverse, settings=tuned, relations=self.relations)
            contenders = best_of(batch)
            shown = page(contenders)
            if explained:
                shown = with_past_verdicts(shown, batch, best_of, page, tuned)
        return RankedBatch(contenders, shown, watch)
