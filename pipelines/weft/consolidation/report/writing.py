"""Write a night's report: metrics, tables, pictures, the page of all of it, and a note for MLflow's own page.

Of a metric, the name begins with what it belongs to, and a slash follows: so MLflow draws them together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import pyarrow as pa
from matplotlib.figure import Figure

from weft.consolidation import figures
from weft.consolidation.improvement import Improvement, as_metrics
from weft.consolidation.night import NightContext, RunRecord, StepResult, When
from weft.consolidation.report.findings import MEASURES, NIGHTS, Findings, summary_of
from weft.consolidation.report.note import note_of
from weft.consolidation.report.page import page_of
from weft.consolidation.steps.lessons import LessonMeasures
from weft.domain.documents import Domain
from weft.domain.ranking import Signal
from weft.learning.calibration.reliability import Band
from weft.runtime.mlflow.runs import RecordedRun

PAGE = "report"
"""The name of the page among a run's artifacts."""

_EVENTS = ("consumed", "applied", "duplicate", "dead_lettered", "late")


class Summary(dict[str, Any]):
    """What a night came to, for machines."""


class Report:
    """Draws and writes the report of a night that published a version, or of a rehearsal that published nothing."""

    name: ClassVar[str] = "report"
    says: ClassVar[str] = "drawing and writing the report"
    when: ClassVar[When] = When.JUDGED

    def run(self, context: NightContext) -> StepResult:
        """See `NightStep`."""
        findings = Findings.of(context, context.night.recorded(limit=NIGHTS))
        report(context.page, findings)
        return StepResult(outcome=Summary({**summary_of(findings), "run": context.page.run_id or None}))


def report(page: RunRecord, findings: Findings) -> None:
    """Write a report; the note comes last, so that what it promises is there."""
    metrics = metrics_of(findings)
    outcome = {"learned": findings.version or "", "decision": findings.verdict.decision.value}
    findings = replace(findings, nights=[RecordedRun(findings.now, metrics, outcome), *findings.nights])
    page.metrics(metrics, now=findings.now)
    page.parameters(outcome)
    for name, table in tables_of(findings).items():
        page.table(f"tables/{name}", table)
    pictures = pictures_of(findings)
    for name, picture in pictures.items():
        page.picture(f"pictures/{name}", picture)
    page.page(PAGE, page_of(findings, pictures).html())
    page.document("summary", summary_of(findings))
    page.note(note_of(findings))


def pictures_of(findings: Findings) -> Mapping[str, str]:
    """The pictures that the findings have something for, by name, as SVG: drawn once for the run and its page."""
    pictures: dict[str, Figure] = {
        "weights": figures.weights(findings.weights_after, findings.weights_before),
        "movers": figures.movers(findings.moved),
        "ageing": figures.ageing(findings.ageing),
    }
    before, after = findings.recalibration.before, findings.recalibration.after
    if before is not None and after is not None:
        pictures["reliability"] = figures.reliability(before, after)
    if findings.improvements:
        pictures["retrieval"] = figures.retrieval(findings.improvements)
    if len(findings.nights) > 1:
        pictures["nights"] = figures.nights(findings.nights[::-1])
    return {name: figures.as_svg(figure) for name, figure in pictures.items()}


def metrics_of(findings: Findings) -> dict[str, float]:
    """Every figure of a night by name, such as `weights/code/vector`, `ndcg_at_10/before`, `steps/merge/proposed`."""
    observed, counts = findings.candidate.observations, findings.counters.values()
    events = {name: sum(each.get(name, 0) for each in counts) for name in _EVENTS} if counts else {}
    weights = {
        f"{domain.value}/{signal.value}": belief.mean
        for domain, beliefs in findings.weights_after.items()
        for signal, belief in beliefs.items()
    }
    lessons = next(
        (each.outcome for each in findings.results.values() if isinstance(each.outcome, LessonMeasures)), None
    )
    errors = {
        f"{name}/{when}": float(getattr(one.measures, name)) for name in MEASURES for when, one in findings.measured
    }
    return {
        **_named("calibration", errors),
        **_named("gate", findings.verdict.figures),
        **_named("observations", {"all": observed["observations"], "new": observed["observations_new"]}),
        **_named("weights", weights),
        **as_metrics(findings.improvements),
        **_named("lessons", lessons or {}),
        **_named("events", events),
        **{f"steps/{step}/{name}": value for step, counts in findings.steps.items() for name, value in counts.items()},
    }


def _named(group: str, figures: Mapping[str, float]) -> dict[str, float]:
    return {f"{group}/{name}": value for name, value in figures.items()}


def tables_of(findings: Findings) -> dict[str, pa.Table]:
    """Every table that the findings have rows for, by name."""
    rows_by_table: dict[str, Sequence[Mapping[str, object]]] = {
        "weights": _weights(findings),
        "ageing": _ageing(findings),
        "calibration_bands": [row for when, one in findings.measured for row in _bands(when, one.bands)],
        "calibration_bins": [row for when, one in findings.measured for row in _bands(when, one.diagram)],
        "retrieval": _retrieval(findings),
        "fit": _fitted(findings),
        **{name: result.examples for name, result in findings.results.items()},
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
