"""Measures of a run against judgements, by ir-measures, each with a bootstrap interval (EVA-1)."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from weft.evaluation.measures.beir import Qrels
from weft.evaluation.measures.runs import Ranked, Run, order_of
from weft.evaluation.settings import BOOTSTRAP_DRAWS, EvaluationSettings
from weft.runtime.extras import extras_named

MEASURES: Mapping[str, str] = MappingProxyType(
    {
        "ndcg_at_10": "nDCG@10",
        "mrr_at_5": "RR@5",
        "mrr_at_10": "RR@10",
        "recall_at_20": "R@20",
        "recall_at_100": "R@100",
        "hit_rate_at_1": "Success@1",
        "map": "AP",
    }
)
"""Measure, as ir-measures spells it, by the name it is reported under.

nDCG counts grades as gains; the others any grade from 1 as relevant.
"""

PerQuery = Mapping[str, Mapping[str, float]]
"""Value by query id, by name of the measure."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over queries and the interval that resampling the queries gives it."""

    mean: float
    low: float
    high: float


def measure(run: Run, qrels: Qrels) -> PerQuery:
    """Every measure for every judged query; a query without results has 0.

    All measures see one order, `order_of`'s: the libraries behind them break ties in different ways.
    """
    with extras_named():
        ir_measures = pkgutil.resolve_name("ir_measures")  # who looks at a query log does without

    values = {name: dict.fromkeys(qrels, 0.0) for name in MEASURES}
    names = {ir_measures.parse_measure(stated): name for name, stated in MEASURES.items()}
    ordered = {query_id: _untied(ranked) for query_id, ranked in run.items()}
    for metric in ir_measures.iter_calc(list(names), qrels, ordered):
        values[names[metric.measure]][metric.query_id] = float(metric.value)
    return values


def _untied(ranked: Ranked) -> Ranked:
    return {document_id: -float(rank) for rank, document_id in enumerate(order_of(ranked))}


def estimates(measured: PerQuery, settings: EvaluationSettings) -> dict[str, Estimate]:
    """Mean and interval of every measure."""
    return {name: estimate(list(values.values()), settings) for name, values in measured.items()}


def estimate(values: Sequence[float], settings: EvaluationSettings) -> Estimate:
    """Mean of values with a percentile bootstrap interval (Efron, Annals of Statistics 1979).

    Raises:
        ValueError: There is nothing to take the mean of.
    """
    if not values:
        raise ValueError("expected the values of at least one query, got none")
    sample = np.asarray(values, dtype=np.float64)
    rng = np.random.default_rng(settings.seed)
    means = sample[rng.integers(0, len(sample), size=(BOOTSTRAP_DRAWS, len(sample)))].mean(axis=1)
    tail = (1.0 - settings.interval) / 2.0
    low, high = np.quantile(means, [tail, 1.0 - tail])
    return Estimate(float(sample.mean()), float(low), float(high))
