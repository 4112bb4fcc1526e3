"""What stage 1 hands on: the contents that channels found, merged by content hash (RET-8)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping

import msgspec
from msgspec.structs import replace

from pipelines.domain.documents import Domain
from pipelines.domain.ids import ContentHash
from pipelines.domain.ranking import Channel, ChannelHit, Contribution, Signal
from pipelines.retrieval.filters import Ranking, standings_of
from pipelines.retrieval.ports import Standing, StoredContent


class Candidate(msgspec.Struct, frozen=True):
    """A content that at least one channel found.

    Attributes:
        row: Its row in every index of the generation.
        standings: The places it stands in that the query may see, the representative first.
        channels: Where each channel that found it put it.
        scores: The channels' scores of it, also of channels that did not find it but could score it nevertheless.
        signals: Values in [0, 1] known so far.
        contributions: What its score is made of so far; a stage adds to it and takes nothing away.
        uris: The documents it speaks for, the best one first; empty before stage 3.
        alike: Documents of near-duplicates that it stands for.
        total: The score, where it has been summed up.
    """

    row: int
    content_hash: ContentHash
    content: StoredContent
    standings: tuple[Standing, ...]
    channels: Mapping[Channel, ChannelHit]
    scores: Mapping[Channel, float]
    signals: Mapping[Signal, float] = {}
    contributions: tuple[Contribution, ...] = ()
    uris: tuple[str, ...] = ()
    alike: tuple[str, ...] = ()
    total: float | None = None

    @property
    def text(self) -> str:
        """What was indexed."""
        return self.content.text

    @property
    def standing(self) -> Standing:
        """The place it is shown at: in the best document it speaks for, or the representative one before stage 3."""
        first = self.standings[0]
        if not self.uris or first.uri == self.uris[0]:
            return first
        return next((place for place in self.standings if place.uri == self.uris[0]), first)

    @property
    def domain(self) -> Domain:
        """The domain of the content's representative: whose weights rank it."""
        return self.standings[0].domain

    @property
    def score(self) -> float:
        """Sum of the contributions so far."""
        return _sum(self.contributions) if self.total is None else self.total

    def plus(self, contributions: Iterable[Contribution]) -> Candidate:
        """The same candidate with further addends to its score."""
        all_of_them = (*self.contributions, *contributions)
        return replace(self, contributions=all_of_them, total=_sum(all_of_them))


def merge(
    rankings: Mapping[Channel, Ranking],
    contents: Iterable[StoredContent],
    filters: Mapping[str, str],
    further_scores: Mapping[Channel, Mapping[int, float]],
) -> list[Candidate]:
    """One candidate per content, knowing every channel that found it, in order of content hash.

    Args:
        contents: Every content in `rankings`.
        filters: What the query asks of a document's metadata; other documents of a content are left out.
        further_scores: Scores by row that channels give to contents they did not find.
    """
    hits: defaultdict[int, dict[Channel, ChannelHit]] = defaultdict(dict)
    for channel in sorted(rankings):
        for rank, (row, score) in enumerate(rankings[channel], start=1):
            hits[row][channel] = ChannelHit(rank, score)
    merged = (
        Candidate(
            item.row,
            item.content_hash,
            item,
            standings_of(item.occurrences, filters),
            hits[item.row],
            _scores(item.row, hits[item.row], further_scores),
        )
        for item in contents
    )
    return sorted(merged, key=lambda candidate: candidate.content_hash)


def _scores(
    row: int, hits: Mapping[Channel, ChannelHit], further: Mapping[Channel, Mapping[int, float]]
) -> dict[Channel, float]:
    more = {channel: scores[row] for channel, scores in further.items() if row in scores}
    return {**more, **{channel: hit.score for channel, hit in hits.items()}}


def _sum(contributions: Iterable[Contribution]) -> float:
    return math.fsum([contribution.amount for contribution in contributions])


def heads(candidates: Iterable[Candidate], depth: int) -> dict[Channel, tuple[tuple[ContentHash, float], ...]]:
    """The contents that each channel ranked first to `depth`, with its scores, best first."""
    found: defaultdict[Channel, list[tuple[int, ContentHash, float]]] = defaultdict(list)
    for candidate in candidates:
        for channel, hit in candidate.channels.items():
            if hit.rank <= depth:
                found[channel].append((hit.rank, candidate.content_hash, hit.score))
    return {
        channel: tuple((content, score) for _, content, score in sorted(found[channel])) for channel in sorted(found)
    }


def best_first(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Candidates by score, ties by content hash."""
    return sorted(candidates, key=lambda candidate: (-candidate.score, candidate.content_hash))
