"""Measure a recogniser on annotated sentences: by source under its own labels, and under ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pipelines.domain.entities import Mention
from pipelines.extraction.training.labels import SOFTWARE, SOURCES, TECHNOLOGY, collapse
from pipelines.extraction.training.metrics import (
    Found,
    Gold,
    Judged,
    LabelCounts,
    best_thresholds,
    micro,
    precision_points,
    tally,
)
from pipelines.extraction.training.sampling import Sentence, inventory

GRID = tuple(step / 100 for step in range(10, 95, 5))  # thresholds tried
LOWEST = GRID[0]
TOLERANCE = 0.01  # of F1, given up for fewer wrong finds
LEAST_FOUND = 10  # finds that tell a precision
LEAST_GOLD = 50  # annotated mentions that a label needs for a threshold of its own
EITHER = f"{SOFTWARE} or {TECHNOLOGY}"
MOST_LABELS = 25  # of a source, the commonest: a prompt of all 55 labels of one source leaves no room for text


class Recogniser(Protocol):
    """Finds mentions in texts, asked once per source."""

    def __call__(self, texts: Sequence[str], labels: Sequence[str]) -> list[list[Mention]]:
        """Mentions with a score of at least `LOWEST`, without overlaps."""


@dataclass(frozen=True, slots=True)
class ExtractionReport:
    """What was measured.

    Attributes:
        thresholds: Chosen threshold by our label, in [0, 1].
        labels: Counts by our label at those thresholds.
        either: Counts of software and technology as one label.
        sources: Counts by source under the source's own labels at `default`.
        default: The threshold without a choice.
        confidences: Precision of finds with at least a score, by our label, as points (score, precision).
        unseen: Counts by source that was not trained on, under the source's own labels at `default`.
    """

    thresholds: Mapping[str, float]
    labels: Mapping[str, LabelCounts]
    either: LabelCounts
    sources: Mapping[str, LabelCounts]
    default: float
    confidences: Mapping[str, Sequence[tuple[float, float]]]
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
        return {name: micro(tally(_theirs(recogniser, found), {}, default)) for name, found in texts.items()}

    return ExtractionReport(
        thresholds=thresholds,
        labels=tally(ours, thresholds, default),
        either=tally(merged, {}, 0.0).get(EITHER, LabelCounts()),
        sources=by_source(sentences),
        default=default,
        confidences=precision_points(ours, GRID, least_found=LEAST_FOUND),
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
    found = recogniser([" ".join(sentence.words) for sentence in sentences], labels)
    return [
        Judged(tuple(in_words(sentence.words, mentions)), right, covered)
        for sentence, mentions, right in zip(sentences, found, gold, strict=True)
    ]


def in_words(words: Sequence[str], mentions: Iterable[Mention]) -> list[Found]:
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
    found = tuple(
        (a, b, EITHER, score)
        for a, b, label, score in text.found
        if label in pair and score >= thresholds.get(label, default)
    )
    gold = frozenset((a, b, EITHER) for a, b, label in text.gold if label in pair)
    return Judged(found, gold, frozenset({EITHER}) if text.labels & set(pair) else frozenset())
