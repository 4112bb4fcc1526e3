"""Stage 3: the chunks of a document become one result (RET-11)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from msgspec.structs import replace

from pipelines.domain.ids import ContentHash
from pipelines.domain.ranking import Contribution
from pipelines.retrieval.candidates import Candidate, best_first
from pipelines.retrieval.settings import ResultUnit, RetrievalSettings

BONUS = "mpab"
"""Name of the contribution by which a document's further chunks speak for its best one."""


def collapse_documents(candidates: Sequence[Candidate], *, factor: float) -> list[Candidate]:
    """One candidate per document, its best chunk: S = S_max + factor · Σ S_rest / √N.

    N is the number of the document's chunks that matched; N = 1 passes unchanged. A content that is the best chunk of
    several documents is one candidate that speaks for them all (ARC-4), with the score of the best of them.

    Args:
        candidates: Scored by stage 2.
        factor: Weight >= 0 of the further chunks.

    Returns:
        Best first, ties by content hash; `uris` best document first.
    """
    documents: defaultdict[ContentHash, list[tuple[Candidate, str]]] = defaultdict(list)
    for uri, chunks in _by_document(candidates).items():
        best = _with_bonus(best_first(chunks) if len(chunks) > 1 else chunks, factor)
        documents[best.content_hash].append((best, uri))
    return best_first(_one_of(same) for same in documents.values())


def separate_chunks(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Every candidate for itself, speaking for each document it stands in."""
    return [replace(item, uris=tuple(dict.fromkeys(at.uri for at in item.standings))) for item in candidates]


Rerank = Callable[[Sequence[Candidate], RetrievalSettings], list[Candidate]]

UNITS: Mapping[ResultUnit, Rerank] = MappingProxyType(
    {
        ResultUnit.DOCUMENT: lambda found, settings: collapse_documents(found, factor=settings.mpab_factor),
        ResultUnit.CHUNK: lambda found, _settings: separate_chunks(found),
    }
)


def _by_document(candidates: Sequence[Candidate]) -> Mapping[str, list[Candidate]]:
    documents: defaultdict[str, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        for uri in dict.fromkeys(standing.uri for standing in candidate.standings):
            documents[uri].append(candidate)
    return documents


def _with_bonus(chunks: Sequence[Candidate], factor: float) -> Candidate:
    if len(chunks) == 1:
        return chunks[0]
    best, *rest = chunks
    support = math.fsum(chunk.score for chunk in rest) / math.sqrt(len(chunks))
    return best.plus([Contribution(BONUS, support, factor, factor * support)])


def _one_of(same: Sequence[tuple[Candidate, str]]) -> Candidate:
    if len(same) == 1:
        return replace(same[0][0], uris=(same[0][1],))
    ordered = sorted(same, key=lambda item: (-item[0].score, item[1]))
    return replace(ordered[0][0], uris=tuple(uri for _, uri in ordered))
