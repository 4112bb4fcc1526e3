"""From queries to answers, read first: candidates → fusion → rerank → score and assembly.

Every stage is a plain function over candidates; each adds to their scores and says by how much.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np

from pipelines.domain.ranking import Answer, Placings, Query
from pipelines.retrieval.answers import RankedBatch, answers, placings
from pipelines.retrieval.channels.run import (
    ChannelRankings,
)
from pipelines.retrieval.query.plan import Plan
from pipelines.retrieval.ranking.final_score import UNITS, score_and_cut
from pipelines.retrieval.ranking.fusion import FUSIONS, Weighing
from pipelines.retrieval.ranking.signals import with_propagated, with_pseudo_relevance, with_similarity
from pipelines.retrieval.ranking.table import Candidates, merge
from pipelines.retrieval.rerank.best import reranked
from pipelines.retrieval.rerank.diversity import Choice, contending, diverse, vectors_of
from pipelines.retrieval.search import RankingContext, Resources, Stopwatch, one_ahead, ranking_contexts, search

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Pipeline(Resources):
    """The four stages over one snapshot; remembers nothing between calls."""

    def answer(self, queries: Sequence[Query], *, now: float) -> list[Answer]:
        """Answer queries together: channels see batches of them, and search for the next while one is ranked."""
        return self._each(queries, now, self._answers)

    def rank(self, queries: Sequence[Query], *, now: float) -> list[Placings]:
        """The results of the same answers, without explanations: for who compares rankings."""
        return self._each(queries, now, placings)

    def _each(self, queries: Sequence[Query], now: float, present: Callable[[RankedBatch], list[T]]) -> list[T]:
        size = self.settings.encode_batch
        batches = [queries[start : start + size] for start in range(0, len(queries), size)]
        return one_ahead(batches, partial(search, self), lambda searched: present(self._ranked(*searched, now)))

    def _answers(self, ranking: RankedBatch) -> list[Answer]:
        return answers(self, ranking)

    def _ranked(self, plans: Sequence[Plan], rankings: ChannelRankings, now: float) -> RankedBatch:
        """Rank what was found for a batch of queries: all of them in one table, in which none minds the others."""
        watch, tuned = Stopwatch(rankings.elapsed_ms, len(plans)), self.settings
        contexts = ranking_contexts(self, plans, rankings, now)
        weights, beliefs = [each.weights for each in contexts], [each.reading.beliefs for each in contexts]
        with watch.stage("candidates"):
            candidates = self._candidates(contexts)
        with watch.stage("fusion"):
            similar = with_similarity(candidates, [each.answered for each in contexts])
            vectors = [vectors_of(each.ranked) for each in contexts]
            similar = with_pseudo_relevance(similar, vectors, tuned.pseudo_relevance)
            fused = FUSIONS[tuned.fusion](similar, Weighing(tuned.channel_weights, weights), tuned)
        with watch.stage("rerank"):
            reranked_candidates, left_out = reranked(fused, [each.reranking for each in contexts], weights, tuned)
            united = UNITS[tuned.unit](with_propagated(reranked_candidates, self.facts, tuned.quality), tuned)
        with watch.stage("assembly"):
            ks = np.array([each.plan.k for each in contexts])
            depths = np.maximum(ks + tuned.diversity.depth, tuned.explored_depth)
            moments = [each.moment for each in contexts]
            contenders = score_and_cut(united, depths, beliefs, weights, moments=moments, settings=tuned)
            passes = [each.passes for each in contexts]
            shown = diverse(contenders, ks, vectors, tuned, passes=passes)
            choices = {
                at: Choice(contending(contenders, at), each.plan.k, vectors[at], tuned.diversity, passes[at])
                for at, each in enumerate(contexts)
                if each.plan.query.explore
            }
        failed = [{**silent, **lacking} for silent, lacking in zip(rankings.failed, left_out, strict=True)]
        return RankedBatch(contexts, shown, choices, failed, watch)

    def _candidates(self, contexts: Sequence[RankingContext]) -> Candidates:
        generation = self.snapshot.generation
        return merge(
            [each.hits for each in contexts],
            [each.scorers(complete=self.settings.complete_scores) for each in contexts],
            contents=generation.contents,
            store=generation.chunks,
            documents=self.facts.documents,
            filters=[each.plan.query.filters for each in contexts],
        )
