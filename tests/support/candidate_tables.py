"""Tables of candidates from a few words, for tests of the stages that work on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tests.support.retrieval_fakes import AContent, APlace, MemoryChunks, a_place
from weft.domain.ids import ContentHash
from weft.domain.ranking import Channel, ChannelHit
from weft.retrieval.answer.explain import Candidate, explain_candidates
from weft.retrieval.ranking.table import CHANNELS, Candidates, best_first, occurrences_of, table_of
from weft.retrieval.snapshot.documents import Documents


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


def a_table(*hits: AHit) -> Candidates:
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
    table = table_of(occurrences, query, rows, ranks, scores)
    scored = np.array([np.nan if hit.score is None else hit.score for hit in ordered])
    return table if np.isnan(scored).all() else best_first(table.add_term("dense", scored, 1.0))


def told(candidates: Candidates) -> list[Candidate]:
    """Lines of a table whose scores rest on no learned weight."""
    return explain_candidates(candidates, [lambda _: {}])
