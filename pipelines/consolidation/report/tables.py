"""The tables of a night, which a spreadsheet opens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from pipelines.consolidation.improvement import Improvement
from pipelines.consolidation.report.examples import examples_of
from pipelines.consolidation.report.findings import Findings
from pipelines.domain.documents import Domain
from pipelines.domain.ranking import Signal
from pipelines.learning.calibration.reliability import Band


def tables_of(findings: Findings) -> dict[str, pa.Table]:
    """Every table that the findings have rows for, by name."""
    rows_by_table: dict[str, Sequence[Mapping[str, object]]] = {
        "weights": _weights(findings),
        "ageing": _ageing(findings),
        "calibration_bands": [row for when, one in findings.measured for row in _bands(when, one.bands)],
        "calibration_bins": [row for when, one in findings.measured for row in _bands(when, one.diagram)],
        "retrieval": _retrieval(findings),
        "fit": _fitted(findings),
        **examples_of(findings),
        "updaters": [{"partition": name, **counts} for name, counts in sorted(findings.counters.items())],
    }
    return {name: pa.Table.from_pylist([dict(row) for row in rows]) for name, rows in rows_by_table.items() if rows}


def _weights(findings: Findings) -> list[Mapping[str, object]]:
    before, after = findings.weights_before, findings.weights_after
    rows = ((domain, signal, after[domain][signal], before[domain][signal]) for domain in Domain for signal in Signal)
    return [
        {
            "domain": domain.value,
            "signal": signal.value,
            "weight": now.mean,
            "low_90": now.low,
            "high_90": now.high,
            "live_version": past.mean,
            "change": now.mean - past.mean,
            "observations": now.n_effective,
            "level": now.level,
        }
        for domain, signal, now, past in rows
    ]


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


def _bands(when: str, bands: Sequence[Band]) -> list[Mapping[str, object]]:
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
        for band in bands
    ]


def _fitted(findings: Findings) -> list[Mapping[str, object]]:
    """Where the fit and counting disagree, signal by signal."""
    return [
        {"domain": domain.value, "signal": signal.value, "fitted": fitted, "counted": counted, "live": one.wins}
        for domain, one in findings.fitting.contests.items()
        for signal, fitted, counted in zip(
            one.fit.signals, one.fit.shares.tolist(), one.fit.counted.tolist(), strict=True
        )
    ]


def _retrieval(findings: Findings) -> list[Mapping[str, object]]:
    return [
        {
            "questions": one.source.value,
            "metric": one.measure,
            "number": one.questions,
            **{f"{name}{part}": value for name, interval in _intervals(one) for part, value in interval.items()},
            "significant": one.significant,
        }
        for one in findings.improvements
    ]


def _intervals(one: Improvement) -> Iterator[tuple[str, Mapping[str, float]]]:
    for name, interval in (("before", one.before), ("after", one.after), ("change", one.change)):
        yield name, {"": interval.mean, "_low": interval.low, "_high": interval.high}
