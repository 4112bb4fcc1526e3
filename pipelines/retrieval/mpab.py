"""Stage 3: the chunks of a document become one result (RET-11)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from pipelines.retrieval.candidates import Candidates, Floats, Ints, best_first
from pipelines.retrieval.settings import ResultUnit, RetrievalSettings

BONUS = "mpab"
"""Name of the contribution by which a document's further chunks speak for its best one."""


def collapse_documents(candidates: Candidates, *, factor: float) -> Candidates:
    """One candidate per document, its best chunk: S = S_max + factor · Σ S_rest / √N.

    N is the number of the document's chunks that matched; N = 1 passes unchanged. A content that is the best chunk of
    several documents is one candidate that speaks for them all (ARC-4), with the score of the best of them.

    Args:
        candidates: Scored by stage 2.
        factor: Weight >= 0 of the further chunks.

    Returns:
        Best first, ties by content hash; each at its place in the best document that it speaks for.
    """
    lines, first = _in_documents(candidates)
    document, place = candidates.standings.document[first], candidates.standings.place[first]
    order = np.lexsort((candidates.number[lines], -candidates.total[lines], document))
    starts = np.flatnonzero(np.diff(document[order], prepend=-1))
    best = candidates.take(lines[order][starts])
    best = replace(best, document=document[order][starts], place=place[order][starts])
    support = _support(candidates.total[lines[order]], np.append(starts, len(order)))
    return best_first(_one_of_each(best.plus_one(BONUS, support, factor)))


def separate_chunks(candidates: Candidates) -> Candidates:
    """Every candidate for itself, speaking for each document it stands in."""
    lines, first = _in_documents(candidates)
    numbers, documents = candidates.number[lines], candidates.standings.document[first]
    several = set(numbers[1:][numbers[1:] == numbers[:-1]].tolist())
    return replace(
        candidates,
        speaks_for={number: tuple(documents[numbers == number].tolist()) for number in several},
    )


Rerank = Callable[[Candidates, RetrievalSettings], Candidates]

UNITS: Mapping[ResultUnit, Rerank] = MappingProxyType(
    {
        ResultUnit.DOCUMENT: lambda found, settings: collapse_documents(found, factor=settings.mpab_factor),
        ResultUnit.CHUNK: lambda found, _settings: separate_chunks(found),
    }
)


def _in_documents(candidates: Candidates) -> tuple[Ints, Ints]:
    """Each candidate in each of its documents: its line here, and the line of its first place there in `standings`."""
    standings = candidates.standings
    line_of = np.full(len(standings.hashes), -1)
    line_of[candidates.number] = np.arange(len(candidates))
    lines = line_of[standings.owner[standings.first]]
    return lines[lines >= 0], standings.first[lines >= 0]


def _support(totals: Floats, bounds: Ints) -> Floats:
    """Σ S_rest / √N of each document; NaN of those with one chunk alone."""
    support = np.full(len(bounds) - 1, np.nan)
    sizes = np.diff(bounds)
    known = totals.tolist()
    for at in np.flatnonzero(sizes > 1).tolist():
        support[at] = math.fsum(known[bounds[at] + 1 : bounds[at + 1]]) / math.sqrt(sizes[at])
    return support


def _one_of_each(best: Candidates) -> Candidates:
    """The best of the lines of each candidate, naming the documents of all of them, by score and then by URI."""
    numbers, counts = np.unique(best.number, return_counts=True)
    if (counts == 1).all():
        return best
    documents, kept, speaks_for = best.standings.documents, np.ones(len(best), dtype=bool), {}
    for number in numbers[counts > 1].tolist():
        same = np.flatnonzero(best.number == number).tolist()
        same.sort(key=lambda at: (-best.total[at], documents[int(best.document[at])].uri))
        speaks_for[number] = tuple(best.document[same].tolist())
        kept[same[1:]] = False
    return replace(best.take(np.flatnonzero(kept)), speaks_for=speaks_for)
