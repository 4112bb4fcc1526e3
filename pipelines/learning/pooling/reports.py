"""What was reported outright, by family and by what it is about, as far as it counts today (LRN-2, LRN-3)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipelines.learning.evidence import MICRO, Evidence, EvidenceKey
from pipelines.learning.parameters import (
    ACCURATE,
    BAD,
    DECAY,
    GOOD,
    INACCURATE,
    QUALITY,
    REFUTED,
    THRESHOLD,
    TRUST,
    VERIFIED,
    Masses,
)
from pipelines.learning.pooling.daily import DailyMasses, trusted_shares
from pipelines.learning.priors import RobustnessPrior
from pipelines.learning.recency import Discount

Place = tuple[str, ...]
"""What a report is about, such as (domain, agent) or (source, model)."""


@dataclass(frozen=True, slots=True)
class ReportFamily:
    """One family of reports.

    Attributes:
        place: What a report is about.
        sides: By the last word of a bin, how often its mass counts for and against; of quality, Σq is for, and n − Σq
            against.
    """

    place: Callable[[EvidenceKey], Place]
    sides: Mapping[str, tuple[int, int]]

    def observations(self, masses: Masses) -> float:
        """How many reports masses hold."""
        each = (micro * sum(self.sides.get(_kind(bin_), (0, 0))) for bin_, micro in masses.items())
        return max(0, sum(each)) / MICRO

    def capped(self, masses: Masses, cap: float) -> Masses:
        """The same masses, so many observations at most: the surplus blends back to the prior (LRN-3)."""
        n = self.observations(masses)
        return masses if n <= cap else {bin_: round(micro * cap / n) for bin_, micro in masses.items()}


FAMILIES: Mapping[str, ReportFamily] = {
    DECAY: ReportFamily(lambda key: (key.domain,), {ACCURATE: (1, 0), INACCURATE: (0, 1)}),
    THRESHOLD: ReportFamily(lambda key: (key.domain, key.agent), {GOOD: (1, 0), BAD: (0, 1)}),
    QUALITY: ReportFamily(lambda key: (key.model, key.agent), {"n": (0, 1), "sum": (1, -1)}),
    TRUST: ReportFamily(
        lambda key: (key.parameter.removeprefix(f"{TRUST}."), key.model), {VERIFIED: (1, 0), REFUTED: (0, 1)}
    ),
}


def read_reports(
    evidence: Evidence, discount: Discount, robustness: RobustnessPrior
) -> dict[str, dict[Place, dict[str, int]]]:
    """Masses by bin as they count today, by family and place.

    Of one place at most `reported_daily_cap` observations count of a day, and a day that is out of character counts
    less (`trusted_shares`). Counts stay whole micro-units, so that sums are the same in any order.
    """
    reports: dict[str, dict[Place, dict[str, int]]] = {family: {} for family in FAMILIES}
    days = _days(evidence)
    for (family, place, day), share in zip(days, _shares(days, robustness), strict=True):
        masses = reports[family].setdefault(place, {})
        for bin_, micro in days[family, place, day].items():
            masses[bin_] = masses.get(bin_, 0) + round(discount(micro, day) * share)
    return reports


_Days = dict[tuple[str, Place, int], Counter[str]]


def _days(evidence: Evidence) -> _Days:
    """Masses by bin of each family, place and day, in order."""
    days: defaultdict[tuple[str, Place, int], Counter[str]] = defaultdict(Counter)
    for key, micro in evidence.counts.items():
        family = key.parameter.partition(".")[0]
        if family in FAMILIES:
            days[family, FAMILIES[family].place(key), key.day][key.bin] += micro
    return dict(sorted(days.items()))


def _shares(days: _Days, robustness: RobustnessPrior) -> Sequence[float]:
    """Which share of each family, place and day counts."""
    rows = [
        (*place, day, micro * times, against)
        for (family, about, day), masses in days.items()
        for bin_, micro in masses.items()
        for against, times in enumerate(FAMILIES[family].sides.get(_kind(bin_), (0, 0)))
        for place in [(family, about, bin_.rpartition(".")[0])]
        if times
    ]
    places = {place: at for at, place in enumerate(sorted({row[:3] for row in rows}))}
    groups = _numbered(place[:2] for place in places)
    table = np.array([(places[row[:3]], *row[3:]) for row in rows], dtype=np.int64).reshape(-1, 4)
    daily = DailyMasses.of(table[:, 0], table[:, 1], table[:, 2], table[:, 3].astype(np.bool_))
    group = np.array([groups[place[:2]] for place in places], dtype=np.int64)[daily.place]
    shares = trusted_shares(daily, robustness, daily_cap=robustness.reported_daily_cap, group=group)
    share = {(int(at), int(day)): float(one) for at, day, one in zip(group, daily.day, shares, strict=True)}
    return [share.get((groups.get((family, place), -1), day), 1.0) for family, place, day in days]


def _numbered(places: Iterable[tuple[str, Place]]) -> dict[tuple[str, Place], int]:
    return {place: at for at, place in enumerate(dict.fromkeys(places))}


def _kind(bin_: str) -> str:
    return bin_.rpartition(".")[2]
