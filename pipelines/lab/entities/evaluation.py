"""Measure a recogniser on annotated sentences, by source under its own labels and under ours; choose its thresholds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from lab.entities.labels import SOFTWARE, SOURCES, TECHNOLOGY, collapse
from lab.entities.sampling import inventory
from lab.entities.sentences import Sentence
from weft.domain.chunks import Mention

GRID = tuple(step / 100 for step in range(10, 95, 5))  # thresholds tried
LOWEST = GRID[0]
TOLERANCE = 0.01  # of F1, given up for fewer wrong finds
LEAST_PREDICTED = 10  # finds that tell a precision
LEAST_GOLD = 50  # annotated mentions that a label needs for a threshold of its own
EITHER = f"{SOFTWARE} or {TECHNOLOGY}"
MOST_LABELS = 25  # of a source, the commonest: a prompt of all 55 labels of one source leaves no room for text

ScoreComponents = tuple[int, int, str, float]  # first word, last word, label, score
Gold = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class LabelCounts:
    """Counts of one label or source. Adding is merging."""

    hits: int = 0
    predicted: int = 0
    gold: int = 0

    def __add__(self, other: LabelCounts) -> LabelCounts:
        return LabelCounts(self.hits + other.hits, self.predicted + other.predicted, self.gold + other.gold)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall, 2 hits / (predicted + gold); 0 when nothing is there.

        Examples:
            >>> LabelCounts(hits=2, predicted=3, gold=5).f1
            0.5
        """
        total = self.predicted + self.gold
        return 2 * self.hits / total if total else 0.0

    @property
    def precision(self) -> float:
        """Share of the found spans that are right."""
        return self.hits / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        """Share of the gold spans that were found."""
        return self.hits / self.gold if self.gold else 0.0


@dataclass(frozen=True, slots=True)
class Judged:
    """One text: what was predicted at a low threshold, what is right, which labels count here."""

    predicted: tuple[ScoreComponents, ...]
    gold: frozenset[Gold]
    labels: frozenset[str]


def tally(texts: Iterable[Judged], thresholds: Mapping[str, float], default: float) -> dict[str, LabelCounts]:
    """Exact-match counts by label."""
    counts: dict[str, LabelCounts] = {}
    for text in texts:
        spans = {(a, b, label) for a, b, label, score in text.predicted if score >= thresholds.get(label, default)}
        for label in text.labels:
            predicted, gold = ({span for span in each if span[2] == label} for each in (spans, text.gold))
            count = LabelCounts(len(predicted & gold), len(predicted), len(gold))
            counts[label] = counts.get(label, LabelCounts()) + count
    return counts


def micro(counts: Mapping[str, LabelCounts]) -> LabelCounts:
    """All labels together."""
    return sum(counts.values(), LabelCounts())


def precision_points(
    texts: Sequence[Judged], grid: Sequence[float], *, least_predicted: int
) -> dict[str, tuple[tuple[float, float], ...]]:
    """How much of what each label finds with at least a score is right, never less for a higher score."""
    points: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    for threshold in grid:
        for label, count in sorted(tally(texts, {}, threshold).items()):
            if count.predicted >= least_predicted:
                before = points[label][-1][1] if points[label] else 0.0
                points[label].append((threshold, max(before, round(count.precision, 2))))
    return {label: tuple(each) for label, each in points.items()}


def best_thresholds(
    texts: Sequence[Judged], grid: Sequence[float], *, tolerance: float, least_gold: int
) -> dict[str, float]:
    """The threshold of `grid` for each label: the highest whose F1 comes within `tolerance` of the best.

    Highest, because a wrong entity stays in the graph while a missed one is mostly mentioned again.
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


class Recogniser(Protocol):
    """Finds mentions in texts, asked once per source."""

    def __call__(self, texts: Sequence[str], labels: Sequence[str]) -> list[list[Mention]]:
        """Mentions with a score of at least `LOWEST`, without overlaps."""


@dataclass(frozen=True, slots=True)
class ExtractionReport:
    """What was measured."""

    thresholds: Mapping[str, float]  # chosen threshold by our label, in [0, 1]
    labels: Mapping[str, LabelCounts]  # counts by our label at those thresholds
    either: LabelCounts  # counts of software and technology as one label
    sources: Mapping[str, LabelCounts]  # counts by source under the source's own labels at `default`
    default: float  # the threshold without a choice
    # precision of finds with at least a score, by our label, as points (score, precision)
    confidences: Mapping[str, Sequence[tuple[float, float]]]
    # counts by source that was not trained on, under the source's own labels at `default`
    unseen: Mapping[str, LabelCounts]


def measure(
    recogniser: Recogniser,
    sentences: Mapping[str, Sequence[Sentence]],
    labels: Sequence[str],
    *,
    default: float,
    unseen: Mapping[str, Sequence[Sentence]],
) -> ExtractionReport:
    """Measure on `sentences`, choosing the threshold of each of `labels` on them; and on sources never trained on."""
    ours = [
        text for name in sentences if SOURCES[name].collapses for text in _ours(recogniser, sentences[name], labels)
    ]
    thresholds = best_thresholds(ours, GRID, tolerance=TOLERANCE, least_gold=LEAST_GOLD)
    merged = [_merged(text, thresholds, default) for text in ours]

    def by_source(texts: Mapping[str, Sequence[Sentence]]) -> dict[str, LabelCounts]:
        return {name: micro(tally(_theirs(recogniser, each), {}, default)) for name, each in texts.items()}

    return ExtractionReport(
        thresholds=thresholds,
        labels=tally(ours, thresholds, default),
        either=tally(merged, {}, 0.0).get(EITHER, LabelCounts()),
        sources=by_source(sentences),
        default=default,
        confidences=precision_points(ours, GRID, least_predicted=LEAST_PREDICTED),
        unseen=by_source(unseen),
    )


def _ours(recogniser: Recogniser, sentences: Sequence[Sentence], labels: Sequence[str]) -> list[Judged]:
    covered = frozenset(labels) & {_asked(label, labels) for label in inventory(sentences)}
    gold = [
        frozenset((a, b, kind) for a, b, label in sentence.spans if (kind := _asked(label, labels)) is not None)
        for sentence in sentences
    ]
    # All labels are offered, as they are at run time; those the source does not annotate are not judged.
    return _judged(recogniser, sentences, labels, gold, covered)


def _asked(label: str, labels: Sequence[str]) -> str | None:
    """Our label for a source's, with software standing in for technology where only one of them is asked for."""
    kind = collapse(label)
    twin = {SOFTWARE: TECHNOLOGY, TECHNOLOGY: SOFTWARE}.get(kind or "")
    return twin if kind not in labels and twin in labels else kind


def _theirs(recogniser: Recogniser, sentences: Sequence[Sentence]) -> list[Judged]:
    counts = tally((Judged((), frozenset(s.spans), frozenset(x for *_, x in s.spans)) for s in sentences), {}, 0.0)
    labels = sorted(counts, key=lambda label: (-counts[label].gold, label))[:MOST_LABELS]
    gold = [frozenset(span for span in sentence.spans if span[2] in labels) for sentence in sentences]
    return _judged(recogniser, sentences, labels, gold, frozenset(labels))


def _judged(
    recogniser: Recogniser,
    sentences: Sequence[Sentence],
    labels: Sequence[str],
    gold: Sequence[frozenset[Gold]],
    covered: frozenset[str],
) -> list[Judged]:
    predicted = recogniser([" ".join(sentence.words) for sentence in sentences], labels)
    return [
        Judged(tuple(in_words(sentence.words, mentions)), right, covered)
        for sentence, mentions, right in zip(sentences, predicted, gold, strict=True)
    ]


def in_words(words: Sequence[str], mentions: Iterable[Mention]) -> list[ScoreComponents]:
    """Mentions of `" ".join(words)` by the words they start and end at.

    Examples:
        >>> in_words(["in", "New", "York"], [Mention(3, 11, "New York", "location", 0.9)])
        [(1, 2, 'location', 0.9)]
    """
    starts: dict[int, int] = {}
    ends: dict[int, int] = {}
    position = 0
    for index, word in enumerate(words):
        starts[position], ends[position + len(word)] = index, index
        position += len(word) + 1
    return [(starts[m.start], ends[m.end], m.label, m.score) for m in mentions if m.start in starts and m.end in ends]


def _merged(text: Judged, thresholds: Mapping[str, float], default: float) -> Judged:
    """Software and technology as one label, after each has passed its own threshold."""
    pair = (SOFTWARE, TECHNOLOGY)
    predicted = tuple(
        (a, b, EITHER, score)
        for a, b, label, score in text.predicted
        if label in pair and score >= thresholds.get(label, default)
    )
    gold = frozenset((a, b, EITHER) for a, b, label in text.gold if label in pair)
    return Judged(predicted, gold, frozenset({EITHER}) if text.labels & set(pair) else frozenset())
