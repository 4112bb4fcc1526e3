"""From verdicts on results to the curves of P(good): who was asked, and who spoke unasked (RET-15).

A verdict that was asked for, about a result drawn at random, speaks for all that was shown; each stands for as many
results as the chance to be asked about was small (Horvitz and Thompson, JASA 1952). Unasked verdicts are about what
people came to. Whoever searches looks at the first result; who has come to the fifth found nothing above, so that of
what people judge there more is good than of what is shown there. P(good) of unasked verdicts is another, by an offset
on its log-odds that grows with the logarithm of the rank, which has a prior and is found with the curve.

What stands further up is better than its match alone says: within a page better matches stand above worse ones, and so
does what else is known. A curve over verdicts from the tops of pages would be too flat for that. So verdicts are fitted
given match and rank, which both kinds share; and P(good) by match alone is the average of that over all that is shown,
at whatever rank it stands there. So many unasked verdicts tell how steep a curve is, few asked ones how high it lies,
and none leaves that to the prior.

A stated share of all verdicts says the opposite of what is so: P(called good) = mistaken + (1 − 2 · mistaken)·P(good).
The curve itself could not tell that share: where the worst matches are good now and then, that would pass for it.

What one channel shows alone are other results than those that both show, and verdicts on these say too much of them. So
the curves of one channel are derived from those of both, by results that the channel shows alone and both score. Their
average there is P(good) with one half unknown. That takes queries, no verdicts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy
import scipy.optimize
from scipy.special import expit, xlog1py, xlogy

from weft.domain.arrays import Floats
from weft.domain.matching import MatchFeatures
from weft.domain.ranking import Channel
from weft.learning.calibration.matching import (
    CURVES,
    MatchBins,
    MatchCalibration,
    MatchCurve,
)
from weft.learning.calibration.reliability import Predictions, log_loss, split_folds
from weft.learning.observe.matches import MEASURED, MEASURES, values_of
from weft.learning.priors import VerdictPrior

_EDGE = 1e-9  # how near to 0 and 1 a logarithm is asked for


@dataclass(frozen=True, slots=True)
class ShownResults:
    """What searches show for some queries, whatever becomes of it."""

    pages: Sequence[tuple[int, MatchFeatures]] = ()  # rank and match of every result of all channels together
    # what each channel shows alone, with how well it matches over both
    alone: Mapping[Channel, Sequence[MatchFeatures]] = field(default_factory=dict)


Look = Callable[[], ShownResults]
"""Asks queries of a store, and tells what is shown."""


@dataclass(frozen=True, slots=True)
class VerdictModel:
    """How verdicts come about.

    The log-odds that a result at rank r is good are those of `at_first`, less `position` · ln r; of one that is judged
    though nobody asked, `selection` + `reading` · ln r more.
    """

    curve: MatchCurve  # P(good) of what is shown, by match alone
    at_first: MatchCurve  # P(good) of what is shown first
    position: float  # >= 0, by how much what stands further down is worse than its match says
    selection: float  # by how much those results at the first rank are better that people judge unasked
    reading: float  # how much more so further down
    mistaken: float  # share of verdicts that say the opposite, as it was stated

    @classmethod
    def fit(
        cls,
        bins: MatchBins,
        columns: Sequence[int],  # of the match that may matter
        prior: VerdictPrior | None,  # none takes every verdict for what is so, of whatever was shown
        shown: Sequence[tuple[int, MatchFeatures]] = (),
    ) -> VerdictModel:
        """Maximum a posteriori, with one more good and one more bad verdict at the middle: finite whatever was seen."""
        slopes = len(columns)
        middle = np.concatenate([np.full(slopes, 0.5), [1.0, 0.0, 0.0, 0.0]])
        design = np.vstack([_design(bins, columns), middle])
        counts = np.vstack([bins.weight[:, None] * np.stack([bins.good, bins.bad], axis=1), [1.0, 1.0]])
        expected = np.array([0.0, 0.0] if prior is None else [prior.selection, prior.reading])
        spread = np.array([1.0, 1.0] if prior is None else [prior.selection_spread, prior.reading_spread])
        mistaken = 0.0 if prior is None else prior.mistaken
        # Taken for what is so, verdicts tell nothing of who gave them.
        free = [(None, None)] * 2 if prior is not None else [(0.0, 0.0)] * 2
        further = (None, 0.0) if prior is not None else (0.0, 0.0)
        solution = _minimised(
            _Loss(design, counts, mistaken, expected, spread),
            start=np.concatenate([np.zeros(slopes + 2), expected]),
            bounds=[*[(0.0, None)] * slopes, (None, None), further, *free],
        )
        at_first, (position, selection, reading) = (
            _curve(solution[: slopes + 1], columns),
            solution[slopes + 1 :].tolist(),
        )
        model = cls(at_first, at_first, -position, selection, reading, mistaken)
        return replace(model, curve=model._averaged(bins, columns, shown)) if position else model

    def verdict_probability(self, bins: MatchBins) -> Floats:
        """Probability that a verdict of each bin says so, (n,)."""
        depth = np.log(bins.rank)
        selected = bins.volunteered * (self.selection + self.reading * depth)
        good = expit(self.at_first.log_odds(bins.match) - self.position * depth + selected)
        return np.asarray(self.mistaken + (1.0 - 2.0 * self.mistaken) * good)

    def _averaged(
        self, bins: MatchBins, columns: Sequence[int], shown: Sequence[tuple[int, MatchFeatures]]
    ) -> MatchCurve:
        """The curve by match alone that is nearest to P(good) given rank, over all that is shown (least divergence)."""
        match, rank, mass = _all_shown(bins, columns, shown)
        chances = expit(self.at_first.log_odds(match) - self.position * np.log(rank))
        design = np.column_stack([match[:, columns], np.ones(len(match))])
        counts = mass[:, None] * np.stack([chances, 1.0 - chances], axis=1)
        slopes = len(columns)
        start = np.zeros(slopes + 1)
        bounds = [*[(0.0, None)] * slopes, (None, None)]
        return _curve(_minimised(_Loss(design, counts, 0.0, np.zeros(0), np.ones(0)), start, bounds), columns)


def _all_shown(
    bins: MatchBins, columns: Sequence[int], shown: Sequence[tuple[int, MatchFeatures]]
) -> tuple[Floats, Floats, Floats]:
    """Matches (n, 3), ranks and masses (n,) of what is shown: as was looked up, else as draws of those asked about say.

    Where nobody was asked, what was judged has to stand for it.
    """
    complete = [
        (rank, match) for rank, match in shown if None not in [getattr(match, MEASURED[each]) for each in columns]
    ]
    if complete:
        match = np.array([[math.nan if each is None else each for each in values_of(match)] for _, match in complete])
        return match, np.array([rank for rank, _ in complete], dtype=np.float64), np.ones(len(complete))
    mass = bins.good + bins.bad
    drawn = mass * bins.stands_for
    return bins.match, bins.rank, drawn if drawn.any() else mass


def _curve(parameters: Floats, columns: Sequence[int]) -> MatchCurve:
    """Slopes of some columns and an intercept."""
    *slopes, intercept = parameters.tolist()
    by_column = dict(zip(columns, slopes, strict=True))
    meaning, words, near = (by_column.get(column, 0.0) for column in range(MEASURES))
    return MatchCurve(meaning, words, intercept, near)


def _minimised(loss: _Loss, start: Floats, bounds: Sequence[tuple[float | None, float | None]]) -> Floats:
    return np.asarray(scipy.optimize.minimize(loss, start, jac=True, bounds=bounds, method="L-BFGS-B").x)


@dataclass(frozen=True, slots=True)
class _Loss:
    """Minus the logarithm of the posterior, per verdict, and its gradient."""

    design: Floats  # (n, parameters), the match, 1, and where verdicts are fitted what `_design` adds
    counts: Floats  # (n, 2), good and bad verdicts
    mistaken: float  # share of verdicts that say the opposite
    prior_mean: Floats  # Mean and standard deviation of the last parameters, as many as are known of beforehand
    spread: Floats

    def __call__(self, parameters: Floats) -> tuple[float, Floats]:
        (good, bad), total = self.counts.T, float(self.counts.sum())
        turned, share = 1.0 - 2.0 * self.mistaken, expit(self.design @ parameters)
        chance = np.clip(self.mistaken + turned * share, _EDGE, 1.0 - _EDGE)
        value = -float(np.sum(xlogy(good, chance) + xlog1py(bad, -chance)))
        by_chance = bad / (1.0 - chance) - good / chance
        gradient = self.design.T @ (by_chance * turned * share * (1.0 - share))
        if len(self.prior_mean):
            surprise = (parameters[-len(self.prior_mean) :] - self.prior_mean) / self.spread
            value += 0.5 * float(surprise @ surprise)
            gradient[-len(self.prior_mean) :] += surprise / self.spread
        return value / total, gradient / total


def _design(bins: MatchBins, columns: Sequence[int]) -> Floats:
    """The match, 1, the logarithm of the rank, and for unasked verdicts 1 and that logarithm, (n, columns + 4)."""
    depth = np.log(bins.rank)
    return np.column_stack(
        [bins.match[:, columns], np.ones(len(depth)), depth, bins.volunteered, bins.volunteered * depth]
    )


@dataclass(frozen=True, slots=True)
class MatchFit:
    """What verdicts say about matches."""

    calibration: MatchCalibration
    models: Mapping[str, VerdictModel]  # by curve
    # by curve, every verdict as predicted by match alone, by a curve fitted without it
    held_out: Mapping[str, Predictions]
    # by curve, by how much that predicts better than the overall rates of asked and of unasked verdicts, in nats
    # per verdict
    gains: Mapping[str, float]


def calibrate_matches(
    bins: MatchBins,
    prior: VerdictPrior | None,  # on how verdicts come about; None takes them for what is so, of whatever was shown
    *,
    folds: int,  # parts >= 2 that verdicts are dealt to at random; each is predicted from the others
    seed: int,  # of the deal, so that a fit can be repeated
    least_gain: float,
    shown: Sequence[tuple[int, MatchFeatures]] = (),
) -> MatchFit:
    """Fit the curve of every set of channels, and keep those that tell good from bad."""
    models: dict[str, VerdictModel] = {}
    held_out: dict[str, Predictions] = {}
    gains: dict[str, float] = {}
    for name, columns in CURVES.items():
        usable = bins.with_values(columns)
        if usable.observations >= folds:
            # Not by rank: where matches tell nothing, what ranks tell is no probability by match.
            held_out[name] = _held_out(usable.without_rank(), columns, prior, folds, np.random.default_rng(seed))
            gains[name] = _entropy(usable) - log_loss(held_out[name])
            if gains[name] >= least_gain:
                models[name] = VerdictModel.fit(usable, columns, prior, shown)
    curves = {name: models[name].curve if name in models else None for name in CURVES}
    calibration = MatchCalibration(
        curves["both"], curves["meaning"], curves["words"], near_words=curves["near_words"], near=curves["near"]
    )
    return MatchFit(calibration, models, held_out, gains)


_SHOWN_BY = {"near": Channel.DENSE, "meaning": Channel.DENSE, "words": Channel.LEXICAL}


def carried_over(
    calibration: MatchCalibration, alone: Mapping[Channel, Sequence[MatchFeatures]], *, least: float
) -> MatchCalibration:
    """The same with curves of one channel that rest on what it shows alone."""
    carried: dict[str, Any] = {}
    for name, channel in _SHOWN_BY.items():
        (column,) = CURVES[name]
        feature = MEASURED[column]
        shown = [match for match in alone.get(channel, ()) if getattr(match, feature) is not None]
        matches = [match for match in shown if calibration.probability(match) is not None]
        if getattr(calibration, name) is None or len(matches) < least:
            continue
        chances = np.array([calibration.probability(match) for match in matches], dtype=np.float64)
        measured = np.full((len(matches), MEASURES), np.nan)
        measured[:, column] = [getattr(match, feature) for match in matches]
        bins = MatchBins.of_shown(measured, chances, 1.0 - chances)
        carried[name] = VerdictModel.fit(bins, (column,), None).curve
    return replace(calibration, **carried)


def _held_out(
    bins: MatchBins, columns: Sequence[int], prior: VerdictPrior | None, folds: int, rng: np.random.Generator
) -> Predictions:
    good, bad = split_folds(bins.good, bins.bad, folds, rng)
    predicted = []
    for fold_good, fold_bad in zip(good, bad, strict=True):
        others = bins.with_counts(good.sum(axis=0) - fold_good, bad.sum(axis=0) - fold_bad)
        predicted.append(VerdictModel.fit(others, columns, prior).verdict_probability(bins))
    return Predictions(np.concatenate(predicted), good.ravel(), bad.ravel())


def _entropy(bins: MatchBins) -> float:
    """Nats per verdict that are left when the rates of asked and of unasked ones are known, and nothing else."""
    left = 0.0
    for some in (bins.volunteered == 0.0, bins.volunteered > 0.0):
        good, bad = float(bins.good[some].sum()), float(bins.bad[some].sum())
        rate = min(max(good / max(good + bad, _EDGE), _EDGE), 1.0 - _EDGE)
        left -= good * math.log(rate) + bad * math.log1p(-rate)
    return left / bins.observations
