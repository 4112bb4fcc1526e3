"""From queries to answers, read first: candidates → fusion → rerank → score and assembly.

Every stage is a plain function over candidates; each adds to their scores and says by how much.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from weft.domain.ranking import Answer, Query, ScoredResults
from weft.retrieval.answers import RankedBatch, answers, scored_results
from weft.retrieval.channels.run import ChannelRankings
from weft.retrieval.query.plan import Plan
from weft.retrieval.ranking.final_score import best_results
from weft.retrieval.ranking.fusion import fuse
from weft.retrieval.ranking.past import with_past_verdicts
from weft.retrieval.ranking.signals import (
    with_propagated,
    with_pseudo_relevance,
    with_similarity,
    without_release_notes,
)
from weft.retrieval.ranking.table import Candidates, merge, with_elevated
from weft.retrieval.rerank.best import reranked
from weft.retrieval.rerank.diversity import Choice, contending, diverse, vectors_of, with_aliases
from weft.retrieval.search import RankingContext, Resources, Stopwatch, prefetched, ranking_contexts, search
from weft.retrieval.settings import FusionMode


@dataclass(frozen=True, slots=True)
class Pipeline(Resources):
    """The four stages over one snapshot; remembers nothing between calls."""

    def answer(self, queries: Sequence[Query], *, now: float) -> list[Answer]:
        """Answer queries together: channels see batches of them, and search for the next while one is ranked."""
        return prefetched(
            self._batches(queries),
            partial(search, self),
            lambda some: answers(self, self._rank(*some, now, explained=True)),
        )

    def rank(self, queries: Sequence[Query], *, now: float) -> list[ScoredResults]:
        """The results of the same answers, without explanations: for who compares rankings."""
        return prefetched(
            self._batches(queries), partial(search, self), lambda it: scored_results(self._rank(*it, now))
        )

    def _batches(self, queries: Sequence[Query]) -> list[Sequence[Query]]:
        size = self.settings.encode_batch
        return [queries[start : start + size] for start in range(0, len(queries), size)]

    def _rank(
        self, plans: Sequence[Plan], rankings: ChannelRankings, now: float, *, explained: bool = False
    ) -> RankedBatch:
        """Rank the candidates of a batch of queries: all of them in one table, in which none minds the others."""
        watch, tuned = Stopwatch(rankings.elapsed_ms, len(plans)), self.settings
        contexts = ranking_contexts(self, plans, rankings, now)
        weights, beliefs = [each.weights for each in contexts], [each.reading.beliefs for each in contexts]
        vectors, passes = [vectors_of(each.ranked) for each in contexts], [each.passes for each in contexts]
        with watch.stage("candidates"):
            candidates = self._candidates(contexts)
        with watch.stage("fusion"):
            answered = [each.answered for each in contexts]
            similar = with_similarity(candidates, answered, degree_cap=tuned.degree.cap)
            fused = fuse(with_pseudo_relevance(similar, vectors, tuned.pseudo_relevance), weights, tuned)
        with watch.stage("rerank"):
            best, left_out = reranked(fused, [each.reranking for each in contexts], weights, tuned)
            past, questions = [each.past for each in contexts], [plan.text for plan in plans]
            if tuned.fusion is FusionMode.LEARNED:
                best = without_release_notes(best, questions, self.facts, tuned.quality.release_notes)
            scored = with_propagated(best, self.facts, tuned.quality)
            named = self.headings.named(questions)
        with watch.stage("assembly"):
            ks, moments = np.array([each.plan.k for each in contexts]), [each.moment for each in contexts]
            depths = ks + tuned.diversity.depth
            best_of = partial(
                best_results, beliefs=beliefs, weights=weights, moments=moments, settings=tuned, named=named
            )
            page = partial(diverse, ks=ks, vectors=vectors, settings=tuned, passes=passes, relations=self.relations)
            contenders = best_of(scored, depths, past=past)
            shown = page(contenders)
            if explained:
                shown = with_past_verdicts(
                    shown, scored, past, best_of, lambda every: page(every.head(depths)), settings=tuned
                )
            choices = {
                at: Choice(
                    contending(contenders, at), each.plan.k, vectors[at], tuned.diversity, passes[at], self.relations
                )
                for at, each in enumerate(contexts)
                if each.plan.query.explore
            }
        failed = [{**silent, **lacking} for silent, lacking in zip(rankings.failed, left_out, strict=True)]
        return RankedBatch(contexts, shown, choices, failed, watch)

    def _candidates(self, contexts: Sequence[RankingContext]) -> Candidates:
        generation = self.snapshot.generation
        merged = merge(
            [each.hits for each in contexts],
            [each.scorers(complete=self.settings.complete_scores) for each in contexts],
            contents=generation.contents,
            store=generation.chunks,
            documents=self.facts.documents,
            filters=[each.plan.query.filters for each in contexts],
        )
        named = with_aliases(merged, [each.left_out for each in contexts])
        return with_elevated(named, [each.plan.first for each in contexts])
