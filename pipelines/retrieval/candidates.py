"""What stage 1 hands on: the contents that channels found, merged by content hash, as a table (RET-8).

One table holds the candidates of all queries of a batch, and stages work on whole columns of it. Objects with their
explanation are made of the few candidates that are shown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from pipelines.domain.documents import Domain
from pipelines.domain.ids import ContentHash
from pipelines.domain.ranking import Channel, ChannelHit, Contribution, Signal
from pipelines.quality.groups import Groups
from pipelines.retrieval.documents import DOMAINS, Documents
from pipelines.retrieval.filters import matches
from pipelines.retrieval.hits import Hits, ScoreRows
from pipelines.retrieval.ports import ContentStore, Standing, StoredContent
from pipelines.retrieval.sums import exact_sums

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

CHANNELS = tuple(sorted(Channel))
SIGNALS = tuple(Signal)
_CHANNEL_AT = {channel: at for at, channel in enumerate(CHANNELS)}
_SIGNAL_AT = {signal: at for at, signal in enumerate(SIGNALS)}


class Part(NamedTuple):
    """One addend of scores.

    Attributes:
        name: A signal, a channel or a boost.
        signal: The signal whose learned weight it has; None for what has no learned weight.
    """

    name: str
    signal: Signal | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Standings:
    """Where the contents found for some queries stand, as far as each query may see it.

    Attributes:
        contents: Content hash by row, ascending.
        store: Where contents are read.
        documents: Facts of the generation's documents, by number.
        owner, place, document: A line per place: the candidate's number, the chunk's and its document's; in the order
            of candidates, each one's representative first.
        first: Lines that are the first of their candidate in their document.
    """

    contents: Sequence[ContentHash]
    store: ContentStore
    documents: Documents
    owner: Ints
    place: Ints
    document: Ints
    first: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Merged:
    """What channels found: a candidate per query and content, numbered by query and then by content hash.

    Attributes:
        query: Place in its batch of the query that it was found for, (candidates,).
        row: Of the content in every index of the generation, (candidates,).
        domain: Place in `DOMAINS` of its representative's domain: whose weights rank it, (candidates,).
        scopes: The pairs of query and domain that there are, each once.
        scope: Place in `scopes` of its own, (candidates,).
        ranks: Where each of `CHANNELS` put it, from 1; 0 where a channel did not find it, (candidates, channels).
        scores: The channels' scores of it, also of channels that did not find it but could score it nevertheless; NaN
            where none is known, (candidates, channels).
    """

    query: Ints
    row: Ints
    domain: Ints
    scopes: Sequence[tuple[int, Domain]]
    scope: Ints
    ranks: Ints
    scores: Floats


@dataclass(frozen=True, eq=False)
class Candidates:
    """Contents that at least one channel found: a line each, by query, and there by hash or the best first.

    Columns that stages fill in are kept by the candidate's number, so that another order moves nothing but numbers.

    Attributes:
        number: Of the candidate of each line, (n,).
        documents, places: Where it is shown: in the best document it speaks for, or its representative's before
            stage 3, (candidates,).
        signals: Each of `SIGNALS` in [0, 1]; NaN where it is not told, (candidates, signals).
        parts: What scores are made of so far; a stage adds to it and takes nothing away.
        values, weights: Of each part, (candidates, parts); NaN where it adds nothing to a candidate.
        totals: The score: the sum of values times weights, rounded once, (candidates,).
        speaks_for: Documents by candidate number, the best first, of those that speak for several.
        alike: Documents of near-duplicates by number of the candidate that stands for them.
    """

    standings: Standings
    merged: Merged
    number: Ints
    documents: Ints
    places: Ints
    signals: Floats
    parts: tuple[Part, ...]
    values: Floats
    weights: Floats
    totals: Floats
    speaks_for: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    alike: Mapping[int, tuple[str, ...]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.number)

    @cached_property
    def query(self) -> Ints:
        """Place of each line's query in its batch, (n,)."""
        return self.merged.query[self.number]

    @cached_property
    def queries(self) -> Groups:
        """The lines of each query that has any."""
        return Groups.of(self.query)

    @cached_property
    def rows(self) -> Ints:
        """Row of each line's content in every index, (n,)."""
        return self.merged.row[self.number]

    @cached_property
    def domain(self) -> Ints:
        """Place in `DOMAINS` of the domain whose weights rank each line, (n,)."""
        return self.merged.domain[self.number]

    @cached_property
    def total(self) -> Floats:
        """Score of each line, (n,)."""
        return self.totals[self.number]

    @property
    def document(self) -> Ints:
        """Number of the document that each line is shown in, (n,)."""
        return self.documents[self.number]

    @property
    def place(self) -> Ints:
        """Number of the chunk that each line is shown as, (n,)."""
        return self.places[self.number]

    @property
    def hashes(self) -> list[ContentHash]:
        """Content hash of each line."""
        contents = self.standings.contents
        return [contents[row] for row in self.rows.tolist()]

    @property
    def contents(self) -> Sequence[StoredContent]:
        """The content of each line, read now."""
        return self.standings.store.contents(self.rows)

    def found(self, channel: Channel) -> Flags:
        """Which candidates a channel found, (n,)."""
        return self.ranks_of(channel) > 0

    def ranks_of(self, channel: Channel) -> Ints:
        """Where a channel put each candidate, (n,)."""
        return np.asarray(self.merged.ranks[self.number, _CHANNEL_AT[channel]])

    def scores_of(self, channel: Channel) -> Floats:
        """A channel's score of each candidate, (n,); NaN where it knows none."""
        return np.asarray(self.merged.scores[self.number, _CHANNEL_AT[channel]])

    def signal(self, signal: Signal) -> Floats:
        """A signal of each candidate, (n,); NaN where it is not told."""
        return np.asarray(self.signals[self.number, _SIGNAL_AT[signal]])

    def uris(self, number: int) -> tuple[str, ...]:
        """Documents that the candidate of a number speaks for, the best one first."""
        documents = self.speaks_for.get(number) or (int(self.documents[number]),)
        return tuple(map(self.standings.documents.uri, documents))

    def take(self, lines: Ints | Flags | slice) -> Candidates:
        """Some lines, in the order asked for; those of each query stay together."""
        return self._but(number=self.number[lines])

    def first(self, depth: Ints | int) -> Ints:
        """The first lines of each query.

        Args:
            depth: How many, for each query or by its place in the batch.
        """
        most = depth if isinstance(depth, int) else depth[self.query]
        return np.asarray((self.queries.places() < most).nonzero()[0])

    def head(self, depth: Ints | int) -> Candidates:
        """The first of each query; see `first`."""
        lines = self.first(depth)
        return self if len(lines) == len(self) else self.take(lines)

    def told(self, signals: Mapping[Signal, Floats]) -> Candidates:
        """The same candidates with more signals told, of each line."""
        known = self.signals.copy()
        for signal, values in signals.items():
            known[self.number, _SIGNAL_AT[signal]] = values
        return self._but(signals=known)

    def plus(self, parts: Sequence[Part], values: Floats, weights: Floats) -> Candidates:
        """The same candidates with further addends to their scores.

        Args:
            values, weights: Of each line, (n, parts); NaN where a part adds nothing.
        """
        some = np.flatnonzero(~np.isnan(values * weights).all(axis=1))
        numbers = self.number[some]
        known, shares = (
            _widened(old, numbers, new[some]) for old, new in ((self.values, values), (self.weights, weights))
        )
        totals = self.totals.copy()
        totals[numbers] = exact_sums(known[numbers] * shares[numbers])
        return self._but(parts=(*self.parts, *parts), values=known, weights=shares, totals=totals)

    def _but(self, **changes: Any) -> Candidates:
        """The same with other columns; what was derived from columns that stay is kept."""
        stale = _DERIVED if "number" in changes else {"total"}
        made = object.__new__(Candidates)
        vars(made).update({name: value for name, value in vars(self).items() if name not in stale}, **changes)
        return made

    def plus_one(self, name: str, values: Floats, weight: float) -> Candidates:
        """The same with one more addend, values · weight; NaN where it adds nothing."""
        return self.plus([Part(name)], values[:, None], np.full((len(self), 1), weight))


_DERIVED = {"query", "queries", "rows", "domain", "total"}


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
            missing = own.start + unknown[own, _CHANNEL_AT[channel]].nonzero()[0]
            if len(missing):
                scores[missing, _CHANNEL_AT[channel]] = score(row[missing])
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


def best_first(candidates: Candidates) -> Candidates:
    """Candidates of each query by score, ties by content hash."""
    return candidates.take(np.lexsort((candidates.number, -candidates.total, candidates.query)))


class Candidate(msgspec.Struct, frozen=True):
    """One candidate with all that is known of it.

    Attributes:
        row: Its row in every index of the generation.
        standing: The place it is shown at.
        domain: The domain of the content's representative: whose weights rank it.
        channels: Where each channel that found it put it.
        scores: The channels' scores of it, also of channels that did not find it but could score it nevertheless.
        signals: Values in [0, 1].
        contributions: What its score is made of.
        uris: The documents it speaks for, the best one first.
        alike: Documents of near-duplicates that it stands for.
        relevance: Σ expected weight · signal, in [0, 1].
    """

    row: int
    content: StoredContent
    standing: Standing
    domain: Domain
    channels: Mapping[Channel, ChannelHit]
    scores: Mapping[Channel, float]
    signals: Mapping[Signal, float]
    contributions: tuple[Contribution, ...]
    uris: tuple[str, ...]
    alike: tuple[str, ...]
    relevance: float

    @property
    def content_hash(self) -> ContentHash:
        """Its identity."""
        return self.content.content_hash

    @property
    def text(self) -> str:
        """What was indexed."""
        return self.content.text

    @property
    def score(self) -> float:
        """Sum of the contributions."""
        return math.fsum(contribution.amount for contribution in self.contributions)


def _keys(found: Sequence[Mapping[Channel, Hits]], channel: Channel, size: int) -> Ints:
    """Queries and contents that a channel found, each pair as one number, in the order of `found`."""
    keys = [query * size + each[channel].rows for query, each in enumerate(found) if channel in each]
    return np.concatenate(keys) if keys else np.zeros(0, dtype=np.int64)


def _widened(known: Floats, numbers: Ints, more: Floats) -> Floats:
    """Columns with further ones, which some candidates have values in."""
    before = known.shape[1]
    wider = np.full((len(known), before + more.shape[1]), np.nan)
    wider[:, :before] = known
    wider[numbers, before:] = more
    return wider
