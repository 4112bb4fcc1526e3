"""Tables of candidates from a few words, for tests of the stages that work on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tests.support.retrieval_fakes import NOW, AContent, APlace, EvenBeliefs, MemoryChunks, a_place, a_query
from weft.domain.ids import ContentHash, VersionName
from weft.domain.ranking import Channel, ChannelHit, Query
from weft.domain.understanding import QueryType, Understanding
from weft.retrieval.answers import Candidate, explain_candidates
from weft.retrieval.channels.run import Hits, Ranked
from weft.retrieval.query.understanding import Plan
from weft.retrieval.ranking.batch import CHANNELS, RankingBatch, batch_of, best_first, occurrences_of
from weft.retrieval.ranking.context import RankingContext, Rerankers, SignalWeights
from weft.retrieval.snapshot.documents import Documents
from weft.retrieval.snapshot.snapshot import BeliefReading

UNDERSTOOD = Understanding(type=QueryType.SPECIFIC, confidence=0.0, limit=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class AHit:
    """What channels found, before it is a line of a table; its text and its hash are its name.

    Attributes:
        places: Where it stands, each with a number of its own.
        further: Scores by channels that did not find it.
        score: What it is scored so far, in one contribution of the name of the dense channel.
    """

    name: str
    channels: Mapping[Channel, ChannelHit]
    places: tuple[APlace, ...]
    further: Mapping[Channel, float] = field(default_factory=dict)
    score: float | None = None


def a_hit(name: str, channels: Mapping[Channel, ChannelHit], *uris: str, **more: Any) -> AHit:
    places = tuple(a_place(uri, name) for uri in uris or (f"doc-{name}",))
    return AHit(name=name, channels=channels, places=more.pop("places", places), **more)


def a_context(query: Query | None = None, **more: Any) -> RankingContext:
    """What one query is ranked on: nothing that channels gave, and no weight of any signal."""
    asked = a_query("q", k=50) if query is None else query
    plan = Plan(asked, asked.text, False, UNDERSTOOD, tuple(Channel), 100, asked.k or 10, None)
    nothing: dict[str, Any] = {
        "plan": plan,
        "ranked": {},
        "answered": frozenset(),
        "reranking": Rerankers({}, {}),
        "reading": BeliefReading(VersionName("priors"), more.pop("beliefs", EvenBeliefs())),
        "weights": lambda _: {},
        "draws": lambda _: np.zeros((0, 0)),
        "now": NOW,
    }
    return RankingContext(**nothing | more)


def asked_with(batch: RankingBatch, weights: SignalWeights) -> RankingBatch:
    """The same candidates under other weights."""
    return replace(batch, contexts=[replace(each, weights=weights) for each in batch.contexts])


def with_vectors(batch: RankingBatch, vectors: np.ndarray, k: int) -> RankingBatch:
    """The same candidates, each with a vector in the order of the lines, for a query that asks for `k`."""
    place = {row: at for at, row in enumerate(batch.rows.tolist())}
    ranked = Ranked(Hits.of(()), vectors=lambda rows: vectors[[place[row] for row in rows.tolist()]])
    return replace(batch, contexts=[a_context(a_query("q", k=k), ranked={Channel.DENSE: ranked})])


def a_table(*hits: AHit, context: RankingContext | None = None) -> RankingBatch:
    """Candidates of one query in the order of their hashes, however they come."""
    ordered = sorted(hits, key=lambda hit: hit.name)
    numbered, at = [], 0
    for row, hit in enumerate(ordered):
        places = tuple(replace(place, place=place.place or at + more) for more, place in enumerate(hit.places))
        numbered.append(AContent(row, ContentHash(hit.name), hit.name, places))
        at += len(places)
    chunks = MemoryChunks(numbered)
    rows = np.arange(len(ordered))
    ranks, scores = np.zeros((len(rows), len(CHANNELS)), dtype=np.int64), np.full((len(rows), len(CHANNELS)), np.nan)
    for row, hit in enumerate(ordered):
        for channel, place in hit.channels.items():
            ranks[row, CHANNELS.index(channel)] = place.rank
            scores[row, CHANNELS.index(channel)] = place.score
        for channel, score in hit.further.items():
            scores[row, CHANNELS.index(channel)] = score
    query, documents = np.zeros(len(rows), dtype=np.int64), Documents.of(chunks.documents())
    hashes = [one.content_hash for one in numbered]
    occurrences = occurrences_of(hashes, chunks, documents, query=query, row=rows, filters=[{}])
    contexts = [context or a_context()]
    table = batch_of(contexts, [{}], occurrences, query=query, row=rows, ranks=ranks, scores=scores)
    scored = np.array([np.nan if hit.score is None else hit.score for hit in ordered])
    return table if np.isnan(scored).all() else best_first(table.add_term("dense", scored, 1.0))


def told(candidates: RankingBatch) -> list[Candidate]:
    """Lines of a batch, without beliefs about weights."""
    return explain_candidates(asked_with(candidates, lambda _: {}))
