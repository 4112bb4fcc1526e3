"""Write a night's report: metrics, tables, pictures, the page of all of it, and a note for MLflow's own page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from matplotlib.figure import Figure

from pipelines.consolidation import figures
from pipelines.consolidation.night import RunRecord
from pipelines.consolidation.report.examples import examples_of
from pipelines.consolidation.report.findings import Findings, ReportContext, summary_of
from pipelines.consolidation.report.metrics import metrics_of
from pipelines.consolidation.report.note import note_of
from pipelines.consolidation.report.page import page_of
from pipelines.consolidation.report.tables import tables_of
from pipelines.runtime.mlflow.runs import RecordedRun

PAGE = "report"
"""The name of the page among a run's artifacts."""


def report(page: RunRecord, findings: Findings, context: ReportContext) -> dict[str, Any]:
    """Write the report of a night that published a version, or of a rehearsal that published nothing.

    The note comes last, so that what it promises is there.

    Returns:
        The summary.
    """
    summary = summary_of(findings, context.version)
    metrics = metrics_of(findings, context.steps)
    outcome = {"learned": context.version or "", "decision": findings.verdict.decision.value}
    context = replace(context, nights=[RecordedRun(context.now, metrics, outcome), *context.nights])
    page.metrics(metrics, now=context.now)
    page.parameters(outcome)
    for name, table in tables_of(findings).items():
        page.table(f"tables/{name}", table)
    pictures = pictures_of(findings, context)
    for name, picture in pictures.items():
        page.picture(f"pictures/{name}", picture)
    page.page(PAGE, page_of(findings, context, examples_of(findings), pictures).html())
    page.document("summary", summary)
    page.note(note_of(findings, context.version))
    return summary


def pictures_of(findings: Findings, context: ReportContext) -> Mapping[str, str]:
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
    if len(context.nights) > 1:
        pictures["nights"] = figures.nights(context.nights[::-1])
    return {name: figures.as_svg(figure) for name, figure in pictures.items()}
