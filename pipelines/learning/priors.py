"""What is believed before any evidence: the typed form of `conf/priors.yaml` (LRN-12)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from scipy.special import expit

from pipelines.domain.documents import Domain
from pipelines.domain.ranking import Signal
from pipelines.domain.sizing import Overflow

Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class WeightMethod(StrEnum):
    """How beliefs about agreement become weights."""

    DISCRIMINANT = "discriminant"
    LOG_ODDS = "log_odds"


class SpreadPrior(_Section):
    """How signals vary among outcomes of one kind, before evidence says how.

    Attributes:
        variance: Of every signal; they are expected to vary independently.
        strength: What that is worth, in observations.
        apart: What "independently" is worth, in observations.
        least: Variance in [0, 1] that no combination of signals is taken to fall below.
        caution: Variance of what chance finds, in units of that of independent outcomes, where questions differ.
        alike: Correlation of outcomes under one question, which makes it more where the same is asked again.
    """

    variance: Positive
    strength: Positive
    apart: Positive
    least: Positive
    caution: Positive
    alike: Share


class AgreementPrior(_Section):
    """Prior of how often each signal agrees with outcomes, stated as weights of the score (RET-14).

    Attributes:
        log_odds_per_weight: Log-odds of agreement per unit of weight: the prior mean is sigmoid(scale · weight), so
            that log-odds of beliefs, normalised, give the stated weights back.
        global_strength: Pseudo-observations behind the prior of all domains together, per kind of outcome.
        variance_factor: By how much a domain's prior variance exceeds that of `pooling` κ.
        weights: Stated weight >= 0 by domain and signal; shares of one another, they need not sum to 1.
            A signal that is not named weighs 0.
        weighing: Whether weights are log-odds, or log-odds of which is taken out what signals have in common.
    """

    weighing: WeightMethod
    spread: SpreadPrior
    log_odds_per_weight: Positive
    global_strength: Positive
    variance_factor: dict[Domain, Annotated[float, Field(ge=1.0)]]
    weights: dict[Domain, dict[Signal, Annotated[float, Field(ge=0.0, le=1.0)]]]

    @field_validator("weights")
    @classmethod
    def _unnamed_weigh_nothing(cls, stated: dict[Domain, dict[Signal, float]]) -> dict[Domain, dict[Signal, float]]:
        nothing = dict.fromkeys(Signal, 0.0)
        return {domain: nothing | weights for domain, weights in stated.items()}

    @model_validator(mode="after")
    def _covers_everything(self) -> Self:
        _require(Domain, self.variance_factor, "signals.variance_factor")
        _require(Domain, self.weights, "signals.weights")
        return self

    def mean(self, domain: Domain, signal: Signal) -> float:
        """Prior mean of the signal's agreement in that domain, in [0.5, 1)."""
        return float(expit(self.log_odds_per_weight * self.weights[domain][signal]))


class GammaPrior(_Section):
    """Gamma(shape, rate) over a decay rate λ per hour: mean shape / rate_hours."""

    shape: Positive
    rate_hours: Positive


class DecayPrior(_Section):
    """How fast knowledge of each domain goes stale (LRN-6); `unknown_age` is the freshness of undated items."""

    domains: dict[Domain, GammaPrior]
    unknown_age: Share

    @model_validator(mode="after")
    def _covers_everything(self) -> Self:
        _require(Domain, self.domains, "decay.domains")
        return self


class UsagePrior(_Section):
    """Beta(positive, negative) over an item's share of good outcomes, and how fast outcomes are forgotten (FBK-6).

    Attributes:
        principal_cap: Observations that one principal's outcomes of one content count at most (LRN-3, FBK-11).
    """

    positive: Positive
    negative: Positive
    half_life_days: Positive
    principal_cap: Positive


class TriggerPrior(_Section):
    """How learned triggers come and go (RET-17).

    Attributes:
        per_item: Triggers of one content at most, the strongest.
        lasts_days: Days after its last selection that a trigger is forgotten.
        trial_days: Days from its first selection on that it is told and has no effect.
        least: Principals that must have said so.
    """

    per_item: Annotated[int, Field(ge=0)]
    lasts_days: Annotated[int, Field(ge=0)]
    trial_days: Annotated[int, Field(ge=0)]
    least: Positive


class RecencyPrior(_Section):
    """After how many days evidence counts half (LRN-2): at the global level, and at the levels of the project."""

    global_half_life_days: Positive
    project_half_life_days: Positive


class PoolingPrior(_Section):
    """How far children follow their parent before and while their differences are estimated (LRN-5).

    Attributes:
        initial: Median of the prior of κ, in pseudo-observations.
        minimum, maximum: Bounds of κ.
        ratio: By what factor κ typically changes from one level to the next.
        points: Of κ between its bounds, over which beliefs are averaged.
        weakest: Least κ of a prior whose variance a factor multiplies.
    """

    initial: Positive
    minimum: Positive
    maximum: Positive
    ratio: Annotated[float, Field(gt=1.0, allow_inf_nan=False)]
    points: Annotated[int, Field(ge=3)]
    weakest: Positive

    @model_validator(mode="after")
    def _bounds_hold(self) -> Self:
        if not self.minimum <= self.initial <= self.maximum:
            raise ValueError(f"pooling: expected minimum <= initial <= maximum, found initial {self.initial}")
        return self


class DomainSizes(_Section):
    """Sizes of one domain, in tokens: means of Gamma priors, and the hard limit, which is not learned.

    Attributes:
        overflow: Pseudo-observations > 0 of each strategy.
    """

    max: Annotated[int, Field(gt=0)]
    target: Positive
    minimum: Positive
    before: Positive
    after: Positive
    overflow: dict[Overflow, Positive]

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        _require(Overflow, self.overflow, "sizing.domains.overflow")
        if not self.minimum <= self.target <= self.max:
            raise ValueError(f"sizing: expected minimum <= target <= max, found {self.minimum}, {self.target}")
        return self


class SizingPrior(_Section):
    """How large chunks are cut (ING-11) and what outcomes of chunks say about it (LRN-9).

    Attributes:
        rate: Rate of each Gamma per token, so that a mean of m tokens is worth m · rate observations.
        unused_weight: What an unused chunk counts, in useful ones.
        raise_minimum: An unused chunk below the minimum in force speaks for a minimum this many times larger.
        global_strength: Observations behind "all domains keep to their priors".
    """

    rate: Positive
    unused_weight: Share
    raise_minimum: Annotated[float, Field(ge=1.0, allow_inf_nan=False)]
    global_strength: Positive
    domains: dict[Domain, DomainSizes]

    @model_validator(mode="after")
    def _covers_everything(self) -> Self:
        _require(Domain, self.domains, "sizing.domains")
        return self

    def mean(self, domain: Domain, size: str) -> float:
        """Prior mean of "target", "minimum", "before" or "after" in that domain, in tokens."""
        return float(getattr(self.domains[domain], size))

    def strength(self, domain: Domain, size: str) -> float:
        """What that mean is worth, in observations: the shape of its Gamma."""
        return self.mean(domain, size) * self.rate


class RobustnessPrior(_Section):
    """How far evidence may carry a belief (LRN-3), in observations of one parameter at one node.

    Attributes:
        daily_cap: At most so many count of one day.
        effective_cap: At most so many stand against the prior.
        outlier_z: A day further from the others than so many standard deviations counts less.
        outlier_evidence: Observations on other days from which on that is judged.
    """

    daily_cap: Positive
    effective_cap: Positive
    outlier_z: Positive
    outlier_evidence: Positive


class ConfidencePrior(_Section):
    """After how many observations a belief is half settled (LRN-4)."""

    halfway: Positive


class TrustPrior(_Section):
    """Factor on the trust level of a source, until verifications say more (LRN-10).

    Attributes:
        multiplier: Without any verification.
        verified, refuted: Beta over the share of verifications that a source passes; its mean makes `multiplier`.
        highest: The multiplier of a source that is never refuted is at most this.
    """

    multiplier: Annotated[float, Field(ge=0.0)]
    verified: Positive
    refuted: Positive
    highest: Annotated[float, Field(ge=1.0, allow_inf_nan=False)]


class ExaminationPrior(_Section):
    """How often each rank is looked at, relative to the first (FBK-10).

    Attributes:
        exponent: θ of rank k is expected at k^(−exponent).
        exponent_spread: Standard deviation of that exponent, over domains.
        deviation: Standard deviation of ln θ of one rank from such a power.
        level_precision: Precision of the logarithm of how attractive results are, around 0.
        ranks: Ranks told apart; deeper ones count as the last.
        knots: Scores, evenly apart, between which attractiveness is interpolated.
        lead_knots: Leads over the best of the others, closer together at 0, between which it is interpolated.
    """

    exponent: Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
    exponent_spread: Positive
    deviation: Positive
    level_precision: Positive
    ranks: Annotated[int, Field(ge=2, le=99)]
    knots: Annotated[int, Field(ge=2, le=100)]
    lead_knots: Annotated[int, Field(ge=2, le=100)]

    def mean(self, rank: int) -> float:
        """Expected θ of a rank from 1, in (0, 1]."""
        return float(min(rank, self.ranks) ** -self.exponent)


class VerdictPrior(_Section):
    """How verdicts on results come about (RET-15).

    Attributes:
        mistaken: Share of verdicts that say the opposite of what is so; it stands.
        selection: What is added to the log-odds of a good result at the first rank where nobody asked, until enough
            were asked.
        selection_spread: Standard deviation of that, over collections.
        reading: What is added further down, times the logarithm of the rank.
        reading_spread: Standard deviation of that.
        stands_for: Results >= 1 that a verdict which was asked for stands for at most: 1 / chance, clipped.
    """

    mistaken: Annotated[float, Field(ge=0.0, lt=0.5)]
    selection: Annotated[float, Field(allow_inf_nan=False)]
    selection_spread: Positive
    reading: Annotated[float, Field(allow_inf_nan=False)]
    reading_spread: Positive
    stands_for: Annotated[float, Field(ge=1.0, allow_inf_nan=False)]


class LessonPrior(_Section):
    """Beta(success, failure) over a lesson's share of good outcomes (LRN-4)."""

    success: Positive
    failure: Positive


class ThresholdPrior(_Section):
    """From which confidence on to act (LRN-7).

    Attributes:
        a, b: Beta over the threshold.
        slope_shape, slope_rate: Gamma over the log-odds of a good decision per unit of confidence.
        cost_false_positive, cost_false_negative: Of acting on a bad decision, and of leaving a good one.
        offset_share: How much of an agent's own difference from its domain is followed.
        lowest, highest: Bounds of any threshold.
    """

    a: Positive
    b: Positive
    slope_shape: Positive
    slope_rate: Positive
    cost_false_positive: Positive
    cost_false_negative: Positive
    offset_share: Share
    lowest: Share
    highest: Share


class QualityPrior(_Section):
    """Quality of a model over the turns of a conversation (LRN-8).

    Attributes:
        start, per_turn: Expected quality is start + per_turn · turn.
        amplitude, length: Of the Matérn kernel: how far, and over how many turns, reality departs from that.
        noise: Standard deviation of one observed quality around its turn's expectation.
        noise_strength: What that is worth, in observations.
        offset: Standard deviation of agents around their model.
        turns: Turns that are kept one by one; later ones share bins.
        told_turns: Turns at which quality is told to people.
        hand_off: Where quality is expected to fall below this, another model should take over.
        horizon: How many turns ahead that is looked for.
    """

    start: Share
    per_turn: float
    amplitude: Positive
    length: Positive
    noise: Positive
    noise_strength: Positive
    offset: Positive
    turns: Annotated[int, Field(ge=1)]
    told_turns: tuple[Annotated[int, Field(ge=1)], ...]
    hand_off: Share
    horizon: Annotated[int, Field(ge=1)]


class IntervalSettings(_Section):
    """How intervals of weights are computed: quantiles of that many draws from a fixed seed."""

    level: Annotated[float, Field(gt=0.0, lt=1.0)]
    draws: Annotated[int, Field(ge=100)]
    seed: int


class Priors(_Section):
    """Everything in `conf/priors.yaml`."""

    signals: AgreementPrior
    pooling: PoolingPrior
    recency: RecencyPrior
    robustness: RobustnessPrior
    decay: DecayPrior
    usage: UsagePrior
    triggers: TriggerPrior
    sizing: SizingPrior
    confidence: ConfidencePrior
    trust: TrustPrior
    examination: ExaminationPrior
    verdicts: VerdictPrior
    lessons: LessonPrior
    thresholds: ThresholdPrior
    quality: QualityPrior
    interval: IntervalSettings

    @property
    def fingerprint(self) -> str:
        """SHA-256 over all values, 64 hex digits: a store records which priors its beliefs were read with."""
        return hashlib.sha256(json.dumps(self.model_dump(mode="json"), sort_keys=True).encode()).hexdigest()


def _require(wanted: type[StrEnum], stated: Iterable[str], at: str) -> None:
    if missing := sorted(set(wanted) - set(stated)):
        raise ValueError(f"{at}: expected a value for each of {sorted(wanted)}, missing {missing}")
