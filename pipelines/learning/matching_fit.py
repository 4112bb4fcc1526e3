"""From verdicts on results to the curves of P(good): who was asked, and who spoke unasked (RET-15).

A verdict that was asked for, about a result
drawn at random, speaks for all that was shown; each stands for as many results as the chance to be asked about was
small (Horvitz and Thompson, JASA 1952). Unasked verdicts are about what people came to: P(good) of those is another, by
an offset `selection` on its log-odds, which has a prior and is found with the curve. Both share the slopes: so many
unasked verdicts tell how steep a curve is, few asked ones how high it lies, and none leaves that to the prior.

A stated share of all verdicts says the opposite of what is so: P(called good) = mistaken + (1 − 2 · mistaken)·P(good).
The curve itself could not tell that share: where the worst matches are good now and then, that would pass for it.

What one channel shows alone are other results than those that both show, and verdicts on these say too much of them. So
the curves of one channel are carried over from those of both, by results that the channel shows alone and that both
know: what they come to there, on average, is P(good) where half of it is not known. That takes queries, no verdicts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.special import expit, xlog1py, xlogy

from pipelines.domain.matching import Match
from pipelines.domain.ranking import Channel
from pipelines.learning.matching import CURVES, MEASURES, MatchBins, MatchCalibration, MatchCurve
from pipelines.learning.priors import VerdictPrior
from pipelines.learning.reliability import Predictions, log_loss

Floats = NDArray[np.float64]

_EDGE = 1e-9  # how near to 0 and 1 a logarithm is asked for


@dataclass(frozen=True, slots=True)
class VerdictModel:
    """How verdicts come about.

    Attributes:
        curve: P(good) of what is shown.
        selection: What is added to its log-odds where nobody asked.
        mistaken: Share of verdicts that say the opposite, as it was stated.
    """

    curve: MatchCurve
    selection: float
    mistaken: float

    @classmethod
    def fit(cls, bins: MatchBins, columns: Sequence[int], prior: VerdictPrior | None) -> VerdictModel:
        """Maximum a posteriori, with one more good and one more bad verdict at the middle: finite whatever was seen.

        Args:
            columns: Of the match that may matter.
            prior: None takes every verdict for what is so, of whatever was shown.
        """
        middle = np.concatenate([np.full(len(columns), 0.5), [1.0, 0.0]])
        design = np.vstack([_design(bins, columns), middle])
        counts = bins.weight[:, None] * np.stack([bins.good, bins.bad], axis=1)
        loss = _Loss(design, np.vstack([counts, [1.0, 1.0]]), prior)
        slopes = len(columns)
        start = np.array([*[0.0] * slopes, 0.0, 0.0 if prior is None else prior.selection])
        bounds = [*[(0.0, None)] * slopes, (None, None), (0.0, 0.0) if prior is None else (None, None)]
        found = scipy.optimize.minimize(loss, start, jac=True, bounds=bounds, method="L-BFGS-B").x
        by_column = dict(zip(columns, found[:slopes].tolist(), strict=True))
        meaning, words, near = (by_column.get(column, 0.0) for column in range(MEASURES))
        curve = MatchCurve(meaning, words, float(found[slopes]), near)
        return cls(curve, float(found[-1]), loss.mistaken)

    def said_to_be_good(self, bins: MatchBins) -> Floats:
        """Probability that a verdict of each bin says so, (n,)."""
        good = expit(self.curve.log_odds(bins.match) + self.selection * bins.unasked)
        return np.asarray(self.mistaken + (1.0 - 2.0 * self.mistaken) * good)


@dataclass(frozen=True, slots=True)
class _Loss:
    """Minus the logarithm of the posterior, per verdict, and its gradient.

    Attributes:
        design: (n, slopes + 2), the match, 1, and 1 for unasked verdicts.
        counts: (n, 2), good and bad verdicts.
    """

    design: Floats
    counts: Floats
    prior: VerdictPrior | None

    @property
    def mistaken(self) -> float:
        """Share of verdicts that say the opposite."""
        return 0.0 if self.prior is None else self.prior.mistaken

    def __call__(self, parameters: Floats) -> tuple[float, Floats]:
        (good, bad), total = self.counts.T, float(self.counts.sum())
        turned, share = 1.0 - 2.0 * self.mistaken, expit(self.design @ parameters)
        chance = np.clip(self.mistaken + turned * share, _EDGE, 1.0 - _EDGE)
        value = -float(np.sum(xlogy(good, chance) + xlog1py(bad, -chance)))
        by_chance = bad / (1.0 - chance) - good / chance
        gradient = self.design.T @ (by_chance * turned * share * (1.0 - share))
        if self.prior is not None:
            surprise = (parameters[-1] - self.prior.selection) / self.prior.selection_spread
            value += 0.5 * surprise**2
            gradient[-1] += surprise / self.prior.selection_spread
        return value / total, gradient / total


def _design(bins: MatchBins, columns: Sequence[int]) -> Floats:
    return np.column_stack([bins.match[:, columns], np.ones(len(bins.match)), bins.unasked])


@dataclass(frozen=True, slots=True)
class MatchFit:
    """What verdicts say about matches.

    Attributes:
        models: By curve.
        held_out: By curve, every verdict as predicted by a curve fitted without it.
        gains: By curve, by how much that predicts better than the overall rates of asked and of unasked verdicts, in
            nats per verdict.
    """

    calibration: MatchCalibration
    models: Mapping[str, VerdictModel]
    held_out: Mapping[str, Predictions]
    gains: Mapping[str, float]


def calibrate_matches(
    bins: MatchBins, prior: VerdictPrior | None, *, folds: int, seed: int, least_gain: float
) -> MatchFit:
    """Fit the curve of every set of channels, and keep those that tell good from bad.

    Args:
        prior: On how verdicts come about; None takes them for what is so, of whatever was shown.
        folds: Parts >= 2 that verdicts are dealt to at random; each is predicted from the others.
        seed: Of the deal, so that a fit can be repeated.
        least_gain: Nats per verdict, against the overall rate on held-out ones: below, good and bad do not separate.
    """
    models: dict[str, VerdictModel] = {}
    held_out: dict[str, Predictions] = {}
    gains: dict[str, float] = {}
    for name, columns in CURVES.items():
        known = bins.knowing(columns)
        if known.observations >= folds:
            held_out[name] = _held_out(known, columns, prior, folds, np.random.default_rng(seed))
            gains[name] = _entropy(known) - log_loss(held_out[name])
            if gains[name] >= least_gain:
                models[name] = VerdictModel.fit(known, columns, prior)
    curves = {name: models[name].curve if name in models else None for name in CURVES}
    calibration = MatchCalibration(
        curves["both"], curves["meaning"], curves["words"], near_words=curves["near_words"], near=curves["near"]
    )
    return MatchFit(calibration, models, held_out, gains)


Alone = Callable[[], Mapping[Channel, Sequence[Match]]]
"""What each channel shows alone for some queries, with how well it matches over both."""
_SHOWN_BY = {"near": Channel.DENSE, "meaning": Channel.DENSE, "words": Channel.LEXICAL}


def carried_over(
    calibration: MatchCalibration, alone: Mapping[Channel, Sequence[Match]], *, least: float
) -> MatchCalibration:
    """The same with curves of one channel that rest on what it shows alone.

    Args:
        alone: Matches of those results over both channels.
        least: Results below which a curve stays what it is, as one does that tells nothing.
    """
    carried: dict[str, Any] = {}
    for name, channel in _SHOWN_BY.items():
        known = [match for match in alone.get(channel, ()) if getattr(match, name) is not None]
        matches = [match for match in known if calibration.probability(match) is not None]
        if getattr(calibration, name) is None or len(matches) < least:
            continue
        chances = np.array([calibration.probability(match) for match in matches], dtype=np.float64)
        measured = np.full((len(matches), MEASURES), np.nan)
        (column,) = CURVES[name]
        measured[:, column] = [getattr(match, name) for match in matches]
        bins = MatchBins(measured, chances, 1.0 - chances, np.ones(len(matches)))
        carried[name] = VerdictModel.fit(bins, (column,), None).curve
    return replace(calibration, **carried)


def _held_out(
    bins: MatchBins, columns: Sequence[int], prior: VerdictPrior | None, folds: int, rng: np.random.Generator
) -> Predictions:
    chances = [1.0 / folds] * folds
    good, bad = (rng.multinomial(np.rint(mass).astype(np.int64), chances).T for mass in (bins.good, bins.bad))
    predicted = []
    for fold_good, fold_bad in zip(good, bad, strict=True):
        others = bins.with_counts(good.sum(axis=0) - fold_good, bad.sum(axis=0) - fold_bad)
        predicted.append(VerdictModel.fit(others, columns, prior).said_to_be_good(bins))
    return Predictions(np.concatenate(predicted), good.ravel().astype(np.float64), bad.ravel().astype(np.float64))


def _entropy(bins: MatchBins) -> float:
    """Nats per verdict that are left when the rates of asked and of unasked ones are known, and nothing else."""
    left = 0.0
    for some in (bins.unasked == 0.0, bins.unasked > 0.0):
        good, bad = float(bins.good[some].sum()), float(bins.bad[some].sum())
        rate = min(max(good / max(good + bad, _EDGE), _EDGE), 1.0 - _EDGE)
        left -= good * math.log(rate) + bad * math.log1p(-rate)
    return left / bins.observations
