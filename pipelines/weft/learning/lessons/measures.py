"""Whether learning by lessons works: measures of success, each a share or a mean (LES-11)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from weft.learning.lessons.beliefs import ACTIVE, RETIRED, LessonBeliefs
from weft.learning.lessons.counts import RESULTS
from weft.learning.lessons.rows import GOOD_WORDS

_SOON_DAYS = 7
_JUDGED = 3  # outcomes of a lesson, before it is called bad
_HARM = 0.5  # of a harmful outcome, against a helpful one
_BANDS = 10

BANDS = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Edges of the bands of P(good) that are told apart."""
_ENOUGH = 5  # outcomes of a band, before anything is said of it
_SOUND = 0.1  # between the mean and the share

GOALS: dict[str, tuple[float, bool]] = {
    "learned_at_once": (0.70, True),
    "retired_within_7_days": (0.15, False),
    "deviation_by_band": (0.10, False),
    "needing_review": (0.30, False),
    "bad_retired": (0.80, True),
    "usefulness": (0.60, True),
    "updates_per_lesson": (2.0, True),
}
"""What each measure is to reach, and whether more is better."""


def success_measures(beliefs: LessonBeliefs, *, active: float) -> dict[str, float]:
    """What is known of lessons, merged ones as one; a measure of nothing is left out.

        learned_at_once         share whose first confidence is active: they are used before anything came of them
        retired_within_7_days   of those, the share that is retired, with nothing heard of it after a week
        deviation_by_band       mean of |P(good) stamped on injections − share that was good|, by tenths, weighed
        needing_review          share of all that are not retired and not active
        bad_retired             of lessons with three outcomes, more bad than good, that no person judged: share retired
        usefulness              (helpful − .5 · harmful) / outcomes
        updates_per_lesson      outcomes per lesson

    Returns:
        Also `lessons`, `outcomes` and `injections`, which count.
    """
    counts = beliefs.counts
    own = np.flatnonzero(counts.of_class == np.arange(len(counts)))
    status, outcomes = beliefs.status[own], counts.outcomes[own] / 1e6
    good = np.array([result.value in GOOD_WORDS for result in RESULTS])
    helpful, harmful = outcomes[:, good].sum(axis=1), outcomes[:, ~good].sum(axis=1)
    n = helpful + harmful
    first, last = (days[own] for days in counts.days)
    at_once = beliefs.first_confidence[own] >= active
    soon = (status == RETIRED) & (last - first <= _SOON_DAYS)
    bad = (n >= _JUDGED) & (harmful > helpful) & ~beliefs.unwanted[own]
    shares = {
        "learned_at_once": (at_once, np.ones(len(own), dtype=bool)),
        "retired_within_7_days": (soon, at_once),
        "needing_review": (status != ACTIVE, status != RETIRED),
        "bad_retired": (status == RETIRED, bad),
    }
    measures = {name: float(some[among].mean()) for name, (some, among) in shares.items() if among.any()}
    if n.sum() > 0.0:
        measures["usefulness"] = float((helpful.sum() - _HARM * harmful.sum()) / n.sum())
        measures["updates_per_lesson"] = float(n.mean())
    if stamped := beliefs.calibration():
        measures["deviation_by_band"] = _deviation(stamped)
    injections = float(counts.injections[0].sum())
    return {"lessons": float(len(own)), "outcomes": float(n.sum()), "injections": injections, **measures}


def confidence_bands(outcomes: Sequence[tuple[float, bool]]) -> Iterator[tuple[Any, ...]]:
    """How often lessons were good by the P(good) that they were injected with, and what to make of it.

    Yields:
        Of each band low, high, outcomes, the mean of P(good), the share that was good, what that is called, and advice;
        the mean and the share are None where nothing came of such lessons.
    """
    for low, high in pairwise(BANDS):
        some = [(p, good) for p, good in outcomes if low <= p < high or (high == BANDS[-1] and p == high)]
        if not some:
            yield low, high, 0, None, None, "unknown", "nothing came of such lessons yet"
            continue
        expected, good = (sum(each) / len(some) for each in zip(*some, strict=True))
        if len(some) < _ENOUGH:
            yield low, high, len(some), expected, good, "few", f"wait for {_ENOUGH} outcomes"
        elif abs(good - expected) <= _SOUND:
            yield low, high, len(some), expected, good, "sound", "nothing to do"
        elif good < expected:
            yield low, high, len(some), expected, good, "too sure", "review these lessons: they help less than believed"
        else:
            yield (
                low,
                high,
                len(some),
                expected,
                good,
                "too careful",
                "validate these lessons: they help more than believed",
            )


def _deviation(stamped: Sequence[tuple[float, bool]]) -> float:
    expected, came = np.array([each[0] for each in stamped]), np.array([float(each[1]) for each in stamped])
    band = np.minimum(_BANDS - 1, (expected * _BANDS).astype(np.int64))
    return float(np.abs(np.bincount(band, weights=expected - came, minlength=_BANDS)).sum() / len(stamped))
