"""What stage 1 hands on: the contents that channels found, merged by content hash, as a table (RET-8).

Stages work on whole columns. Objects with their explanation are made of the few candidates that are shown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from pipelines.domain.documents import Domain
from pipelines.domain.ids import ContentHash
from pipelines.domain.ranking import Channel, ChannelHit, Contribution, Signal
from pipelines.retrieval.filters import Ranking, matches
from pipelines.retrieval.ports import ContentStore, DeclaredFacts, Standing, StoredContent

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CHANNELS = tuple(sorted(Channel))
SIGNALS = tuple(Signal)
DOMAINS = tuple(Domain)
_CHANNEL_AT = {channel: at for at, channel in enumerate(CHANNELS)}
_SIGNAL_AT = {signal: at for at, signal in enumerate(SIGNALS)}
_DOMAIN_AT = {domain: at for at, domain in enumerate(DOMAINS)}


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
    """Where the contents found for one query stand, as far as the query may see it.

    Attributes:
        hashes: Content hash of each candidate, by its number: numbers follow the order of hashes.
        store: Where contents are read.
        documents: Facts of the generation's documents, by number.
        owner, place, document: A line per place: the candidate's number, the chunk's and its document's; in the order
            of candidates, each one's representative first.
        first: Lines that are the first of their candidate in their document.
    """

    hashes: Sequence[ContentHash]
    store: ContentStore
    documents: Sequence[DeclaredFacts]
    owner: Ints
    place: Ints
    document: Ints
    first: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Contents that at least one channel found: a line each, in the order of their hashes or the best first.

    Attributes:
        number: Of the candidate, in the order of content hashes, (n,).
        rows: Its row in every index of the generation, (n,).
        domain: Place in `DOMAINS` of its representative's domain: whose weights rank it, (n,).
        document, place: Where it is shown: in the best document it speaks for, or its representative's before stage 3.
        ranks: Where each of `CHANNELS` put it, from 1; 0 where a channel did not find it, (n, channels).
        scores: The channels' scores of it, also of channels that did not find it but could score it nevertheless; NaN
            where none is known, (n, channels).
        signals: Each of `SIGNALS` in [0, 1]; NaN where it is not told, (n, signals).
        parts: What scores are made of so far; a stage adds to it and takes nothing away.
        values, weights: Of each part, (n, parts); NaN where it adds nothing to a candidate.
        total: The score: the sum of values times weights, rounded once, (n,).
        speaks_for: Documents by candidate number, the best first, of those that speak for several.
        alike: Documents of near-duplicates by number of the candidate that stands for them.
    """

    standings: Standings
    number: Ints
    rows: Ints
    domain: Ints
    document: Ints
    place: Ints
    ranks: Ints
    scores: Floats
    signals: Floats
    parts: tuple[Part, ...]
    values: Floats
    weights: Floats
    total: Floats
    speaks_for: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    alike: Mapping[int, tuple[str, ...]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.number)

    @property
    def hashes(self) -> list[ContentHash]:
        """Content hash of each line."""
        return [self.standings.hashes[number] for number in self.number.tolist()]

    @property
    def contents(self) -> Sequence[StoredContent]:
        """The content of each line, read now."""
        return self.standings.store.contents(self.rows.tolist())

    def found(self, channel: Channel) -> NDArray[np.bool_]:
        """Which candidates a channel found, (n,)."""
        return self.ranks[:, _CHANNEL_AT[channel]] > 0

    def ranks_of(self, channel: Channel) -> Ints:
        """Where a channel put each candidate, (n,)."""
        return self.ranks[:, _CHANNEL_AT[channel]]

    def scores_of(self, channel: Channel) -> Floats:
        """A channel's score of each candidate, (n,); NaN where it knows none."""
        return self.scores[:, _CHANNEL_AT[channel]]

    def signal(self, signal: Signal) -> Floats:
        """A signal of each candidate, (n,); NaN where it is not told."""
        return self.signals[:, _SIGNAL_AT[signal]]

    def uris(self, line: int) -> tuple[str, ...]:
        """Documents that a line speaks for, the best one first."""
        documents = self.speaks_for.get(int(self.number[line]), (int(self.document[line]),))
        return tuple(self.standings.documents[document].uri for document in documents)

    def take(self, lines: Ints | slice) -> Candidates:
        """Some lines, in the order asked for."""
        return replace(
            self,
            number=self.number[lines],
            rows=self.rows[lines],
            domain=self.domain[lines],
            document=self.document[lines],
            place=self.place[lines],
            ranks=self.ranks[lines],
            scores=self.scores[lines],
            signals=self.signals[lines],
            values=self.values[lines],
            weights=self.weights[lines],
            total=self.total[lines],
        )

    def told(self, signals: Mapping[Signal, Floats]) -> Candidates:
        """The same candidates with more signals told."""
        known = self.signals.copy()
        for signal, values in signals.items():
            known[:, _SIGNAL_AT[signal]] = values
        return replace(self, signals=known)

    def plus(self, parts: Sequence[Part], values: Floats, weights: Floats) -> Candidates:
        """The same candidates with further addends to their scores.

        Args:
            values, weights: (n, parts); NaN where a part adds nothing.
        """
        values, weights = np.hstack([self.values, values]), np.hstack([self.weights, weights])
        return replace(self, parts=(*self.parts, *parts), values=values, weights=weights, total=_sums(values * weights))

    def plus_one(self, name: str, values: Floats, weight: float) -> Candidates:
        """The same with one more addend, values · weight; NaN where it adds nothing."""
        return self.plus([Part(name)], values[:, None], np.full((len(self), 1), weight))


def merge(
    rankings: Mapping[Channel, Ranking],
    further_scores: Mapping[Channel, Mapping[int, float]],
    *,
    hashes: Sequence[ContentHash],
    store: ContentStore,
    documents: Sequence[DeclaredFacts],
    filters: Mapping[str, str],
) -> Candidates:
    """One candidate per content, knowing every channel that found it, in the order of content hashes.

    Args:
        further_scores: Scores by row that channels give to contents they did not find.
        hashes: Content hash by row, ascending: so the order of rows is that of hashes.
        documents: Of the generation, by number.
        filters: What the query asks of a document's metadata; other documents of a content are left out.
    """
    hits = {channel: _columns(ranking) for channel, ranking in rankings.items() if ranking}
    rows = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *(found for found, _ in hits.values())]))
    ranks = np.zeros((len(rows), len(CHANNELS)), dtype=np.int64)
    scores = np.full((len(rows), len(CHANNELS)), np.nan)
    for channel, scored in further_scores.items():
        scores[np.searchsorted(rows, list(scored)), _CHANNEL_AT[channel]] = list(scored.values())
    for channel, (found, of_channel) in hits.items():
        lines = np.searchsorted(rows, found)
        ranks[lines, _CHANNEL_AT[channel]] = np.arange(1, len(found) + 1)
        scores[lines, _CHANNEL_AT[channel]] = of_channel
    names = [hashes[row] for row in rows.tolist()]
    standings = standings_of(names, store, documents, store.standings(rows), filters)
    return table_of(standings, rows, ranks, scores)


def standings_of(
    hashes: Sequence[ContentHash],
    store: ContentStore,
    documents: Sequence[DeclaredFacts],
    places: tuple[Ints, Ints, Ints],
    filters: Mapping[str, str],
) -> Standings:
    """Places of contents that the filters let through.

    Args:
        places: As `store` gives them for the contents of these hashes.
    """
    owner, place, document = places
    if filters:
        asked = {number: matches(documents[number], filters) for number in set(document.tolist())}
        kept = np.array([asked[number] for number in document.tolist()], dtype=bool)
        owner, place, document = owner[kept], place[kept], document[kept]
    # A content's places in one document follow one another.
    new = (owner[1:] != owner[:-1]) | (document[1:] != document[:-1])
    first = np.flatnonzero(np.concatenate([[True] * bool(len(owner)), new]))
    return Standings(hashes, store, documents, owner, place, document, first)


def table_of(standings: Standings, rows: Ints, ranks: Ints, scores: Floats) -> Candidates:
    """Candidates by number, each at its representative, of which nothing is told yet."""
    count = len(rows)
    at = np.searchsorted(standings.owner, np.arange(count))
    document = standings.document[at]
    domain = [_DOMAIN_AT[standings.documents[number].domain] for number in document.tolist()]
    nothing = np.zeros((count, 0))
    return Candidates(
        standings,
        number=np.arange(count),
        rows=rows,
        domain=np.array(domain, dtype=np.int64),
        document=document,
        place=standings.place[at],
        ranks=ranks,
        scores=scores,
        signals=np.full((count, len(SIGNALS)), np.nan),
        parts=(),
        values=nothing,
        weights=nothing,
        total=np.zeros(count),
    )


def heads(candidates: Candidates, depth: int) -> dict[Channel, tuple[tuple[ContentHash, float], ...]]:
    """The contents that each channel ranked first to `depth`, with its scores, best first."""
    found: dict[Channel, tuple[tuple[ContentHash, float], ...]] = {}
    names = candidates.hashes
    for channel in CHANNELS:
        ranks, scores = candidates.ranks_of(channel), candidates.scores_of(channel)
        lines = np.flatnonzero(ranks)
        lines = lines[np.argsort(ranks[lines])]
        if len(lines):
            found[channel] = tuple((names[at], float(scores[at])) for at in lines[:depth].tolist())
    return found


def best_first(candidates: Candidates) -> Candidates:
    """Candidates by score, ties by content hash."""
    return candidates.take(np.lexsort((candidates.number, -candidates.total)))


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


def _columns(ranking: Ranking) -> tuple[Ints, Floats]:
    rows, scores = zip(*ranking, strict=True)
    return np.array(rows, dtype=np.int64), np.array(scores, dtype=np.float64)


def _sums(amounts: Floats) -> Floats:
    """Exact sums of lines, rounded once, so that no order of addends makes a difference."""
    return np.fromiter(map(math.fsum, np.nan_to_num(amounts, nan=0.0).tolist()), np.float64, len(amounts))
