"""From queries to answers, read first: candidates → fusion → rerank → score and assembly.

Every stage is a plain function over candidates; each adds to their scores and says by how much.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from pipelines.domain.ranking import Answer, Placings, Query
from pipelines.retrieval.answers import RankedBatch, answers, placings
from pipelines.retrieval.channels.run import ChannelRankings
from pipelines.retrieval.query.plan import Plan
from pipelines.retrieval.ranking.effects import lifts
from pipelines.retrieval.ranking.final_score import in_units, score_and_cut
from pipelines.retrieval.ranking.fusion import fuse
from pipelines.retrieval.ranking.past import past_verdicts, places_before
from pipelines.retrieval.ranking.signals import (
    with_propagated,
    with_pseudo_relevance,
    with_similarity,
    without_release_notes,
)
from pipelines.retrieval.ranking.table import Candidates, Ints, merge, with_upfront
from pipelines.retrieval.rerank.best import reranked
from pipelines.retrieval.rerank.diversity import Choice, contending, diverse, vectors_of, with_aliases
from pipelines.retrieval.search import RankingContext, Resources, Stopwatch, one_ahead, ranking_contexts, search
from pipelines.retrieval.settings import FusionMode, ResultUnit


@dataclass(frozen=True, slots=True)
class Pipeline(Resources):
    """The four stages over one snapshot; remembers nothing between calls."""

    def answer(self, queries: Sequence[Query], *, now: float) -> list[Answer]:
        """Answer queries together: channels see batches of them, and search for the next while one is ranked."""
        return one_ahead(
            self._batches(queries), partial(search, self), lambda some: answers(self, self._with_past(*some, now))
        )

    def rank(self, queries: Sequence[Query], *, now: float) -> list[Placings]:
        """The results of the same answers, without explanations: for who compares rankings."""
        return one_ahead(self._batches(queries), partial(search, self), lambda it: placings(self._rank(*it, now)))

    def _batches(self, queries: Sequence[Query]) -> list[Sequence[Query]]:
        size = self.settings.encode_batch
        return [queries[start : start + size] for start in range(0, len(queries), size)]

    def _rank(self, plans: Sequence[Plan], rankings: ChannelRankings, now: float) -> RankedBatch:
        """Rank the candidates of a batch of queries: all of them in one table, in which none minds the others."""
        watch, tuned = Stopwatch(rankings.elapsed_ms, len(plans)), self.settings
        contexts = ranking_contexts(self, plans, rankings, now)
        contenders, left_out = self._contenders(contexts, _pages(contexts) + tuned.diversity.depth, watch)
        with watch.stage("assembly"):
            shown = self._shown(contenders, contexts)
            choices = {
                at: Choice(
                    contending(contenders, at),
                    each.plan.k,
                    vectors_of(each.ranked),
                    tuned.diversity,
                    each.passes,
                    self.relations,
                )
                for at, each in enumerate(contexts)
                if each.plan.query.explore
            }
        failed = [{**silent, **lacking} for silent, lacking in zip(rankings.failed, left_out, strict=True)]
        return RankedBatch(contexts, shown, choices, failed, watch)

    def _contenders(
        self, contexts: Sequence[RankingContext], depths: Ints, watch: Stopwatch
    ) -> tuple[Candidates, list[dict[str, str]]]:
        """The best candidates of each query by final score, and why rerankers gave nothing, by name.

        Args:
            depths: How many of each query, (queries,).
        """
        tuned, weights = self.settings, [each.weights for each in contexts]
        vectors, beliefs = [vectors_of(each.ranked) for each in contexts], [each.reading.beliefs for each in contexts]
        with watch.stage("candidates"):
            candidates = self._candidates(contexts)
        with watch.stage("fusion"):
            answered = [each.answered for each in contexts]
            similar = with_similarity(candidates, answered, degree_cap=tuned.degree.cap)
            fused = fuse(with_pseudo_relevance(similar, vectors, tuned.pseudo_relevance), weights, tuned)
        with watch.stage("rerank"):
            best, left_out = reranked(fused, [each.reranking for each in contexts], weights, tuned)
            past, questions = [each.past for each in contexts], [each.plan.text for each in contexts]
            if tuned.fusion is FusionMode.LEARNED:
                best = without_release_notes(best, questions, self.facts, tuned.quality.release_notes)
            scored = with_propagated(best, self.facts, tuned.quality)
            named = self.headings.named(questions, beliefs[0].near)
            united = in_units(scored, tuned, lifts(scored, past), named)
        with watch.stage("assembly"):
            moments = [each.moment for each in contexts]
            return (
                score_and_cut(united, depths, beliefs, weights, moments=moments, past=past, settings=tuned),
                left_out,
            )

    def _shown(self, contenders: Candidates, contexts: Sequence[RankingContext]) -> Candidates:
        """What pages show of these."""
        vectors, passes = [vectors_of(each.ranked) for each in contexts], [each.passes for each in contexts]
        ks = _pages(contexts)
        return diverse(contenders, ks, vectors, self.settings, passes=passes, relations=self.relations)

    def _with_past(self, plans: Sequence[Plan], rankings: ChannelRankings, now: float) -> RankedBatch:
        """The same with what people called results, and where each would stand without that: ranked once more."""
        ranked = self._rank(plans, rankings, now)
        past = {
            at: each.past for at, each in enumerate(ranked.contexts) if each.past is not None and len(each.past.words)
        }
        if not past:
            return ranked
        plain = [ranked.contexts[at].without_past() for at in past]
        every, _ = self._contenders(plain, np.full(len(plain), np.iinfo(np.int64).max), ranked.watch)
        with ranked.watch.stage("assembly"):
            page = self._shown(every.head(_pages(plain) + self.settings.diversity.depth), plain)
            places = places_before(page, every, by_document=self.settings.unit is ResultUnit.DOCUMENT)
            before = {at: places[place] for place, at in enumerate(past) if place in places}
            shown = replace(ranked.shown, past=past_verdicts(ranked.shown, past, before))
        return replace(ranked, shown=shown)

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
        return with_upfront(named, [each.plan.first for each in contexts])


def _pages(contexts: Sequence[RankingContext]) -> Ints:
    """How many results each query asks for, (queries,)."""
    return np.array([each.plan.k for each in contexts])
