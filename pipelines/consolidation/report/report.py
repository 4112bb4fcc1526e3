"""A night's report (CON-10): pictures, tables and a page of words that need no other tool to be reviewed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from matplotlib.figure import Figure

from pipelines.consolidation.gate import Decision
from pipelines.consolidation.night import RunRecord
from pipelines.consolidation.recalibrate import Recalibration, unreliable
from pipelines.consolidation.report import figures
from pipelines.consolidation.report.findings import Findings, tables_of
from pipelines.consolidation.settings import ConsolidationSettings
from pipelines.domain.ids import LearnedVersion

TOP_MOVERS = 12
"""Rows in the picture of what moved most."""

_FATES = {
    Decision.SAFE: "goes live",
    Decision.MONITORED: "goes live; it moved enough to deserve a look",
    Decision.REVIEW: "waits as **challenger** until someone moves the alias **champion** to it",
}


@dataclass(frozen=True, slots=True)
class NightReport:
    """What is shown of a night, ready to be written."""

    note: str
    metrics: Mapping[str, float]
    tables: Mapping[str, pa.Table]
    pictures: Mapping[str, Figure]
    summary: Mapping[str, Any]

    def write(self, page: RunRecord, *, now: float) -> None:
        """Write everything; the page's top last, so that what it promises is there."""
        page.metrics(self.metrics, now=now)
        for name, table in self.tables.items():
            page.table(f"tables/{name}", table)
        for name, picture in self.pictures.items():
            page.figure(f"pictures/{name}", picture)
        page.document("summary", self.summary)
        page.note(self.note)


def report(findings: Findings, version: LearnedVersion | None, settings: ConsolidationSettings) -> NightReport:
    """The report of a night that published `version`, or of a rehearsal that published nothing."""
    return NightReport(
        note=_note(findings, version, settings),
        metrics=_metrics(findings),
        tables=tables_of(findings),
        pictures=_pictures(findings),
        summary=summary_of(findings, version),
    )


def summary_of(findings: Findings, version: LearnedVersion | None) -> dict[str, Any]:
    """What a night came to, for machines."""
    return {
        "learned": version,
        "parent": findings.candidate.parent,
        "decision": findings.verdict.decision.value,
        "reason": findings.verdict.reason,
        "calibration": findings.recalibration.reason,
        "recalibrated": findings.recalibration.refitted,
        **_measures(findings.recalibration),
        "moved": [
            {"domain": move.domain.value, "signal": move.signal.value, "before": move.before, "after": move.after}
            for move in findings.moves[:TOP_MOVERS]
            if move.change
        ],
    }


def _measures(recalibration: Recalibration) -> dict[str, float | None]:
    values: dict[str, float | None] = {}
    for name, label in {"ece": "ece_after", "brier": "brier", "log_loss": "log_loss"}.items():
        for key, measured in ((f"{name}_before", recalibration.before), (label, recalibration.after)):
            values[key] = None if measured is None else getattr(measured.measures, name)
    return values


def _metrics(findings: Findings) -> dict[str, float]:
    measures = {name: value for name, value in _measures(findings.recalibration).items() if value is not None}
    measures |= {f"gate_{name}": value for name, value in findings.verdict.figures.items()}
    measures |= findings.candidate.observations
    for domain, weights in findings.weights_after.items():
        measures |= {f"weight_{domain.value}_{signal.value}": belief.mean for signal, belief in weights.items()}
    for when, metrics in zip(("before", "after"), findings.retrieval or (), strict=False):
        measures |= {f"{name.replace('@', '_at_')}_{when}": value for name, value in metrics.items()}
    for name in ("consumed", "applied", "duplicate", "dead_lettered", "late"):
        if findings.counters:
            measures[f"events_{name}"] = sum(counts.get(name, 0) for counts in findings.counters.values())
    return measures


def _pictures(findings: Findings) -> dict[str, Figure]:
    pictures = {
        "weights": figures.weights(findings.weights_after, findings.weights_before),
        "movers": figures.movers([move for move in findings.moves[:TOP_MOVERS] if move.change]),
        "ageing": figures.ageing(findings.ageing),
    }
    before, after = findings.recalibration.before, findings.recalibration.after
    if before is not None and after is not None:
        pictures["reliability"] = figures.reliability(before, after)
    if findings.retrieval is not None:
        pictures["retrieval"] = figures.retrieval(*findings.retrieval)
    return pictures


def _note(findings: Findings, version: LearnedVersion | None, settings: ConsolidationSettings) -> str:
    observed = findings.candidate.observations
    lines = [
        f"## Learned version {version or '(rehearsal: nothing was published)'}",
        f"**{findings.verdict.decision.value}**: {_FATES[findings.verdict.decision]}. {findings.verdict.reason}.",
        "",
        f"- built on: {findings.candidate.parent or 'the priors'}",
        f"- observations: {observed['observations']:,.1f}, {observed['observations_new']:,.1f} of them new",
        f"- calibration: {findings.recalibration.reason}",
        *_alarms(findings, settings),
        "",
        "| calibration error | before | after |",
        "| --- | --- | --- |",
        *_error_rows(findings.recalibration),
        "",
        "| moved most | before | after | change |",
        "| --- | --- | --- | --- |",
        *(
            f"| {move.domain.value} · {move.signal.value} | {move.before:.1%} | {move.after:.1%} | {move.change:+.1%} |"
            for move in findings.moves[:5]
        ),
        "",
        "Pictures and tables are under **Artifacts**: `pictures/` and `tables/`.",
    ]
    return "\n".join(lines)


def _alarms(findings: Findings, settings: ConsolidationSettings) -> list[str]:
    after = findings.recalibration.after
    off = [] if after is None else unreliable(after, settings.calibration)
    dead = sum(counts.get("dead_lettered", 0) for counts in findings.counters.values())
    return [
        *(
            f"- ⚠ confidence {band.lower:.2f}–{band.upper:.2f} is off by {band.deviation:.2f}"
            f" ({band.observations:,.0f} observations): look at the reliability diagram"
            for band in off
        ),
        *([f"- ⚠ {dead:,} dead letters: see `tables/updaters.csv`"] if dead else []),
    ]


def _error_rows(recalibration: Recalibration) -> list[str]:
    before, after = recalibration.before, recalibration.after
    if before is None or after is None:
        return ["| none measured | | |"]
    names = {"ece": "ECE", "brier": "Brier", "log_loss": "log loss"}
    return [
        f"| {label} | {getattr(before.measures, name):.4f} | {getattr(after.measures, name):.4f} |"
        for name, label in names.items()
    ]
