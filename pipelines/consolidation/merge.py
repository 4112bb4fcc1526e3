"""Fold what was streamed since the last night into a new base, and note where the fold ends."""

from __future__ import annotations

from dataclasses import dataclass

from pipelines.domain.ids import LearnedVersion
from pipelines.learning.evidence import Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """What a night proposes to learn from.

    Attributes:
        parent: The version that is live; None before the first.
        former: The evidence of `parent`.
        base: The candidate's evidence: that of the version it builds on, and all that came since the newest cut.
        cut: What the updaters had when it was cut.
        fresh: What the newest cut had not seen; empty means that there is nothing new.
    """

    parent: LearnedVersion | None
    former: Evidence
    base: Evidence
    cut: Evidence
    fresh: Evidence


def fold(
    *, parent: LearnedVersion | None, former: Evidence, onto: Evidence, streamed: Evidence, newest_cut: Evidence
) -> Candidate:
    """The candidate: onto + (streamed − newest cut), integer for integer.

    Args:
        former: Evidence of the live version, empty before the first.
        onto: Evidence of the version to build on: the live one, or a challenger that still waits for its verdict,
            so that a night which waits is neither lost nor counted twice by the next.
        streamed: The sum of the updaters' snapshots.
        newest_cut: The same sum as the newest version saw it, whether that one is live or not.
    """
    fresh = streamed - newest_cut
    return Candidate(parent=parent, former=former, base=onto + fresh, cut=streamed, fresh=fresh)
