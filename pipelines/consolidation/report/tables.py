"""The tables of a night (CON-10): what the pictures show, in figures that sort and filter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from pipelines.consolidation.findings import Findings
from pipelines.consolidation.recalibrate import Measured
from pipelines.domain.documents import Domain
from pipelines.domain.ranking import Signal


def tables_of(findings: Findings) -> dict[str, pa.Table]:
    """Every table that the findings have rows for, by name."""
    measured = findings.recalibration
    found: dict[str, Sequence[Mapping[str, object]]] = {
        "weights": _weights(findings),
        "ageing": _ageing(findings),
        "calibration_bands": [*_bands("before", measured.before, True), *_bands("after", measured.after, True)],
        "calibration_bins": [*_bands("before", measured.before, False), *_bands("after", measured.after, False)],
        "retrieval": _retrieval(findings),
        "updaters": [{"partition": name, **counts} for name, counts in sorted(findings.counters.items())],
    }
    return {name: pa.Table.from_pylist([dict(row) for row in rows]) for name, rows in found.items() if rows}


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
