"""Two runs over the same queries: the difference, paired by query, and how much it can be relied on (EVA-1, EVA-10)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weft.evaluation.measures.beir import Qrels
from weft.evaluation.measures.metrics import Estimate, PerQuery, estimate, measure
from weft.evaluation.measures.runs import Run
from weft.evaluation.measures.significance import (
    EvidenceStrength,
    Half,
    of_half,
    randomisation_p,
    smallest_effect,
    strength_of,
    unjudged,
)
from weft.evaluation.settings import EvaluationSettings

UNJUDGED_DEPTH = 10
"""Ranks of which the share without a judgement is reported: those of the headline measure."""

HEADLINE = "ndcg_at_10"
"""The measure that halves, movers and ablations are told in."""


@dataclass(frozen=True, slots=True)
class Difference:
    """How much better a treatment is than a control."""

    change: Estimate  # mean of treatment − control over queries, with its interval
    better: int  # Queries on which the treatment is better or worse; the rest are equal
    worse: int
    p: float  # two-sided p-value of the paired randomisation test
    detectable: float  # the least true change that this sample would probably have shown
    # whether the interval of the change leaves 0 out, and p says so, too: resamples of a few queries lie between
    # these, so that any two that both gain leave 0 out
    significant: bool

    def as_json(self) -> dict[str, Any]:
        """For machines; a sample of one query can detect nothing, which JSON has no number for."""
        return {
            "change": self.change.mean,
            "interval": [self.change.low, self.change.high],
            "p": self.p,
            "smallest_detectable": self.detectable if self.detectable < float("inf") else None,
            "better": self.better,
            "worse": self.worse,
        }


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Everything that two runs over one data set say about one another."""

    control: PerQuery  # Every measure of both, by query
    treatment: PerQuery
    differences: Mapping[str, Difference]  # by measure
    # the headline measure on either half of the queries: what was tuned on one has to hold on the other
    halves: Mapping[Half, Difference]
    strength: EvidenceStrength  # what a comparison over so many queries may be called
    unjudged: tuple[float, float]  # share of the first results that nobody judged, of control and treatment

    @property
    def changes(self) -> dict[str, float]:
        """Change of the headline measure by query id, the largest loss first."""
        before, after = self.control[HEADLINE], self.treatment[HEADLINE]
        moved = {query_id: after[query_id] - before[query_id] for query_id in before}
        return dict(sorted(moved.items(), key=lambda item: (item[1], item[0])))


def compare(control: Mapping[str, float], treatment: Mapping[str, float], settings: EvaluationSettings) -> Difference:
    """Compare one measure of two runs.

    Pairing by query takes out what makes queries hard for both, so that the interval is that of the change alone.

    Raises:
        ValueError: The runs were not measured on the same queries.
    """
    if control.keys() != treatment.keys():
        odd = sorted(control.keys() ^ treatment.keys())
        raise ValueError(f"expected both runs on the same queries, found {len(odd)} in one only, such as {odd[:3]}")
    changes = [treatment[query_id] - control[query_id] for query_id in sorted(control)]
    p = randomisation_p(changes, seed=settings.seed)
    change = estimate(changes, settings)
    return Difference(
        change=change,
        better=sum(change > 0.0 for change in changes),
        worse=sum(change < 0.0 for change in changes),
        p=p,
        detectable=smallest_effect(changes, level=settings.interval),
        significant=(change.low > 0.0 or change.high < 0.0) and p <= 1.0 - settings.interval,
    )


def compare_runs(control: Run, treatment: Run, qrels: Qrels, settings: EvaluationSettings) -> RunComparison:
    """Compare two runs on every judged query; one that a run lacks counts 0 there.

    Raises:
        ValueError: There are no judged queries.
    """
    before, after = measure(control, qrels), measure(treatment, qrels)
    return RunComparison(
        control=before,
        treatment=after,
        differences={name: compare(before[name], after[name], settings) for name in before},
        halves=compare_halves(before[HEADLINE], after[HEADLINE], settings),
        strength=strength_of(len(qrels)),
        unjudged=(unjudged(control, qrels, UNJUDGED_DEPTH), unjudged(treatment, qrels, UNJUDGED_DEPTH)),
    )


def compare_halves(
    control: Mapping[str, float], treatment: Mapping[str, float], settings: EvaluationSettings
) -> dict[Half, Difference]:
    """The difference on either half of the queries; a half without queries is left out."""
    halves = {half: (of_half(control, half, settings.seed), of_half(treatment, half, settings.seed)) for half in Half}
    return {half: compare(before, after, settings) for half, (before, after) in halves.items() if before}
