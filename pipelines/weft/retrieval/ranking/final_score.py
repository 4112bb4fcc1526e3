"""From fused chunks to final scores of documents (RET-11, RET-14)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from weft.domain.arrays import Flags, Floats, Ints
from weft.domain.ranking import Repeats, Signal
from weft.indexes.chunk_store import ChunkStore
from weft.quality.groups import Groups
from weft.retrieval.ranking.batch import ABOVE_ALL, SIGNAL_AT, SIGNALS, RankingBatch, best_first
from weft.retrieval.ranking.context import RankingContext
from weft.retrieval.ranking.effects import lifts, with_effects, with_own_verdicts
from weft.retrieval.ranking.fusion import weighed
from weft.retrieval.ranking.languages import in_one_language
from weft.retrieval.ranking.signals import with_quality
from weft.retrieval.settings import FusionMode, ResultUnit, RetrievalSettings
from weft.retrieval.snapshot.documents import Documents
from weft.wording.questions import Question

# Which passage of a document is shown: the best one, or one near it whose headings name what is asked for (RET-11).

Named = Callable[[int, Ints], Floats]
"""From a query's place in its batch and chunks, by place, to how much of it the headings above each name."""

_HELD = 16_384  # headings that are remembered, of whatever chunks: 5 MB


class Headings:
    """What the headings of one generation name; shared by threads."""

    def __init__(self, chunks: ChunkStore) -> None:
        self._chunks = chunks
        self._words_of = lru_cache(_HELD)(_words_of)

    def named(self, contexts: Sequence[RankingContext]) -> Named:
        """The share of each question's content words that the headings above chunks name, synonyms counted as one.

        Of a question that is nothing but headings the share of theirs that it has is added: its own section is shown,
        none of those in it.
        """
        asked = [Question(each.plan.text).content for each in contexts]

        def named(query: int, places: Ints) -> Floats:
            own, above = asked[query], map(self._chunks.heading_path, places.tolist())
            shares = [_share(own, self._words_of(path)) for path in above]
            return np.array(shares, dtype=np.float64)

        return named


def _share(own: frozenset[str], words: frozenset[str]) -> float:
    if own and own <= words:
        return 1.0 + len(own) / len(words)
    return len(own & words) / max(1, len(own))


def _words_of(path: tuple[str, ...]) -> frozenset[str]:
    return Question(" ".join(path)).content


def unnamed(_query: int, places: Ints) -> Floats:
    """Nothing: of documents without headings, and where headings do not count."""
    return np.zeros(len(places))


Apart = Callable[[Ints, Ints], Flags]
"""From queries, by their place in the batch, and chunks, by place, to whether each may be a result beside others of
its document, (n,)."""

_APART = 3
"""Passages of one document that are results of their own."""


def together(_queries: Ints, places: Ints) -> Flags:
    """None: a document is one result."""
    return np.zeros(len(places), dtype=bool)


BONUS = "mpab"
"""Name of the contribution by which a document's further chunks speak for its best one."""


PASSAGE = "passage"
"""Name of the contribution of a document's best chunk where another one is shown for it."""


def collapse_documents(
    candidates: RankingBatch,
    *,
    factor: float,
    floor: float = 0.0,
    lifted: Floats,
    named: Named = unnamed,
    apart: Apart = together,
) -> RankingBatch:
    """One candidate per document: S = S_max + factor · Σ max(0, S_rest − floor · S_max) / √N for N that match.

    Its best chunk is shown, or one that falls behind by less than its headings name more of the question. A content of
    several documents speaks for them all (ARC-4), with the score of the best of them. Where what is shown may stand
    apart, the next best of the document that may are results, too, each with its own score.
    """
    numbers, document, place = _in_documents(candidates)
    chosen_by = candidates.scores.totals[numbers] + lifted[numbers]
    if candidates.merged.first is not None:
        chosen_by += np.where(candidates.merged.first[numbers], ABOVE_ALL, 0.0)
    order = np.lexsort((numbers, -chosen_by, document, candidates.merged.query[numbers]))
    numbers, document, place = numbers[order], document[order], place[order]
    query = candidates.merged.query[numbers]
    new = np.ones(len(order), dtype=bool)
    new[1:] = (query[1:] != query[:-1]) | (document[1:] != document[:-1])
    starts = new.nonzero()[0]
    bounds = np.append(starts, len(order))
    support = _support(candidates.scores.totals[numbers], bounds, floor)
    shown = _shown(chosen_by[order], bounds, lambda lines: named(int(query[lines.start]), place[lines]))
    behind = candidates.scores.totals[numbers[starts]] - candidates.scores.totals[numbers[shown]]
    behind[shown == starts] = np.nan
    further = _further(apart(query, place), bounds, shown)
    lines, none = np.concatenate([shown, further]), np.full(len(further), np.nan)
    best = _Best(numbers[lines], document[lines], place[lines], np.append(support, none), np.append(behind, none))
    one, document_ids = _one_of_each(best, candidates.occurrences.documents, factor)
    documents, places = candidates.documents.copy(), candidates.places.copy()
    documents[one.number], places[one.number] = one.document, one.place
    placed = replace(candidates, number=one.number, documents=documents, places=places, document_ids=document_ids)
    return best_first(placed.add_term(PASSAGE, one.behind, 1.0).add_term(BONUS, one.support, factor))


def _shown(chosen_by: Floats, bounds: Ints, named: Callable[[slice], Floats]) -> Ints:
    """The line of each document that is shown, of equals the first."""
    shown = bounds[:-1].copy()
    for at in (bounds[1:] - bounds[:-1] > 1).nonzero()[0].tolist():
        lines = slice(*bounds[at : at + 2].tolist())
        shown[at] += int((chosen_by[lines] + named(lines)).argmax())
    return shown


def _further(apart: Flags, bounds: Ints, shown: Ints) -> Ints:
    """Lines beside those that are shown of their documents, best first of each; as many as may stand apart."""
    further = [
        line
        for first, start, stop in zip(shown.tolist(), bounds.tolist(), bounds[1:].tolist(), strict=False)
        if apart[first] and stop - start > 1
        for line in [start + at for at in apart[start:stop].nonzero()[0].tolist() if start + at != first][: _APART - 1]
    ]
    return np.array(further, dtype=np.int64)


def separate_chunks(candidates: RankingBatch) -> RankingBatch:
    """Every candidate for itself, speaking for each document it stands in."""
    numbers, documents, _ = _in_documents(candidates)
    several = set(numbers[1:][numbers[1:] == numbers[:-1]].tolist())
    document_ids = {number: tuple(documents[numbers == number].tolist()) for number in several}
    return replace(candidates, document_ids=document_ids)


def in_units(
    candidates: RankingBatch,
    settings: RetrievalSettings,
    lifted: Floats,
    named: Named = unnamed,
    apart: Apart = together,
) -> RankingBatch:
    """Candidates as results of the configured unit."""
    if settings.unit is ResultUnit.CHUNK:
        return separate_chunks(candidates)
    # Scores of the other modes have other scales.
    weight = settings.passage_headings if settings.fusion is FusionMode.LEARNED else 0.0
    return collapse_documents(
        candidates,
        factor=settings.mpab_factor,
        floor=settings.mpab_floor,
        lifted=lifted,
        named=(lambda query, places: weight * named(query, places)) if weight else unnamed,
        apart=apart if settings.fusion is FusionMode.LEARNED else together,
    )


class _Best(NamedTuple):
    """What is shown for each document of each query: the candidate's number, where it stands, what the others add."""

    number: Ints
    document: Ints
    place: Ints
    support: Floats  # Σ max(0, S_rest − floor · S_max) / √N; NaN where there are no others
    behind: Floats  # by how much it falls behind the best chunk; NaN where it is that one


def _in_documents(candidates: RankingBatch) -> tuple[Ints, Ints, Ints]:
    """Each candidate in each of its documents: its number, the document's, and its first place there."""
    occurrences = candidates.occurrences
    present = np.zeros(len(candidates.merged.query), dtype=bool)
    present[candidates.number] = True
    first = occurrences.first[present[occurrences.owner[occurrences.first]]]
    return occurrences.owner[first], occurrences.document[first], occurrences.place[first]


def _support(totals: Floats, bounds: Ints, floor: float) -> Floats:
    """Σ max(0, S_rest − floor · S_max) / √N of each document; NaN of those with one chunk alone."""
    support = np.full(len(bounds) - 1, np.nan)
    sizes = bounds[1:] - bounds[:-1]
    several = (sizes > 1).nonzero()[0]
    values = totals.tolist()
    firsts, ends = (bounds[several] + 1).tolist(), bounds[several + 1].tolist()
    rests = [
        math.fsum(max(0.0, value - floor * values[first - 1]) for value in values[first:end])
        for first, end in zip(firsts, ends, strict=True)
    ]
    support[several] = np.array(rests) / np.sqrt(sizes[several])
    return support


def _one_of_each(best: _Best, documents: Documents, factor: float) -> tuple[_Best, dict[int, tuple[int, ...]]]:
    """Each candidate once, in the document that supports it most, and the documents of those that speak for several."""
    counts = np.bincount(best.number)
    document_ids: dict[int, tuple[int, ...]] = {}
    if counts.max(initial=1) == 1:
        return best, document_ids
    retained = np.ones(len(best.number), dtype=bool)
    added = factor * np.nan_to_num(best.support) + np.nan_to_num(best.behind)
    order = np.lexsort((-added, best.number))
    several = order[counts[best.number[order]] > 1]
    for number, lines in Groups.of(best.number[several]):
        same = several[lines].tolist()
        same.sort(key=lambda at: (-added[at], documents.uri(int(best.document[at]))))
        document_ids[number] = tuple(best.document[same].tolist())
        retained[same[1:]] = False
    some = _Best(
        best.number[retained],
        best.document[retained],
        best.place[retained],
        best.support[retained],
        best.behind[retained],
    )
    return some, document_ids


REPEATED = "repeated"
"""Name of the contribution that lowers what was given before."""


def without_repeats(candidates: RankingBatch, *, penalty: float) -> RankingBatch:
    """Candidates less those that their query's session was given before, or with these lowered, as the query asks."""
    queries = [each.plan.query for each in candidates.contexts]
    if all(query.memory is None or query.repeats is Repeats.KEEP for query in queries):
        return candidates
    left, lowered = (np.zeros(len(candidates), dtype=bool) for _ in range(2))
    for at, lines in candidates.queries:
        query = queries[at]
        if query.memory is not None and query.repeats is not Repeats.KEEP:
            given = frozenset(query.memory.shown)
            repeated = [content in given for content in candidates.take(lines).hashes]
            (left if query.repeats is Repeats.SUPPRESS else lowered)[lines] = repeated
    if lowered.any():
        values = np.where(lowered, candidates.total, np.nan)
        candidates = candidates.add_term(REPEATED, values, -penalty)
    return best_first(candidates.take(~left))


NEUTRAL = "neutral"
"""Name of the contribution that evens out what domains give for signals that say the same of all candidates."""


def with_neutral_terms(candidates: RankingBatch, of: Sequence[Signal]) -> RankingBatch:
    """Candidates with Σ n · (w̄ − w) added where several domains answer a query: what says nothing adds alike to all.

    n is the least that a signal is for any candidate of the query, and 0 where it is not known of all; w is its weight
    in the candidate's domain, w̄ the mean of its weights in the domains that there are.
    """
    places, scopes = [SIGNAL_AT[signal] for signal in of], candidates.merged.scope[candidates.number]
    values = np.full(len(candidates), np.nan)
    for query, lines in candidates.queries:
        present, own = np.unique(scopes[lines], return_inverse=True)
        if len(present) < 2:
            continue
        by_domain = [candidates.contexts[query].weights(candidates.merged.scopes[at][1]) for at in present.tolist()]
        shares = np.array([[each[signal].value if signal in each else 0.0 for signal in of] for each in by_domain])
        least = np.nan_to_num(candidates.signals[candidates.number[lines]][:, places].min(axis=0), nan=0.0)
        # Rounded once, so that neither the order of domains nor signals of other queries of the batch change a bit.
        mean = np.array([math.fsum(of_signal) for of_signal in shares.T.tolist()]) / len(shares)
        amounts = np.array([math.fsum(terms) for terms in ((mean - shares) * least).tolist()])[own]
        values[lines] = np.where(amounts == 0.0, np.nan, amounts)
    return candidates if np.isnan(values).all() else candidates.add_term(NEUTRAL, values, 1.0)


def best_results(
    candidates: RankingBatch,  # contents, which become results of the configured unit
    settings: RetrievalSettings,
    named: Named = unnamed,  # how much of a query the headings above chunks name
    apart: Apart = together,
    *,
    every: bool = False,  # all of them, and not only as many as are compared with one another
) -> RankingBatch:
    """The best results of each query by final score, with all their signals."""
    depths = len(candidates) if every else candidates.ks + settings.diversity.depth
    units = in_units(candidates, settings, lifts(candidates), named, apart)
    penalty = settings.session.repeat_penalty
    if settings.fusion is not FusionMode.LEARNED:
        return with_quality(without_repeats(best_first(units), penalty=penalty).head(depths), settings.quality)
    judged = with_quality(units, settings.quality)
    counted = {part.signal for part in judged.scores.parts}
    quality = [signal for signal in SIGNALS if signal not in counted]
    scored = best_first(with_neutral_terms(weighed(judged, quality), quality))
    return in_one_language(with_own_verdicts(with_effects(without_repeats(scored, penalty=penalty))).head(depths))
