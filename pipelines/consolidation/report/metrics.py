"""A night's figures as MLflow draws them: a name begins with what it belongs to, and a slash follows."""

from __future__ import annotations

from collections.abc import Mapping

from pipelines.consolidation.improvement import as_metrics
from pipelines.consolidation.report.findings import MEASURES, Findings
from pipelines.consolidation.tending.steps import Steps

_EVENTS = ("consumed", "applied", "duplicate", "dead_lettered", "late")


def metrics_of(findings: Findings, steps: Steps) -> dict[str, float]:
    """Every figure of a night by name, such as `weights/code/vector`, `ndcg_at_10/before`, `steps/merge/proposed`."""
    observed, counts = findings.candidate.observations, findings.counters.values()
    events = {name: sum(each.get(name, 0) for each in counts) for name in _EVENTS} if counts else {}
    weights = {
        f"{domain.value}/{signal.value}": belief.mean
        for domain, beliefs in findings.weights_after.items()
        for signal, belief in beliefs.items()
    }
    errors = {
        f"{name}/{when}": float(getattr(one.measures, name)) for name in MEASURES for when, one in findings.measured
    }
    return {
        **_named("calibration", errors),
        **_named("gate", findings.verdict.figures),
        **_named("observations", {"all": observed["observations"], "new": observed["observations_new"]}),
        **_named("weights", weights),
        **as_metrics(findings.improvements),
        **_named("lessons", findings.lessons),
        **_named("events", events),
        **{name: value for step, values in steps.items() for name, value in _named(f"steps/{step}", values).items()},
    }


def _named(group: str, figures: Mapping[str, float]) -> dict[str, float]:
    return {f"{group}/{name}": value for name, value in figures.items()}
