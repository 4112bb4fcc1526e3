"""Why a query was answered as it was: where the right result stands, and what put others before it; with pictures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from matplotlib.figure import Figure

from weft.domain.ranking import Answer, RankedResult
from weft.evaluation.measures.beir import Qrels

RIGHT = "right"
"""The reason of an answer whose first result is relevant."""

MISSED = "missed"
"""The reason of an answer without any relevant result: no channel found one."""

_GAIN, _LOSS, _PLAIN = "#0072B2", "#D55E00", "#767676"  # Okabe and Ito's palette, which colour-blind readers tell apart


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What one answer did with its query."""

    query_id: str
    text: str
    rank: int | None  # of the best relevant result, None where there is none
    channels: tuple[str, ...]  # the channels that found it
    # `RIGHT`, `MISSED`, or the part of the score by which the first result is furthest ahead of the best relevant
    # one
    reason: str
    # by how much, for each part of the score, the most first; what the relevant one is ahead in is negative
    deficit: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class ChangedQuery:
    """A query that two systems answer differently well."""

    change: float  # of the measure, treatment − control
    control: Diagnosis
    treatment: Diagnosis

    @property
    def why(self) -> str:
        """In words: from where to where the relevant result went, and what stands or stood in its way."""
        ranks = [str(one.rank or "not found") for one in (self.control, self.treatment)]
        worse = self.treatment if self.change < 0.0 else self.control
        reason = worse.reason
        if reason not in (RIGHT, MISSED):
            reason = f"behind by {reason.replace('_', ' ')} (+{worse.deficit[reason]:.3f})"
        return f"{ranks[0]} → {ranks[1]}, {reason}"


def diagnose(answer: Answer, grades: Mapping[str, int], document_id: Callable[[str], str]) -> Diagnosis:
    """Why the best relevant result stands where it does."""
    rights = (each for each in answer.results if any(grades.get(document_id(uri), 0) > 0 for uri in each.uris))
    best = next(rights, None)
    query = {"query_id": answer.query.query_id, "text": answer.query.text}
    if best is None:
        return Diagnosis(**query, rank=None, channels=(), reason=MISSED, deficit={})
    behind = {} if best.rank == 1 else deficit(answer.results[0], best)
    channels = tuple(channel.value for channel in best.channels)
    return Diagnosis(**query, rank=best.rank, channels=channels, reason=next(iter(behind), RIGHT), deficit=behind)


def deficit(first: RankedResult, other: RankedResult) -> dict[str, float]:
    """By how much each part of the score puts one result ahead of another, the most first.

    The differences sum to that of the scores.
    """
    parts = [{part.name: part.amount for part in result.contributions} for result in (first, other)]
    ahead = {name: parts[0].get(name, 0.0) - parts[1].get(name, 0.0) for name in {**parts[0], **parts[1]}}
    return dict(sorted(ahead.items(), key=lambda item: (-item[1], item[0])))


def changed_queries(
    changes: Mapping[str, float], control: Mapping[str, Diagnosis], treatment: Mapping[str, Diagnosis]
) -> list[ChangedQuery]:
    """Queries whose measure changed, the largest gain first."""
    changed = [
        ChangedQuery(change, control[name], treatment[name]) for name, change in changes.items() if change != 0.0
    ]
    return sorted(changed, key=lambda one: (-one.change, one.control.query_id))


def diagnoses(answers: Iterable[Answer], qrels: Qrels, document_id: Callable[[str], str]) -> dict[str, Diagnosis]:
    """The diagnosis of every judged answer, by query id."""
    judged = ((answer, qrels.get(answer.query.query_id)) for answer in answers)
    return {answer.query.query_id: diagnose(answer, some, document_id) for answer, some in judged if some is not None}


def reasons(diagnoses: Iterable[Diagnosis]) -> dict[str, int]:
    """How many answers have each reason, the most frequent first."""
    return dict(Counter(one.reason for one in diagnoses).most_common())


def draw_changes(by_query: Mapping[str, float], measure: str) -> Figure:
    """A picture of the change of every query that changed, the largest loss first."""
    changed = sorted(change for change in by_query.values() if change != 0.0)
    figure = Figure(figsize=(8.0, 3.2), layout="constrained", dpi=130)
    axes = figure.subplots()
    axes.bar(range(len(changed)), changed, width=1.0, color=[_GAIN if change > 0 else _LOSS for change in changed])
    axes.axhline(0.0, color="#4D4D4D", lw=1)
    axes.set(xlabel="queries that changed, in order of their change", ylabel=f"change of {measure}")
    gained, equal = sum(change > 0 for change in changed), len(by_query) - len(changed)
    axes.set_title(f"{gained} queries gain, {len(changed) - gained} lose, {equal} stay", loc="left")
    return figure


def draw_reasons(by_system: Mapping[str, Mapping[str, int]]) -> Figure:
    """A picture of how many answers of each system have each reason, the most frequent on top."""
    names = sorted(
        {name for counts in by_system.values() for name in counts},
        key=lambda name: -max(counts.get(name, 0) for counts in by_system.values()),
    )
    figure = Figure(figsize=(8.0, 1.2 + 0.42 * len(names)), layout="constrained", dpi=130)
    axes = figure.subplots()
    height = 0.8 / max(1, len(by_system))
    for place, (system, counts) in enumerate(by_system.items()):
        rows = [row + height * place for row in range(len(names))]
        colour = (_PLAIN, _GAIN, _LOSS)[place % 3]
        axes.barh(rows, [counts.get(name, 0) for name in names], height, color=colour, label=system)
    centre = height * (len(by_system) - 1) / 2.0
    axes.set_yticks([row + centre for row in range(len(names))], [name.replace("_", " ") for name in names])
    axes.invert_yaxis()
    axes.set(xlabel="queries")
    axes.set_title("What the first result is ahead by, where it is not the right one", loc="left")
    axes.legend(frameon=False)
    return figure
