"""Lessons as they are put before an agent: what is believed of each, and why it fits (LES-3, LES-8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from weft.domain.errors import InvalidLessonError
from weft.domain.lesson import Lesson, LessonResult, LessonStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class BelievedLesson:
    """A lesson and what is believed of it at one moment."""

    lesson: Lesson
    p_good: float  # posterior mean of the share of good outcomes, in [0, 1]
    lower: float  # The credible interval of it
    upper: float
    status: LessonStatus
    # whole outcomes of each result, as they came, none discounted
    counts: Mapping[LessonResult, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        problems = []
        if not 0.0 <= self.lower <= self.p_good <= self.upper <= 1.0:
            problems.append(
                f"p_good: expected 0 <= lower <= p_good <= upper <= 1, found {self.lower}, {self.p_good}, "
                f"{self.upper}: read the belief anew"
            )
        if wrong := {name: count for name, count in self.counts.items() if count < 0}:
            problems.append(f"counts: expected 0 or more of each, found {wrong}: read the evidence anew")
        if problems:
            raise InvalidLessonError(problems)

    @property
    def helpful(self) -> int:
        """Successes and confirmations."""
        return self.counts.get(LessonResult.SUCCESS, 0) + self.counts.get(LessonResult.CONFIRMATION, 0)

    @property
    def harmful(self) -> int:
        """Failures and contradictions."""
        return self.counts.get(LessonResult.FAILURE, 0) + self.counts.get(LessonResult.CONTRADICTION, 0)


@dataclass(frozen=True, slots=True)
class MatchedCondition:
    """One addend of a lesson's relevance; hooks make it without what results of a search take along."""

    name: str  # "tool", "tool_wildcard", "file", "actions" or "words"
    value: float  # how far the condition is met, in [0, 1]
    weight: float
    amount: float  # value · weight


@dataclass(frozen=True, slots=True)
class LessonMatch:
    """Why a lesson is shown."""

    believed: BelievedLesson
    relevance: float  # the sum of the contributions' amounts, in [0, 1]
    priority: float  # the factor of the lesson's priority
    rank: float  # relevance · P(good) · priority
    contributions: tuple[MatchedCondition, ...]  # one for each condition that is met, at least in part


@dataclass(frozen=True, slots=True)
class ChosenLesson:
    """A lesson that is put before an agent."""

    match: LessonMatch
    propensity: float  # probability that it is, where it fits as it does here (LES-3)

    @property
    def why(self) -> str:
        """Why it is shown, and how sure it is, for people."""
        match, believed = self.match, self.match.believed
        met = " + ".join(f"{each.name} {each.amount:.2f}" for each in match.contributions)
        of = f" ({met})" if met else ""
        sure = f"P(good) {believed.p_good:.2f} [{believed.lower:.2f}, {believed.upper:.2f}]"
        drawn = "" if self.propensity >= 1.0 else f"; on trial, drawn with probability {self.propensity:.2f}"
        return f"relevance {match.relevance:.2f}{of} · {sure} · priority {match.priority:g}{drawn}"

    def to_dict(self) -> dict[str, Any]:
        """All of it in JSON's own types, with why it is there and how sure it is."""
        believed = self.match.believed
        return {
            **believed.lesson.as_fields(),
            "p_good": believed.p_good,
            "interval": [believed.lower, believed.upper],
            "status": believed.status.value,
            "rank": self.match.rank,
            "propensity": self.propensity,
            "contributions": [asdict(each) for each in self.match.contributions],
            "why": self.why,
        }
