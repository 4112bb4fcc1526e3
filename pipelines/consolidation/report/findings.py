"""What a night found: one value behind its report, and the tables of it (CON-10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pipelines.consolidation.candidate import Proposal
from pipelines.consolidation.gate import GateVerdict, WeightMove, Weights, moves, weights_of
from pipelines.consolidation.night import Metrics, Night
from pipelines.consolidation.recalibrate import Measured, Recalibration
from pipelines.domain.documents import Domain
from pipelines.domain.ranking import Signal
from pipelines.learning.beliefs import Beliefs

HOURS_PER_YEAR = 24.0 * 365.0
_OLDEST_YEARS = 10.0
_AGES = np.concatenate([[0.0], np.geomspace(1.0, _OLDEST_YEARS * HOURS_PER_YEAR, 200)])


@dataclass(frozen=True, slots=True)
class Curve:
    """How a domain is believed to age.

    Attributes:
        age_hours: Ascending, the first is 0.
        freshness: Posterior mean of e^(−λ·age), from 1 downwards.
        half_life_hours: The age at which it is one half; infinity where no age shown reaches it.
    """

    age_hours: Sequence[float]
    freshness: Sequence[float]
    half_life_hours: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """Everything a night's report rests on.

    Attributes:
        before, after: What the live version and the candidate make be believed, read at the same time.
        retrieval: Measured before and after, where something measures it.
        counters: What the updaters did with their records, by partition.
    """

    candidate: Proposal
    before: Beliefs
    after: Beliefs
    recalibration: Recalibration
    verdict: GateVerdict
    retrieval: tuple[Metrics, Metrics] | None
    counters: Mapping[str, Mapping[str, int]]

    @classmethod
    def of(
        cls,
        night: Night,
        candidate: Proposal,
        *,
        before: Beliefs,
        after: Beliefs,
        recalibration: Recalibration,
        verdict: GateVerdict,
    ) -> Findings:
        """What the steps gave, and retrieval measured where the night can."""
        measure = night.evaluate
        return cls(
            candidate=candidate,
            before=before,
            after=after,
            recalibration=recalibration,
            verdict=verdict,
            retrieval=None if measure is None else (measure(candidate.former), measure(candidate.base)),
            counters=night.counters,
        )

    @property
    def weights_before(self) -> Weights:
        """The weights of the live version."""
        return weights_of(self.before)

    @property
    def weights_after(self) -> Weights:
        """The weights of the candidate."""
        return weights_of(self.after)

    @property
    def moves(self) -> list[WeightMove]:
        """Every weight's change, the largest first."""
        return moves(self.weights_before, self.weights_after)

    @property
    def ageing(self) -> Mapping[Domain, Curve]:
        """How each domain is believed to age."""
        return {domain: _curve(self.after, domain) for domain in Domain}


def _curve(beliefs: Beliefs, domain: Domain) -> Curve:
    freshness = beliefs.freshness_many(domain, _AGES)
    half = float(np.interp(-0.5, -freshness, _AGES)) if freshness[-1] <= 0.5 else float("inf")
    return Curve(_AGES.tolist(), freshness.tolist(), half)


def tables_of(findings: Findings) -> dict[str, pa.Table]:
    """Every table that the findings have rows for, by name."""
    measured = findings.recalibration
    rows_by_table: dict[str, Sequence[Mapping[str, object]]] = {
        "weights": _weights(findings),
        "ageing": _ageing(findings),
        "calibration_bands": [*_bands("before", measured.before, True), *_bands("after", measured.after, True)],
        "calibration_bins": [*_bands("before", measured.before, False), *_bands("after", measured.after, False)],
        "retrieval": _retrieval(findings),
        "updaters": [{"partition": name, **counts} for name, counts in sorted(findings.counters.items())],
    }
    return {name: pa.Table.from_pylist([dict(row) for row in rows]) for name, rows in rows_by_table.items() if rows}


def _weights(findings: Findings) -> list[Mapping[str, object]]:
    before, after = findings.weights_before, findings.weights_after
    rows: list[Mapping[str, object]] = []
    for domain in Domain:
        for signal in Signal:
            now, past = after[domain][signal], before[domain][signal].mean
            rows.append(
                {
                    "domain": domain.value,
                    "signal": signal.value,
                    "weight": now.mean,
                    "low_90": now.low,
                    "high_90": now.high,
                    "live_version": past,
                    "change": now.mean - past,
                    "observations": now.n_effective,
                    "level": now.level,
                }
            )
    return rows


def _ageing(findings: Findings) -> list[Mapping[str, object]]:
    days = {"after_1_day": 1, "after_1_week": 7, "after_1_month": 30, "after_1_year": 365}
    return [
        {
            "domain": domain.value,
            "half_life_days": curve.half_life_hours / 24.0,
            **{name: findings.after.freshness(domain, 24.0 * age) for name, age in days.items()},
        }
        for domain, curve in findings.ageing.items()
    ]


def _bands(when: str, measured: Measured | None, acted_on: bool) -> list[Mapping[str, object]]:
    if measured is None:
        return []
    return [
        {
            "calibration": when,
            "from": band.lower,
            "to": band.upper,
            "predicted": band.predicted,
            "observed": band.observed,
            "low_90": band.low,
            "high_90": band.high,
            "deviation": band.deviation,
            "observations": band.observations,
            "enough": band.sufficient,
        }
        for band in (measured.bands if acted_on else measured.diagram)
    ]


def _retrieval(findings: Findings) -> list[Mapping[str, object]]:
    if findings.retrieval is None:
        return []
    before, after = findings.retrieval
    return [
        {"metric": name, "before": before[name], "after": after[name], "change": after[name] - before[name]}
        for name in sorted(after)
        if name in before
    ]
