"""Two runs over the same queries: the difference, paired by query (EVA-1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pipelines.evaluation.metrics import Estimate, estimate
from pipelines.evaluation.settings import EvaluationSettings


@dataclass(frozen=True, slots=True)
class Difference:
    """How much better a treatment is than a control.

    Attributes:
        change: Mean of treatment − control over queries, with its interval.
        better, worse: Queries on which the treatment is better or worse; the rest are equal.
    """

    change: Estimate
    better: int
    worse: int

    @property
    def significant(self) -> bool:
        """Whether the interval of the change leaves 0 out."""
        return self.change.low > 0.0 or self.change.high < 0.0


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
    return Difference(
        change=estimate(changes, settings),
        better=sum(change > 0.0 for change in changes),
        worse=sum(change < 0.0 for change in changes),
    )
