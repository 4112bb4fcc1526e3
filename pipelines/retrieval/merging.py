"""What stage 1 hands on: the contents that channels found, merged by content hash (RET-8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pipelines.domain.ids import ContentHash
from pipelines.domain.ranking import Channel
from pipelines.quality.groups import Groups
from pipelines.retrieval.candidates import (
    CHANNEL_AT,
    CHANNELS,
    SIGNALS,
    Candidates,
    Floats,
    Ints,
    Merged,
    Standings,
)
from pipelines.retrieval.documents import DOMAINS, Documents
from pipelines.retrieval.filters import matches
from pipelines.retrieval.hits import Hits, ScoreRows
from pipelines.retrieval.ports import ContentStore


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
    keys = {channel: _keys(found, channel, len(contents)) for channel in CHANNELS}
    key = np.unique(np.concatenate(list(keys.values())))
    query, row = np.divmod(key, max(1, len(contents)))
    ranks = np.zeros((len(key), len(CHANNELS)), dtype=np.int64)
    scores = np.full((len(key), len(CHANNELS)), np.nan)
    for at, (channel, of_channel) in enumerate(keys.items()):
        if len(of_channel):
            lines, hits = np.searchsorted(key, of_channel), [each[channel] for each in found if channel in each]
            ranks[lines, at] = np.concatenate([np.arange(1, len(each) + 1) for each in hits])
            scores[lines, at] = np.concatenate([each.scores for each in hits])
    unknown = np.isnan(scores)
    for owner, own in Groups.of(query):
        for channel, score in scorers[owner].items():
            missing = own.start + unknown[own, CHANNEL_AT[channel]].nonzero()[0]
            if len(missing):
                scores[missing, CHANNEL_AT[channel]] = score(row[missing])
    standings = standings_of(contents, store, documents, store.standings(row), query=query, filters=filters)
    return table_of(standings, query, row, ranks, scores)


def standings_of(
    contents: Sequence[ContentHash],
    store: ContentStore,
    documents: Documents,
    places: tuple[Ints, Ints, Ints],
    *,
    query: Ints,
    filters: Sequence[Mapping[str, str]],
) -> Standings:
    """Places of contents that the filters of their queries let through.

    Args:
        places: As `store` gives them for the contents of the candidates.
        query: Of each candidate.
        filters: Of each query.
    """
    owner, place, document = places
    if any(filters):
        asked = query[owner] * len(documents.facts) + document
        distinct, of_place = np.unique(asked, return_inverse=True)
        pairs = (divmod(pair, len(documents.facts)) for pair in distinct.tolist())
        holds = np.array([matches(documents.facts[number], filters[who]) for who, number in pairs], dtype=bool)
        kept = holds[of_place]
        owner, place, document = owner[kept], place[kept], document[kept]
    # A content's places in one document follow one another.
    new = (owner[1:] != owner[:-1]) | (document[1:] != document[:-1])
    first = np.flatnonzero(np.concatenate([np.ones(min(1, len(owner)), dtype=bool), new]))
    return Standings(contents, store, documents, owner, place, document, first)


def table_of(standings: Standings, query: Ints, row: Ints, ranks: Ints, scores: Floats) -> Candidates:
    """Candidates by number, each at its representative, of which nothing is told yet."""
    count = len(row)
    at = np.searchsorted(standings.owner, np.arange(count))
    document = standings.document[at]
    domain, nothing = standings.documents.domain[document], np.zeros((count, 0))
    pairs, scope = np.unique(query * len(DOMAINS) + domain, return_inverse=True)
    scopes = [(pair // len(DOMAINS), DOMAINS[pair % len(DOMAINS)]) for pair in pairs.tolist()]
    return Candidates(
        standings,
        Merged(query, row, domain, scopes, scope, ranks, scores),
        number=np.arange(count),
        documents=document,
        places=standings.place[at],
        signals=np.full((count, len(SIGNALS)), np.nan),
        parts=(),
        values=nothing,
        weights=nothing,
        totals=np.zeros(count),
    )


Head = dict[Channel, tuple[tuple[ContentHash, float], ...]]


def heads(candidates: Candidates, depth: int, queries: int) -> list[Head]:
    """For each query the contents that each channel ranked first to `depth`, with its scores, best first.

    Args:
        queries: How many there are, those for which nothing was found counted.
    """
    found: list[Head] = [{} for _ in range(queries)]
    merged, contents = candidates.merged, candidates.standings.contents
    numbers, ats = np.nonzero((merged.ranks > 0) & (merged.ranks <= depth))
    owner = merged.query[numbers] * len(CHANNELS) + ats
    order = np.lexsort((merged.ranks[numbers, ats], owner))
    numbers, ats = numbers[order], ats[order]
    names = [contents[row] for row in merged.row[numbers].tolist()]
    scores = merged.scores[numbers, ats].tolist()
    for place, lines in Groups.of(owner[order]):
        query, at = divmod(place, len(CHANNELS))
        found[query][CHANNELS[at]] = tuple(zip(names[lines], scores[lines], strict=True))
    return found


def _keys(found: Sequence[Mapping[Channel, Hits]], channel: Channel, size: int) -> Ints:
    """Queries and contents that a channel found, each pair as one number, in the order of `found`."""
    keys = [query * size + each[channel].rows for query, each in enumerate(found) if channel in each]
    return np.concatenate(keys) if keys else np.zeros(0, dtype=np.int64)
