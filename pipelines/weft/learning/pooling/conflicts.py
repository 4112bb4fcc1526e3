"""Where a session and everybody else came to opposite views of the same thing (LRN-16)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weft.learning.evidence import MICRO, Evidence
from weft.learning.observe.verdicts import is_good
from weft.learning.parameters import AGAINST, FOR, PRODUCT

_SIDES: Mapping[str, int] = {FOR: 0, AGAINST: 1}

_NONE = (0, 0)

Sides = dict[tuple[str, ...], list[int]]
"""Micro-units for and against, by place: domain, model, agent, intent and parameter; or "usage" and a content hash."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """A rate that a session moved one way, while others moved it the other way."""

    place: tuple[str, ...]
    before: float  # the rate at the fork, in (0, 1)
    session_shift: float  # Where each alone moved it; of opposite signs
    others_shift: float
    session_mass: float  # Observations behind each
    others_mass: float

    @property
    def margin(self) -> float:
        """How far the one that moved less moved it."""
        return min(abs(self.session_shift), abs(self.others_shift))


def sides_of(evidence: Evidence) -> Sides:
    """The masses for and against every rate that evidence speaks about, all days together."""
    sides: Sides = {}
    for key, micro in evidence.counts.items():
        if (side := _SIDES.get(key.bin)) is not None and not key.parameter.startswith(PRODUCT):
            place = (key.domain, key.model, key.agent, key.intent, key.parameter)
            sides.setdefault(place, [0, 0])[side] += micro
    for used, micro in evidence.usage.items():
        if (good := is_good(used.bin)) is not None:
            sides.setdefault(("usage", used.content_hash), [0, 0])[0 if good else 1] += micro
    return sides


def conflicts(before: Sides, after: Sides, session: Sides, *, margin: float, strength: float) -> list[Conflict]:
    """Every rate that both moved, in opposite directions and each by at least `margin`; the widest apart first.

    rate = (strength / 2 + mass for) / (strength + mass for + mass against); what others did is after − before − session

    The merge itself needs no decision: masses add up, so that more evidence wins. This is for people. It looks at what
    the session spoke about, however much is known besides.
    """
    met = (
        _met(place, before.get(place, _NONE), after.get(place, _NONE), mine, strength)
        for place, mine in session.items()
    )
    opposed = [one for one in met if one.session_shift * one.others_shift < 0.0 and one.margin >= margin]
    return sorted(opposed, key=lambda one: (-one.margin, one.place))


def _met(
    place: tuple[str, ...], before: Sequence[int], after: Sequence[int], mine: Sequence[int], strength: float
) -> Conflict:
    theirs = [now - then - own for now, then, own in zip(after, before, mine, strict=True)]
    rate = _rate(before, _NONE, strength)
    return Conflict(
        place,
        rate,
        _rate(before, mine, strength) - rate,
        _rate(before, theirs, strength) - rate,
        sum(mine) / MICRO,
        sum(theirs) / MICRO,
    )


def _rate(start: Sequence[int], more: Sequence[int], strength: float) -> float:
    good, bad = (max(here + there, 0) / MICRO for here, there in zip(start, more, strict=True))
    return (strength / 2 + good) / (strength + good + bad)
