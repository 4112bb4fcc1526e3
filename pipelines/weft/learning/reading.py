"""What is believed, one line per parameter and scope: for people, tables and comparisons (LRN-4 to LRN-10)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from weft.domain.chunks import Overflow
from weft.domain.documents import Domain
from weft.domain.ranking import ANY, Scope, Signal
from weft.learning.beliefs import HORIZON, Beliefs
from weft.learning.families.beta import Beta, confidence
from weft.learning.priors import RANKS, Priors

DOMAIN = "domain"
REPORTED_TURNS = (1, 10, 50)  # the first of a conversation, a short one, a long one
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, slots=True)
class Reading:
    """One belief."""

    family: str  # such as "weight", "decay" or "trust"
    scope: str  # whose belief it is: "code/model/agent", a domain alone, a model, a source, or "*" for all
    parameter: str  # what it is about, with its unit where it has one
    mean: float | None  # what is expected; None where nothing is expected to happen
    low: float | None  # Credible interval of the priors' level; None where there is none
    high: float | None
    observations: float  # behind it, beyond the priors
    confidence: float  # how settled it is, in [0, 1)
    level: str = ""  # the level of the hierarchy that informs it most; empty where there is no hierarchy

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells it from all others."""
        return self.family, self.scope, self.parameter


def read_all(beliefs: Beliefs, priors: Priors, scopes: Iterable[Scope]) -> list[Reading]:
    """Every belief: weights at `scopes`, everything else wherever there is evidence, and in every domain."""
    read = _Reader(beliefs, priors)
    return [
        *(reading for scope in scopes for reading in read.weights(scope)),
        *read.intents(),
        *read.decay(),
        *read.thresholds(),
        *read.quality(),
        *read.trust(),
        *read.lessons(),
        *read.sizes(),
        *read.examination(),
    ]


def path_of(scope: Scope) -> str:
    """A scope as one word, without what it leaves open at its end."""
    names = [scope.domain.value, scope.model, scope.agent]
    while names[-1] == ANY:
        names.pop()
    return "/".join(names) + ("" if scope.intent == ANY else f"?{scope.intent}")


class _Reader:
    """Turns each family's posteriors into lines."""

    def __init__(self, beliefs: Beliefs, priors: Priors) -> None:
        self._beliefs = beliefs
        self._priors = priors
        self._level = priors.interval.level
        self._halfway = priors.confidence.halfway

    def weights(self, scope: Scope) -> Iterator[Reading]:
        for signal, belief in self._beliefs.weights(scope, tuple(Signal)).items():
            bounds = belief.mean, belief.low, belief.high
            behind = self._behind(belief.n_effective)
            yield Reading("weight", path_of(scope), signal.value, *bounds, *behind, belief.level)

    def intents(self) -> Iterator[Reading]:
        for domain, intent in self._beliefs.intents():
            for signal in Signal:
                belief = self._beliefs.intent_factor(domain, intent, signal)
                if belief is not None:
                    bounds = belief.mean, *belief.interval(self._level)
                    behind = *self._behind(belief.observations), "intent"
                    yield Reading(
                        "intent", path_of(Scope(domain, intent=intent)), f"odds of {signal}", *bounds, *behind
                    )

    def decay(self) -> Iterator[Reading]:
        for domain in Domain:
            belief = self._beliefs.reported.decay(domain)
            low, median, high = belief.half_life(self._level)
            behind = self._behind(belief.observations)
            yield Reading("decay", domain.value, "half-life in hours", median, low, high, *behind, DOMAIN)

    def thresholds(self) -> Iterator[Reading]:
        reported = self._beliefs.reported
        for domain in Domain:
            for agent in (ANY, *reported.agents_of(domain)):
                belief = reported.threshold(domain, agent)
                scope = domain.value if agent == ANY else f"{domain.value}/{ANY}/{agent}"
                behind = self._behind(belief.observations)
                level = DOMAIN if agent == ANY else "agent"
                yield Reading("threshold", scope, "τ*", belief.mean, *belief.interval(self._level), *behind, level)
                acting = reported.acting_threshold(Scope(domain, agent=agent))
                yield Reading("threshold", scope, "acts from", acting, None, None, *behind, level)

    def quality(self) -> Iterator[Reading]:
        reported, prior = self._beliefs.reported, self._priors.quality
        turns = np.array(REPORTED_TURNS, dtype=np.float64)
        for model, agent in reported.judged_models():
            belief = reported.quality(model, agent)
            scope = model if agent == ANY else f"{model}/{agent}"
            behind = *self._behind(belief.observations), "model" if agent == ANY else "agent"
            means, (lows, highs) = belief.predict(turns)[0], belief.interval(turns, self._level)
            for turn, mean, low, high in zip(REPORTED_TURNS, means, lows, highs, strict=True):
                yield Reading("quality", scope, f"at turn {turn}", float(mean), float(low), float(high), *behind)
            leave = belief.hand_off(prior.hand_off, horizon=HORIZON)
            yield Reading("quality", scope, "turn to hand off", None if leave is None else leave, None, None, *behind)

    def trust(self) -> Iterator[Reading]:
        reported = self._beliefs.reported
        for source, model in reported.verified_sources():
            scope = source if model == ANY else f"{source}/{model}"
            belief, level = reported.trust(source, model), "source" if model == ANY else "model"
            yield self._beta("trust", scope, "share that holds", belief, level)
            factor = reported.trust_multiplier(source, model)
            behind = self._behind(belief.observations)
            yield Reading("trust", scope, "multiplier", factor, None, None, *behind, level)

    def lessons(self) -> Iterator[Reading]:
        for lesson in self._beliefs.lessons.ids:
            yield self._beta("lesson", lesson, "share of successes", self._beliefs.lessons.believed_share(lesson))

    def sizes(self) -> Iterator[Reading]:
        for domain, sizing in self._beliefs.sizing.items():
            for name, belief in sizing.sizes.items():
                bounds = belief.mean, *belief.interval(self._level)
                behind = self._behind(sizing.n_effective[name])
                yield Reading("size", domain.value, f"{name} in tokens", *bounds, *behind, DOMAIN)
            shares = zip(Overflow, sizing.overflow.mean, sizing.overflow.interval(self._level), strict=True)
            behind = self._behind(sizing.n_effective["overflow"])
            for strategy, mean, (low, high) in shares:
                yield Reading("size", domain.value, f"{strategy.value} on overflow", mean, low, high, *behind, DOMAIN)

    def examination(self) -> Iterator[Reading]:
        for domain, belief in self._beliefs.examination.items():
            for rank in range(2, RANKS + 1):
                bounds = belief.probability(rank), *belief.interval(rank, self._level)
                behind = self._behind(belief.observations(rank))
                yield Reading("examination", domain.value, f"rank {rank}", *bounds, *behind, DOMAIN)

    def _behind(self, observations: float) -> tuple[float, float]:
        """So many observations, and how settled they make a belief."""
        return observations, confidence(observations, halfway=self._halfway)

    def _beta(self, family: str, scope: str, parameter: str, belief: Beta, level: str = "") -> Reading:
        behind = self._behind(belief.observations)
        return Reading(family, scope, parameter, belief.mean, *belief.interval(self._level), *behind, level)


@dataclass(frozen=True, slots=True)
class BeliefChange:
    """One belief in two states of evidence; either is None where the parameter is unknown there."""

    before: Reading | None
    after: Reading | None
    level: float  # of the intervals of both

    @property
    def key(self) -> tuple[str, str, str]:
        """Of the belief."""
        return (self.after or self.before).key  # type: ignore[union-attr]

    @property
    def change(self) -> float | None:
        """Of the mean; None where one of them is missing."""
        if self.before is None or self.after is None or self.before.mean is None or self.after.mean is None:
            return None
        return self.after.mean - self.before.mean

    @property
    def certainty(self) -> float:
        """Probability that it moved in that direction, in [0.5, 1]: of the state of evidence that is surer of it.

        By a normal distribution about each mean, as wide as its interval is on the side of the other; one half where
        there is no interval, or no change.
        """
        if not self.change or self.before is None or self.after is None:
            return 0.5
        reaches = [_reach(self.after, down=self.change > 0.0), _reach(self.before, down=self.change < 0.0)]
        widths = [width for width in reaches if width is not None]
        if not widths:
            return 0.5
        return float(ndtr(abs(self.change) / max(min(widths), _TINY) * ndtri((1.0 + self.level) / 2.0)))

    @property
    def beyond_chance(self) -> bool:
        """Whether one of both means lies outside the other's interval."""
        return self.certainty > (1.0 + self.level) / 2.0


def _reach(reading: Reading, *, down: bool) -> float | None:
    """From the mean to an end of its interval; None where there is none."""
    if reading.mean is None or reading.low is None or reading.high is None:
        return None
    return reading.mean - reading.low if down else reading.high - reading.mean


def moves(before: Iterable[Reading], after: Iterable[Reading], *, level: float) -> list[BeliefChange]:
    """Beliefs that differ, the surest change first; of equally sure ones, the one with more observations behind it."""
    old, new = ({reading.key: reading for reading in readings} for readings in (before, after))
    keys = sorted(old.keys() | new.keys())
    changes = [BeliefChange(old.get(key), new.get(key), level) for key in keys if _mean(old, key) != _mean(new, key)]
    return sorted(changes, key=lambda move: (-move.certainty, -_observations(move), move.key))


def _observations(move: BeliefChange) -> float:
    return max(reading.observations for reading in (move.before, move.after) if reading is not None)


def _mean(readings: Mapping[tuple[str, str, str], Reading], key: tuple[str, str, str]) -> tuple[bool, float | None]:
    reading = readings.get(key)
    return reading is not None, None if reading is None else reading.mean
