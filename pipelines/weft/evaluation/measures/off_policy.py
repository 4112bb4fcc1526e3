"""What another policy would have earned, from the log of one that explored (EVA-7).

What was logged is weighed by how much likelier the target policy is to do it, w = π(a) / p(a). Nothing that the logging
policy never does can be weighed, so estimates say how much of the target they rest on.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from weft.domain.arrays import Floats, Ints
from weft.domain.ids import ContentHash
from weft.evaluation.settings import BOOTSTRAP_DRAWS, EvaluationSettings

_STRENGTH = 10.0  # observations of the overall mean that each mean of the reward model is drawn towards it by


@dataclass(frozen=True, slots=True)
class Value:
    """An estimate of a policy's mean reward."""

    estimate: float
    low: float  # Of its bootstrap interval
    high: float
    n: int
    effective: float  # how many unweighted observations the weighted ones are worth, (Σw)² / Σw² (Kish 1965)

    def as_json(self) -> dict[str, Any]:
        """For machines; null where nothing that the target does was logged."""
        estimate, *interval = (None if math.isnan(each) else each for each in (self.estimate, self.low, self.high))
        return {"estimate": estimate, "interval": interval, "n": self.n, "effective": self.effective}


def snips(rewards: ArrayLike, ratios: ArrayLike, settings: EvaluationSettings) -> Value:
    """Σ w·r / Σ w (Swaminathan and Joachims, NIPS 2015): a little bias, far less variance than Σ w·r / n."""
    r, w = _checked(rewards, ratios)
    return _value(w * r, w, w, settings)


def of_actions(
    rewards: ArrayLike, ratios: ArrayLike, *, logged: ArrayLike, target: ArrayLike, settings: EvaluationSettings
) -> dict[str, Value]:
    """What a target policy earns per action, by estimator.

    "ips": mean of w·r (Horvitz and Thompson, JASA 1952), unbiased, and of great variance. "snips": see `snips`.
    "doubly_robust": mean of q(π) + w·(r − q(a)) (Dudík, Langford and Li, ICML 2011), right where either p or q is.
    "coverage", the mean of w: 1 in expectation where everything that the target does might have been done.

    Raises:
        ValueError: There are no observations, or ratios are no weights.
    """
    r, w = _checked(rewards, ratios)
    q, expected = np.asarray(logged, dtype=np.float64), np.asarray(target, dtype=np.float64)
    return _values(w, r, q, expected, owner=np.arange(len(r)), count=len(r), settings=settings)


def crossed_means(
    actions: Sequence[Any], rewards: ArrayLike, *, folds: int, strength: float, seed: int
) -> list[Mapping[Any, float]]:
    """For each observation the mean reward by action, from the other folds alone, so that none predicts itself.

    Means are drawn towards the overall one as by `strength` observations of it. The overall mean stands under `None`,
    for actions that are not among the keys.
    """
    r = np.asarray(rewards, dtype=np.float64)
    fold = np.random.default_rng(seed).integers(0, folds, len(r))
    tables: list[Mapping[Any, float]] = []
    for held in range(folds):
        others = [int(index) for index in np.flatnonzero(fold != held)]
        overall = float(r[others].mean()) if others else 0.0
        sums: defaultdict[Any, float] = defaultdict(float)
        counts: defaultdict[Any, int] = defaultdict(int)
        for index in others:
            sums[actions[index]] += float(r[index])
            counts[actions[index]] += 1
        means = {action: (sums[action] + strength * overall) / (counts[action] + strength) for action in sums}
        tables.append({**means, None: overall})
    return [tables[held] for held in fold]


@dataclass(frozen=True, slots=True)
class ShownPlace:
    """One place of an explored answer: what stood there, and what it earned."""

    content_hash: ContentHash
    propensity: float  # probability with which it was shown there
    reward: float
    # what is known of it beforehand, such as its rank and how relevant it seemed; q is learned by it
    band: tuple[int, int]


@dataclass(frozen=True, slots=True)
class TargetPlace:
    """What the target policy would show at a place."""

    content_hash: ContentHash
    band: tuple[int, int]


def of_rankings(
    answers: Sequence[tuple[Sequence[ShownPlace], Sequence[TargetPlace]]],
    *,
    settings: EvaluationSettings,
    strength: float = _STRENGTH,  # pseudo-observations at the overall rate behind the reward model
) -> dict[str, Value]:
    """What a target ranking earns per answer, place by place (item-position model, Li et al., KDD 2018).

    A content's reward at a rank is taken not to depend on what stands at the others.

    Returns:
        The estimates of `of_actions`.

    Raises:
        ValueError: There are no answers.
    """
    if not answers:
        raise ValueError("expected explored answers with propensities, got none")
    places = [
        (index, shown, wanted)
        for index, (some, other) in enumerate(answers)
        for shown, wanted in zip(some, other, strict=False)
    ]
    rewards = np.array([shown.reward for _, shown, _ in places])
    ratios = np.array([(shown.content_hash == wanted.content_hash) / shown.propensity for _, shown, wanted in places])
    bands = [shown.band for _, shown, _ in places]
    tables = crossed_means(bands, rewards, folds=2, strength=strength, seed=settings.seed)
    q = np.array([table.get(band, table[None]) for table, band in zip(tables, bands, strict=True)])
    expected = np.array(
        [table.get(wanted.band, table[None]) for table, (_, _, wanted) in zip(tables, places, strict=True)]
    )
    owner = np.array([index for index, _, _ in places], dtype=np.int64)
    return _values(ratios, rewards, q, expected, owner=owner, count=len(answers), settings=settings)


def _values(
    w: Floats, r: Floats, q: Floats, expected: Floats, *, owner: Ints, count: int, settings: EvaluationSettings
) -> dict[str, Value]:
    def per_answer(values: Floats) -> Floats:
        return np.bincount(owner, weights=values, minlength=count).astype(np.float64)

    weighted, weights, ones, depth = per_answer(w * r), per_answer(w), np.ones(count), len(r) / count
    return {
        "coverage": _value(weights, np.full(count, depth), w, settings),
        "ips": _value(weighted, ones, w, settings),
        "snips": _value(weighted * depth, weights, w, settings),
        "doubly_robust": _value(per_answer(expected + w * (r - q)), ones, w, settings),
    }


def _value(top: Floats, bottom: Floats, weights: Floats, settings: EvaluationSettings) -> Value:
    """Σ top / Σ bottom with a bootstrap interval over the observations."""
    rng = np.random.default_rng(settings.seed)
    n = len(top)
    samples = (rng.integers(0, n, n) for _ in range(BOOTSTRAP_DRAWS))
    drawn = np.array([_ratio(top[some], bottom[some]) for some in samples])
    tail = (1.0 - settings.interval) / 2.0
    low, high = np.nanquantile(drawn, [tail, 1.0 - tail]) if np.isfinite(drawn).any() else (math.nan, math.nan)
    squares = float(np.square(weights).sum())
    effective = float(weights.sum()) ** 2 / squares if squares > 0.0 else 0.0
    return Value(_ratio(top, bottom), float(low), float(high), n, effective)


def _ratio(top: Floats, bottom: Floats) -> float:
    total = float(bottom.sum())
    return float(top.sum()) / total if total > 0.0 else math.nan


def _checked(rewards: ArrayLike, ratios: ArrayLike) -> tuple[Floats, Floats]:
    r, w = np.asarray(rewards, dtype=np.float64), np.asarray(ratios, dtype=np.float64)
    if r.shape != w.shape or r.ndim != 1 or len(r) == 0:
        raise ValueError(f"expected as many ratios as rewards, at least one, got {w.shape} and {r.shape}")
    if not np.isfinite(w).all() or (w < 0.0).any():
        raise ValueError("expected finite ratios >= 0: a propensity of 0 has no inverse")
    return r, w
