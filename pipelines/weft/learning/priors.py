"""What is believed before any evidence: the typed form of `conf/priors.yaml`, which explains each value (LRN-12)."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Self

from pydantic import Field, field_validator, model_validator
from scipy.special import expit

from weft.domain.chunks import Overflow
from weft.domain.documents import Domain
from weft.domain.ranking import Signal
from weft.domain.sections import Positive, Section, Share, one_for_each
from weft.learning.document_priors import AuthorityPrior, DeclaredPrior
from weft.learning.lesson_priors import LessonPrior

RANKS = 10
"""Ranks told apart, to learn how often each is looked at: a page. What stands deeper is not counted (FBK-10)."""


class CovariancePrior(Section):
    """How signals vary among outcomes of one kind, before evidence says how."""

    variance: Positive
    strength: Positive
    apart: Positive
    least: Positive
    caution: Positive
    question_correlation: Share


class FitPrior(Section):
    """What is assumed of weights before logged outcomes are fitted, and how far each outcome counts (CON-8)."""

    deviation: Positive
    least: Positive
    propensity: Share
    most: Share


class AgreementPrior(Section):
    """Prior of how often each signal agrees with outcomes, stated as weights of the score (RET-14)."""

    spread: CovariancePrior
    fit: FitPrior
    log_odds_per_weight: Positive
    global_strength: Positive
    variance_factor: dict[Domain, Annotated[float, Field(ge=1.0)]]  # 1 of a domain that is not named
    weights: Annotated[dict[Domain, dict[Signal, Share]], one_for_each(Domain)]

    @field_validator("weights")
    @classmethod
    def _unnamed_weigh_nothing(cls, stated: dict[Domain, dict[Signal, float]]) -> dict[Domain, dict[Signal, float]]:
        nothing = dict.fromkeys(Signal, 0.0)
        return {domain: nothing | weights for domain, weights in stated.items()}

    @field_validator("variance_factor")
    @classmethod
    def _unnamed_are_sure(cls, stated: dict[Domain, float]) -> dict[Domain, float]:
        return dict.fromkeys(Domain, 1.0) | stated

    def mean(self, domain: Domain, signal: Signal) -> float:
        """Prior mean of the signal's agreement in that domain, in [0.5, 1)."""
        return float(expit(self.log_odds_per_weight * self.weights[domain][signal]))


class GammaPrior(Section):
    """Gamma(shape, rate) over a decay rate λ per hour: mean shape / rate_hours."""

    shape: Positive
    rate_hours: Positive


class DecayPrior(Section):
    """How fast knowledge of each domain goes stale (LRN-6)."""

    domains: Annotated[dict[Domain, GammaPrior], one_for_each(Domain)]
    unknown_age: Share  # freshness where a whole generation dates nothing
    check_strength: Positive  # what age says of a content, in words of people who looked at it


class UsagePrior(Section):
    """Beta(positive, negative) over an item's share of good outcomes, and how fast outcomes are forgotten (FBK-6)."""

    positive: Positive
    negative: Positive
    half_life_days: Positive
    principal_cap: Positive


class OutcomeCurve(Section):
    """logit P(good) = intercept + slope · share of the best score for the question (LRN-18)."""

    intercept: float
    slope: Positive


class OutcomePrior(Section):
    """Effects of what came of a content, below the ranking (LRN-18), and what one principal counts there (LRN-20)."""

    curve: OutcomeCurve
    content_variance: Positive  # Of the effects of a content, and of a content under a question
    question_variance: Positive
    own_variance: Positive  # of the effect of a principal's own word on its own searches
    variance_spread: Positive  # how far both variances may be off, a standard deviation in natural logarithms
    implied: Annotated[float, Field(ge=0.0, le=1.0)]  # what outcomes that nobody said outright count, of their weight
    daily_words: Positive  # of one principal and day, as many count in full that nobody else shares
    flood_power: Positive  # of n such words each counts (daily_words / n) to this power
    crowd: Annotated[int, Field(ge=1)]  # principals from which on that bound holds
    # as many of those who speak on one day alone count on one content, and in what they may say (FBK-13)
    newcomers: Annotated[int, Field(ge=1)]


class NearPrior(Section):
    """How far outcomes under one question count for another that asks the same in other words (LRN-19)."""

    likeness: tuple[float, ...]  # of two questions, ascending: where each bin begins; below the first nothing counts
    overlap: Annotated[float, Field(ge=0.0)]  # what two questions add to their cosine that name the same, >= 0
    factors: tuple[float, ...]  # in [0, 1], how far they count in each bin
    # how far where content words are the same, whatever stands between them
    same_words: Annotated[float, Field(ge=0.0, le=1.0)]
    strength: Positive  # pairs of verdicts under near questions that each of these is worth
    held: Annotated[int, Field(ge=0)]  # past questions that are compared

    @model_validator(mode="after")
    def _rising(self) -> Self:
        if len(self.likeness) != len(self.factors) or list(self.likeness) != sorted(self.likeness) or not self.factors:
            raise ValueError("expected as many factors as bins of likeness, and these ascending")
        return self


class TriggerPrior(Section):
    """How learned triggers come and go (RET-17)."""

    per_item: Annotated[int, Field(ge=0)]
    lasts_days: Annotated[int, Field(ge=0)]
    trial_days: Annotated[int, Field(ge=0)]
    least: Positive


class RecencyPrior(Section):
    """After how many days evidence counts half (LRN-2): at the global level, and at the levels of the project."""

    global_half_life_days: Positive
    project_half_life_days: Positive


class PoolingPrior(Section):
    """How far children follow their parent before and while their differences are estimated (LRN-5)."""

    initial: Positive
    minimum: Positive
    maximum: Positive
    ratio: Annotated[float, Field(gt=1.0, allow_inf_nan=False)]
    agents_over_models: Annotated[float, Field(ge=1.0, allow_inf_nan=False)]
    weakest: Positive

    @model_validator(mode="after")
    def _bounds_hold(self) -> Self:
        if not self.minimum <= self.initial <= self.maximum:
            raise ValueError(f"pooling: expected minimum <= initial <= maximum, found initial {self.initial}")
        return self


class DomainSizes(Section):
    """Sizes of one domain, in tokens: means of Gamma priors, and the hard limit, which is not learned."""

    max: Annotated[int, Field(gt=0)]
    target: Positive
    minimum: Positive
    before: Positive
    after: Positive
    overflow: Annotated[dict[Overflow, Positive], one_for_each(Overflow)]

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not self.minimum <= self.target <= self.max:
            raise ValueError(f"sizing: expected minimum <= target <= max, found {self.minimum}, {self.target}")
        return self


class SizingPrior(Section):
    """How large chunks are cut (ING-11) and what outcomes of chunks say about it (LRN-9)."""

    rate: Positive
    unused_weight: Share
    raise_minimum: Annotated[float, Field(ge=1.0, allow_inf_nan=False)]
    global_strength: Positive
    domains: Annotated[dict[Domain, DomainSizes], one_for_each(Domain)]

    def mean(self, domain: Domain, size: str) -> float:
        """Prior mean of "target", "minimum", "before" or "after" in that domain, in tokens."""
        return float(getattr(self.domains[domain], size))

    def strength(self, domain: Domain, size: str) -> float:
        """What that mean is worth, in observations: the shape of its Gamma."""
        return self.mean(domain, size) * self.rate


class RobustnessPrior(Section):
    """How far evidence may carry a belief (LRN-3), in observations of one parameter at one node."""

    # so many principals have nobody beside them whom allowances would protect (LRN-20)
    alone: Annotated[int, Field(ge=0)]
    daily_cap: Positive
    reported_daily_cap: Positive
    effective_cap: Positive
    outlier_z: Positive
    outlier_evidence: Positive


class ConfidencePrior(Section):
    """After how many observations a belief is half settled (LRN-4)."""

    halfway: Positive


class TrustPrior(Section):
    """Factor on the trust level of a source, until verifications say more (LRN-10)."""

    multiplier: Annotated[float, Field(ge=0.0)]
    verified: Positive
    refuted: Positive
    highest: Annotated[float, Field(ge=1.0, allow_inf_nan=False)]


class ExaminationPrior(Section):
    """How often each rank is looked at, relative to the first (FBK-10)."""

    exponent: Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
    exponent_spread: Positive
    deviation: Positive
    level_precision: Positive

    def mean(self, rank: int) -> float:
        """Expected θ of a rank from 1, in (0, 1]."""
        return float(min(rank, RANKS) ** -self.exponent)


class VerdictPrior(Section):
    """How verdicts on results come about (RET-15)."""

    mistaken: Annotated[float, Field(ge=0.0, lt=0.5)]
    selection: Annotated[float, Field(allow_inf_nan=False)]
    selection_spread: Positive
    reading: Annotated[float, Field(allow_inf_nan=False)]
    reading_spread: Positive
    stands_for: Annotated[float, Field(ge=1.0, allow_inf_nan=False)]


class ThresholdPrior(Section):
    """From which confidence on to act (LRN-7)."""

    a: Positive
    b: Positive
    slope_shape: Positive
    slope_rate: Positive
    cost_false_positive: Positive
    cost_false_negative: Positive
    offset_share: Share
    lowest: Share
    highest: Share


class QualityPrior(Section):
    """Quality of a model over the turns of a conversation (LRN-8)."""

    start: Share
    per_turn: float
    amplitude: Positive
    length: Positive
    noise: Positive
    noise_strength: Positive
    offset: Positive
    hand_off: Share


class IntervalSettings(Section):
    """Which share of a belief its credible interval holds."""

    level: Annotated[float, Field(gt=0.0, lt=1.0)]


class Priors(Section):
    """Everything in `conf/priors.yaml`."""

    signals: AgreementPrior
    pooling: PoolingPrior
    recency: RecencyPrior
    robustness: RobustnessPrior
    decay: DecayPrior
    usage: UsagePrior
    declared: DeclaredPrior
    authority: AuthorityPrior
    outcomes: OutcomePrior
    near: NearPrior
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
