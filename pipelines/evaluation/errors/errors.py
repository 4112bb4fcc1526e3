"""Why a query was answered as it was: where the right result stands, and what put others before it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pipelines.domain.ranking import Answer, RankedResult
from pipelines.evaluation.measures.beir import Qrels

RIGHT = "right"
"""The reason of an answer whose first result is relevant."""

MISSED = "missed"
"""The reason of an answer without any relevant result: no channel found one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What one answer did with its query.

    Attributes:
        rank: Of the best relevant result, None where there is none.
        channels: The channels that found it.
        reason: `RIGHT`, `MISSED`, or the part of the score by which the first result is furthest ahead of the best
            relevant one.
        deficit: By how much, for each part of the score, the most first; what the relevant one is ahead in is negative.
    """

    query_id: str
    text: str
    rank: int | None
    channels: tuple[str, ...]
    reason: str
    deficit: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Moved:
    """A query that two systems answer differently well.

    Attributes:
        change: Of the measure, treatment − control.
    """

    change: float
    control: Diagnosis
    treatment: Diagnosis

    @property
    def why(self) -> str:
        """In words: from where to where the relevant result went, and what stands or stood in its way."""
        ranks = [str(one.rank or "not found") for one in (self.control, self.treatment)]
        held = self.treatment if self.change < 0.0 else self.control
        return f"{ranks[0]} → {ranks[1]}, {_reason(held)}"


def diagnose(answer: Answer, grades: Mapping[str, int], document_id: Callable[[str], str]) -> Diagnosis:
    """Why the best relevant result stands where it does."""
    best = next((one for one in answer.results if _is_right(one, grades, document_id)), None)
    query = {"query_id": answer.query.query_id, "text": answer.query.text}
    if best is None:
        return Diagnosis(**query, rank=None, channels=(), reason=MISSED, deficit={})
    channels = tuple(channel.value for channel in best.channels)
    if best.rank == 1:
        return Diagnosis(**query, rank=1, channels=channels, reason=RIGHT, deficit={})
    behind = deficit(answer.results[0], best)
    return Diagnosis(**query, rank=best.rank, channels=channels, reason=next(iter(behind)), deficit=behind)


def deficit(first: RankedResult, other: RankedResult) -> dict[str, float]:
    """By how much each part of the score puts one result ahead of another, the most first.

    The differences sum to that of the scores.
    """
    parts = [{part.name: part.amount for part in result.contributions} for result in (first, other)]
    ahead = {name: parts[0].get(name, 0.0) - parts[1].get(name, 0.0) for name in {**parts[0], **parts[1]}}
    return dict(sorted(ahead.items(), key=lambda item: (-item[1], item[0])))


def moved(
    changes: Mapping[str, float],
    control: Mapping[str, Diagnosis],
    treatment: Mapping[str, Diagnosis],
) -> list[Moved]:
    """Queries whose measure changed, the largest gain first."""
    changed = [Moved(change, control[name], treatment[name]) for name, change in changes.items() if change != 0.0]
    return sorted(changed, key=lambda one: (-one.change, one.control.query_id))


def diagnoses(answers: Iterable[Answer], qrels: Qrels, document_id: Callable[[str], str]) -> dict[str, Diagnosis]:
    """The diagnosis of every judged answer, by query id."""
    return {
        answer.query.query_id: diagnose(answer, qrels[answer.query.query_id], document_id)
        for answer in answers
        if answer.query.query_id in qrels
    }


def reasons(diagnoses: Iterable[Diagnosis]) -> dict[str, int]:
    """How many answers have each reason, the most frequent first."""
    counts: Sequence[tuple[str, int]] = Counter(one.reason for one in diagnoses).most_common()
    return dict(counts)


def _is_right(result: RankedResult, grades: Mapping[str, int], document_id: Callable[[str], str]) -> bool:
    return any(grades.get(document_id(uri), 0) > 0 for uri in result.uris)


def _reason(held: Diagnosis) -> str:
    if held.reason in (RIGHT, MISSED):
        return held.reason
    return f"behind by {held.reason.replace('_', ' ')} (+{held.deficit[held.reason]:.3f})"
