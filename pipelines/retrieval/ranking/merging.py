"""What stage 1 hands on: the contents that channels found, merged by content hash (RET-8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pipelines.domain.ids import ContentHash
from pipelines.domain.ranking import Channel
from pipelines.quality.groups import Groups
from pipelines.retrieval.channels.rankings import NOTHING, Hits, ScoreRows
from pipelines.retrieval.ranking.table import (
    CHANNEL_AT,
    CHANNELS,
    SIGNALS,
    Candidates,
    Floats,
    Ints,
    Merged,
    OccurrenceTable,
)
from pipelines.retrieval.snapshot.documents import DOMAINS, Documents
from pipelines.retrieval.snapshot.filters import matches
from pipelines.retrieval.snapshot.ports import ContentStore


def merge(
    found: Sequence[Mapping[Channel, Hits]],
    scorers: Sequence[Mapping[Channel, ScoreRows]],
    *,
    contents: Sequence[ContentHash],
    store: ContentStore,
    documents: Documents,
    filters: Sequence[Mapping[str, str]],
) -> Candidates:
    """One candidate per query and content, knowing every channel that found it.

    Args:
        found: Of each query, by channel.
        scorers: Of each query, by channel: what scores contents that the channel did not find. What a channel did not
            rank is not thereby unlike the query: a similarity that is known must not count as none.
        contents: Content hash by row, ascending: so the order of rows is that of hashes.
        documents: Of the generation, by number.
        filters: What each query asks of a document's metadata; other documents of a content are left out.
    """
    size = max(1, len(contents))
    hits = [
        (query, channel, each)
        for query, of_query in enumerate(found)
        for channel, each in of_query.items()
        if len(each)
    ]
    keys = np.concatenate([NOTHING.rows, *(query * size + each.rows for query, _, each in hits)])
    key, line = np.unique(keys, return_inverse=True)
    query, row = np.divmod(key, size)
    columns = np.array([CHANNEL_AT[channel] for _, channel, _ in hits], dtype=np.int64)
    cells = line * len(CHANNELS) + columns.repeat([len(each) for *_, each in hits])
    ranks = np.zeros((len(key), len(CHANNELS)), dtype=np.int64)
    scores = np.full((len(key), len(CHANNELS)), np.nan)
    ranks.ravel()[cells] = np.concatenate([NOTHING.rows, *(np.arange(1, len(each) + 1) for *_, each in hits)])
    scores.ravel()[cells] = np.concatenate([NOTHING.scores, *(each.scores for *_, each in hits)])
    unknown = np.isnan(scores)
    for owner, own in Groups.of(query):
        missing = unknown[own]
        some = missing.any(axis=0).tolist()
        for channel, score in scorers[owner].items():
            if some[at := CHANNEL_AT[channel]]:
                # All are scored, though some are known: whoever reads contents for that, reads all of them once.
                np.copyto(scores[own, at], score(row[own]), where=missing[:, at])
    occurrences = standings_of(contents, store, documents, store.standings(row), query=query, filters=filters)
    return table_of(occurrences, query, row, ranks, scores)


def standings_of(
    contents: Sequence[ContentHash],
    store: ContentStore,
    documents: Documents,
    places: tuple[Ints, Ints, Ints],
    *,
    query: Ints,
    filters: Sequence[Mapping[str, str]],
) -> OccurrenceTable:
    """Places of contents that the filters of their queries let through.

    Args:
        places: As `store` gives them for the contents of the candidates.
        query: Of each candidate.
        filters: Of each query.
    """
    owner, place, document = places
    if any(filters):
        asked = query[owner] * len(documents.facts) + document
        known, of_place = np.unique(asked, return_inverse=True)
        pairs = (divmod(pair, len(documents.facts)) for pair in known.tolist())
        holds = np.array([matches(documents.facts[number], filters[who]) for who, number in pairs], dtype=bool)
        kept = holds[of_place]
        owner, place, document = owner[kept], place[kept], document[kept]
    # A content's places in one document follow one another.
    first = np.ones(len(owner), dtype=bool)
    first[1:] = (owner[1:] != owner[:-1]) | (document[1:] != document[:-1])
    return OccurrenceTable(contents, store, documents, owner, place, document, first.nonzero()[0])


def table_of(occurrences: OccurrenceTable, query: Ints, row: Ints, ranks: Ints, scores: Floats) -> Candidates:
    """Candidates by number, each at its representative, of which nothing is told yet."""
    count = len(row)
    at = occurrences.owner.searchsorted(np.arange(count))
    document = occurrences.document[at]
    domain, nothing = occurrences.documents.domain[document], np.zeros((count, 0))
    pair = query * len(DOMAINS) + domain
    there = np.zeros(pair.max(initial=-1) + 1, dtype=bool)
    there[pair] = True
    scopes = [(each // len(DOMAINS), DOMAINS[each % len(DOMAINS)]) for each in there.nonzero()[0].tolist()]
    scope = (there.cumsum() - 1)[pair]
    return Candidates(
        occurrences,
        Merged(query, row, domain, scopes, scope, ranks, scores),
        number=np.arange(count),
        documents=document,
        places=occurrences.place[at],
        signals=np.full((count, len(SIGNALS)), np.nan),
        parts=(),
        values=nothing,
        weights=nothing,
        totals=np.zeros(count),
    )


Head = dict[Channel, tuple[tuple[ContentHash, float], ...]]


def head(found: Mapping[Channel, Hits], depth: int, contents: Sequence[ContentHash]) -> Head:
    """The contents that each channel ranked first to `depth` for one query, with its scores, best first.

    Args:
        contents: Content hash by row.
    """
    kept = {channel: found[channel].head(depth) for channel in CHANNELS if channel in found}
    return {
        channel: tuple(zip([contents[row] for row in hits.rows.tolist()], hits.scores.tolist(), strict=True))
        for channel, hits in kept.items()
        if len(hits)
    }
