"""Precision, recall and F1 of found spans, and the thresholds that maximise F1."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

Found = tuple[int, int, str, float]  # first word, last word, label, score
Gold = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class LabelCounts:
    """Counts of one label or source. Adding is merging."""

    hits: int = 0
    found: int = 0
    gold: int = 0

    def __add__(self, other: LabelCounts) -> LabelCounts:
        return LabelCounts(self.hits + other.hits, self.found + other.found, self.gold + other.gold)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall, 2 hits / (found + gold); 0 when nothing is there.

        Examples:
            >>> LabelCounts(hits=2, found=3, gold=5).f1
            0.5
        """
        total = self.found + self.gold
        return 2 * self.hits / total if total else 0.0

    @property
    def precision(self) -> float:
        """Share of the found spans that are right."""
        return self.hits / self.found if self.found else 0.0

    @property
    def recall(self) -> float:
        """Share of the gold spans that were found."""
        return self.hits / self.gold if self.gold else 0.0


@dataclass(frozen=True, slots=True)
class Judged:
    """One text: what was found at a low threshold, what is right, which labels count here."""

    found: tuple[Found, ...]
    gold: frozenset[Gold]
    labels: frozenset[str]


def tally(texts: Iterable[Judged], thresholds: Mapping[str, float], default: float) -> dict[str, LabelCounts]:
    """Exact-match counts by label.

    Args:
        texts: Texts with their findings; labels that do not count in a text are ignored there.
        thresholds: Least score by label, in [0, 1].
        default: Least score of a label without a threshold of its own.
    """
    counts: dict[str, LabelCounts] = {}
    for text in texts:
        kept = {(a, b, label) for a, b, label, score in text.found if score >= thresholds.get(label, default)}
        for label in text.labels:
            found = {span for span in kept if span[2] == label}
            gold = {span for span in text.gold if span[2] == label}
            counts[label] = counts.get(label, LabelCounts()) + LabelCounts(len(found & gold), len(found), len(gold))
    return counts


def micro(counts: Mapping[str, LabelCounts]) -> LabelCounts:
    """All labels together."""
    return sum(counts.values(), LabelCounts())


def precision_points(
    texts: Sequence[Judged], grid: Sequence[float], *, least_found: int
) -> dict[str, tuple[tuple[float, float], ...]]:
    """How much of what each label finds with at least a score is right, never less for a higher score.

    Args:
        texts: Texts with what was found at the lowest threshold of `grid`.
        grid: Scores to tell it for, ascending, in [0, 1].
        least_found: Finds below which a share is chance and is left out.
    """
    points: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    for threshold in grid:
        for label, count in sorted(tally(texts, {}, threshold).items()):
            if count.found >= least_found:
                before = points[label][-1][1] if points[label] else 0.0
                points[label].append((threshold, max(before, round(count.precision, 2))))
    return {label: tuple(found) for label, found in points.items()}


def best_thresholds(
    texts: Sequence[Judged], grid: Sequence[float], *, tolerance: float, least_gold: int
) -> dict[str, float]:
    """The threshold of `grid` for each label: the highest whose F1 comes within `tolerance` of the best.

    Highest, because a wrong entity stays in the graph while a missed one is mostly mentioned again.

    Args:
        texts: Texts with what was found at the lowest threshold of `grid`.
        grid: Thresholds to try, in [0, 1].
        tolerance: F1 that may be given up, in [0, 1].
        least_gold: Gold spans below which a label is left out, as its choice would be chance.
    """
    curves: defaultdict[str, dict[float, float]] = defaultdict(dict)
    for threshold in grid:
        for label, count in tally(texts, {}, threshold).items():
            if count.gold >= least_gold:
                curves[label][threshold] = count.f1
    return {
        label: max(threshold for threshold, f1 in curve.items() if f1 >= max(curve.values()) - tolerance)
        for label, curve in sorted(curves.items())
    }
