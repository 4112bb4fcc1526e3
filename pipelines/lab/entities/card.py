"""The model card, from what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template

from lab.entities.evaluation import EITHER, MOST_LABELS, ExtractionReport, LabelCounts, micro

NAME = "weft-ner-minilm"
LONGEST_NAME = 8  # words

_TEMPLATE = Path(__file__).with_name("card.md")


@dataclass(frozen=True, slots=True)
class CardFacts:
    """What a card states beside the report."""

    size: int  # bytes of the checkpoint
    speed: float  # texts per second of processor time
    threads: int  # threads that speed was measured with
    offered: int  # labels that speed was measured with
    training: str  # the settings of the run, one sentence
    mentions: str  # how much data took part, one sentence


def card(report: ExtractionReport, facts: CardFacts) -> str:
    """The card's text."""
    return Template(_TEMPLATE.read_text(encoding="utf-8")).substitute(
        name=NAME,
        size=f"{facts.size / 1e6:.1f}",
        labels=_labels(report),
        sources=_sources(report.sources),
        unseen=_sources({**report.unseen, "together": micro(report.unseen)}),
        most=MOST_LABELS,
        default=report.default,
        speed=f"{facts.speed:.0f}",
        threads=facts.threads,
        offered=facts.offered,
        width=LONGEST_NAME,
        training=facts.training,
        mentions=facts.mentions,
    )


def _labels(report: ExtractionReport) -> str:
    judged = {label: count for label, count in report.labels.items() if count.gold}
    rows = [
        [label, f"{report.thresholds.get(label, report.default):.2f}", *_figures(count)]
        for label, count in sorted(judged.items(), key=lambda item: -item[1].f1)
    ]
    rows.append([EITHER, "as above", *_figures(report.either)])
    return _table(["label", "threshold", "precision", "recall", "F1", "mentions"], rows)


def _sources(sources: Mapping[str, LabelCounts]) -> str:
    ordered = sorted(sources.items(), key=lambda item: -item[1].f1)
    return _table(["source", "precision", "recall", "F1", "mentions"], [[name, *_figures(c)] for name, c in ordered])


def _figures(count: LabelCounts) -> list[str]:
    return [*(f"{100 * value:.1f}" for value in (count.precision, count.recall, count.f1)), str(count.gold)]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
