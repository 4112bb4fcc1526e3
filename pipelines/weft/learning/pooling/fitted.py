"""Weights that a night fitted: part of its learned version, moved on by what is streamed after it (CON-8)."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri

from weft.domain.arrays import Floats
from weft.domain.documents import Domain
from weft.domain.ranking import Signal, WeightBelief
from weft.learning.parts import PartChange, PartChanges

FIT = "fit"
"""The level that fitted weights come from."""


@dataclass(frozen=True, slots=True, eq=False)
class DomainFit:
    """Fitted weights of one domain, arrays in the order of `signals`.

    What is streamed later moves them as far as it moves what counting alone says: share = fitted + (counted now −
    counted that night), floored at 0 and normalised.
    """

    signals: tuple[Signal, ...]
    shares: Floats  # float64 (n,) >= 0, sum to 1
    covariance: Floats  # float64 (n, n), of the shares
    counted: Floats  # float64 (n,), what counting said of the same signals that night; sums to 1
    outcomes: float  # Behind the fit, in independent observations

    def means(self, counted: Mapping[Signal, float]) -> dict[Signal, float]:
        """The shares of the active signals, given what counting says of them now."""
        places = {signal: at for at, signal in enumerate(self.signals)}
        room = sum(float(self.counted[places[signal]]) for signal in counted if signal in places)
        moved = {
            signal: max(0.0, room * now + (float(self.shares[at] - self.counted[at]) if at is not None else 0.0))
            for signal, now in counted.items()
            for at in (places.get(signal),)
        }
        total = math.fsum(moved.values())
        return {signal: value / total for signal, value in moved.items()} if total > 0.0 else dict(counted)

    def draws(self, counted: Mapping[Signal, float], rng: np.random.Generator, n: int) -> dict[Signal, Floats]:
        """Shares of the active signals at `n` draws, float64 (n,) by signal: Gamma ones of their means and deviations.

        None is below 0, so that none is cut off there, which would give signals whose share is 0 a part of the score.
        """
        means = self.means(counted)
        drawn = np.zeros((n, len(means)))
        for at, (signal, mean) in enumerate(means.items()):
            deviation = self._deviations.get(signal, 0.0)
            uncertain = mean > 0.0 and deviation > 0.0
            drawn[:, at] = rng.gamma((mean / deviation) ** 2, deviation**2 / mean, size=n) if uncertain else mean
        total = drawn.sum(axis=1, keepdims=True)
        shares = np.where(total > 0.0, drawn / np.where(total > 0.0, total, 1.0), np.array([list(means.values())]))
        return {signal: shares[:, at] for at, signal in enumerate(means)}

    def beliefs(self, counted: Mapping[Signal, WeightBelief], level: float) -> dict[Signal, WeightBelief]:
        """What is believed of the active signals: the fit's interval around where what was streamed since moved it."""
        means = self.means({signal: belief.mean for signal, belief in counted.items()})
        reach = float(ndtri((1.0 + level) / 2.0))
        return {
            signal: self._belief(signal, mean, reach * self._deviations.get(signal, 0.0), counted[signal])
            for signal, mean in means.items()
        }

    def _belief(self, signal: Signal, mean: float, reach: float, counted: WeightBelief) -> WeightBelief:
        if signal not in self.signals:  # nothing was logged of it: what is counted of it holds
            low, high = min(mean, counted.low), max(mean, counted.high)
            return WeightBelief(mean, low, high, counted.n_effective, counted.level)
        return WeightBelief(mean, max(0.0, mean - reach), min(1.0, mean + reach), self.outcomes, FIT)

    @property
    def _deviations(self) -> dict[Signal, float]:
        return dict(zip(self.signals, np.sqrt(np.maximum(np.diag(self.covariance), 0.0)).tolist(), strict=True))


@dataclass(frozen=True, slots=True, eq=False)
class FittedWeights:
    """The fits of the domains in which they go live; empty where counting does everywhere."""

    name: ClassVar[str] = "fitted"
    by_domain: Mapping[Domain, DomainFit]
    deviation: float  # τ that all of them were made under

    def to_table(self) -> str:
        """JSON that `from_table` reads back to equal bits."""
        rows = {
            domain.value: {
                "signals": [signal.value for signal in fit.signals],
                "shares": fit.shares.tolist(),
                "covariance": fit.covariance.tolist(),
                "counted": fit.counted.tolist(),
                "outcomes": fit.outcomes,
            }
            for domain, fit in self.by_domain.items()
        }
        return json.dumps({"deviation": self.deviation, "domains": rows}, sort_keys=True)

    @classmethod
    def from_table(cls, text: str) -> FittedWeights:
        """What was written; ValueError where it is something else."""
        try:
            values = json.loads(text)
            return cls({Domain(name): _fit_of(row) for name, row in values["domains"].items()}, values["deviation"])
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"expected fitted weights by domain, found: {error!r}") from error

    def changes(self, before: FittedWeights | None) -> PartChanges:
        """Domains whose weights are fitted, and those where counting weighs again."""
        named = ({} if each is None else each.by_domain for each in (before, self))
        return PartChanges.between(*((PartChange(domain.value, "fitted weights") for domain in each) for each in named))


def _fit_of(row: Mapping[str, Any]) -> DomainFit:
    shares, covariance, counted = (
        np.array(row[name], dtype=np.float64) for name in ("shares", "covariance", "counted")
    )
    return DomainFit(tuple(map(Signal, row["signals"])), shares, covariance, counted, float(row["outcomes"]))
