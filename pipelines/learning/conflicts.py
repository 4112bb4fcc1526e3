"""Where a session and everybody else came to opposite views of the same thing (LRN-16)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pipelines.learning.evidence import MICRO, Evidence
from pipelines.learning.observations import AGAINST, FOR, NEGATIVE, POSITIVE

_SIDES: Mapping[str, int] = {FOR: 0, AGAINST: 1, POSITIVE: 0, NEGATIVE: 1}

Masses = dict[tuple[str, ...], list[int]]
"""Micro-units for and against, by scope and parameter, all days together."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """A rate that a session moved one way, while others moved it the other way.

    Attributes:
        place: Domain, model, agent, intent and parameter; or "usage" and a content hash.
        before: The rate at the fork, in (0, 1).
        session_shift, others_shift: Where each alone moved it; of opposite signs.
        session_mass, others_mass: Observations behind each.
    """

    place: tuple[str, ...]
    before: float
    session_shift: float
    others_shift: float
    session_mass: float
    others_mass: float

    @property
    def margin(self) -> float:
        """How far the one that moved less moved it."""
        return min(abs(self.session_shift), abs(self.others_shift))


def conflicts(fork: Evidence, *, session: Evidence, others: Evidence, margin: float, strength: float) -> list[Conflict]:
    """Every rate that both moved, in opposite directions and each by at least `margin`; the widest apart first.

    rate = (strength / 2 + mass for) / (strength + mass for + mass against)

    The merge itself needs no decision: masses add up, so that more evidence wins. This is for people.

    Args:
        fork: What both started from.
        session: What the session added.
        others: What everybody else added meanwhile.
        margin: In (0, 1).
        strength: Pseudo-observations of a rate of one half, > 0: few outcomes move no rate far.
    """
    mine, theirs = _masses(session), _masses(others)
    both = mine.keys() & theirs.keys()
    before = _masses(fork, both)
    found = []
    for place in both:
        start = before.get(place, [0, 0])
        rate = _rate(start, [0, 0], strength)
        conflict = Conflict(
            place,
            rate,
            _rate(start, mine[place], strength) - rate,
            _rate(start, theirs[place], strength) - rate,
            sum(mine[place]) / MICRO,
            sum(theirs[place]) / MICRO,
        )
        if conflict.session_shift * conflict.others_shift < 0.0 and conflict.margin >= margin:
            found.append(conflict)
    return sorted(found, key=lambda conflict: (-conflict.margin, conflict.place))


def _masses(evidence: Evidence, only: set[tuple[str, ...]] | None = None) -> Masses:
    masses: Masses = {}
    for key, micro in evidence.counts.items():
        place: tuple[str, ...] = (key.domain, key.model, key.agent, key.intent, key.parameter)
        if key.bin in _SIDES and (only is None or place in only):
            masses.setdefault(place, [0, 0])[_SIDES[key.bin]] += micro
    for used, micro in evidence.usage.items():
        place = ("usage", used.content_hash)
        if used.bin in _SIDES and (only is None or place in only):
            masses.setdefault(place, [0, 0])[_SIDES[used.bin]] += micro
    return masses


def _rate(start: list[int], more: list[int], strength: float) -> float:
    good, bad = (max(here + there, 0) / MICRO for here, there in zip(start, more, strict=True))
    return (strength / 2 + good) / (strength + good + bad)
