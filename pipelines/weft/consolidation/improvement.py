"""What a night makes of retrieval: the same questions asked under the live version and under the candidate (EVA-4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from weft.learning.parts import LearnedVersion

HEADLINE = "ndcg_at_10"
"""The measure that the gate decides by."""


class QuestionSource(StrEnum):
    """Whose questions are asked; of two that were asked, the gate decides by the first."""

    JUDGED = "judged"  # of people or of a model, each with what is right
    OWN = "own"  # that the store's contents ask for themselves


class MeanInterval(NamedTuple):
    """A mean over questions, and the interval that it is known within."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Improvement:
    """One measure of the same questions before and after, paired by question."""

    measure: str  # such as "ndcg_at_10"
    source: QuestionSource
    before: MeanInterval  # Under the live version and under the candidate
    after: MeanInterval
    change: MeanInterval  # its mean and interval
    questions: int  # how many there were
    significant: bool  # whether the change is more than chance alone makes of so many


Improve = Callable[[LearnedVersion, LearnedVersion], Sequence[Improvement]]
"""Measures what changes from one state of learning to another; empty where there is nothing to ask."""


def deciding(improvements: Sequence[Improvement]) -> Improvement | None:
    """The one that the gate decides by: the headline on judged questions, on the store's own where none are judged."""
    headline = [one for one in improvements if one.measure == HEADLINE]
    order = list(QuestionSource)
    return min(headline, key=lambda one: order.index(one.source), default=None)


def as_metrics(improvements: Sequence[Improvement]) -> dict[str, float]:
    """Every figure by measure and which of them it is; of what the gate decides by as `ndcg_at_10/before`, and of each
    source as `ndcg_at_10/own/before`.
    """
    order = list(QuestionSource)
    first: dict[str, Improvement] = {}
    for one in sorted(improvements, key=lambda one: order.index(one.source)):
        first.setdefault(one.measure, one)
    named = [
        *((measure, one) for measure, one in first.items()),
        *((f"{one.measure}/{one.source}", one) for one in improvements),
    ]
    return {
        f"{group}/{name}": value
        for group, one in named
        for name, value in (*_figures("before", one.before), *_figures("after", one.after))
    }


def as_summary(improvements: Sequence[Improvement]) -> dict[str, Any]:
    """For machines, by measure: what the gate would decide by, and each source's by itself."""
    measures = dict.fromkeys([HEADLINE, *(one.measure for one in improvements)])
    return {measure: _of_measure([one for one in improvements if one.measure == measure]) for measure in measures}


def _of_measure(improvements: Sequence[Improvement]) -> dict[str, Any] | None:
    order = list(QuestionSource)
    sources = {one.source.value: _as_json(one) for one in sorted(improvements, key=lambda one: order.index(one.source))}
    return {**next(iter(sources.values())), "sources": sources} if sources else None


def _as_json(one: Improvement) -> dict[str, Any]:
    intervals = {name: [getattr(one, name).low, getattr(one, name).high] for name in ("before", "after", "change")}
    means = {name: getattr(one, name).mean for name in intervals}
    return {**means, "questions": one.questions, "significant": one.significant, "intervals": intervals}


def _figures(name: str, interval: MeanInterval) -> Iterator[tuple[str, float]]:
    yield name, interval.mean
    yield f"{name}_low", interval.low
    yield f"{name}_high", interval.high
