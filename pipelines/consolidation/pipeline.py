"""The night, step by step: merge → recalibrate → gate → publish → report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from pipelines.consolidation.adopt import ADOPTED, Adopted, require_new
from pipelines.consolidation.champion import follow_if_possible
from pipelines.consolidation.findings import observations
from pipelines.consolidation.gate import judge
from pipelines.consolidation.merge import Candidate, merge, resume
from pipelines.consolidation.night import Night
from pipelines.consolidation.publish import publish, recorded_verdict, settle, unsettled
from pipelines.consolidation.recalibrate import curves_of, recalibrate, with_matches
from pipelines.consolidation.report.pages import Page
from pipelines.consolidation.report.report import examine, report

STEPS = ("merge", "recalibrate", "gate", "publish", "report")


def consolidate(
    night: Night, announce: Callable[[str], None], *, dry_run: bool = False, adopted: Adopted | None = None
) -> Mapping[str, Any]:
    """Fold the day into a candidate, calibrate, judge, publish and report it; finish what a killed night left.

    Args:
        announce: Told the name of each step before it starts.
        dry_run: Find everything out and change nothing.
        adopted: What another store learned, taken over along with the day, once what a killed night left is finished.

    Returns:
        The summary: learned version, decision, calibration errors before and after, what moved, run id.

    Raises:
        StaleVersionError: Another night published meanwhile; run again.
        StoreError: What was to be taken over counts already.
        TrackingUnavailableError: The tracker does not answer; run again, nothing is lost.
    """
    if not dry_run:
        follow_if_possible(night.catalog, night.tracking)
    unfinished = unsettled(night.catalog, night.tracking)
    if unfinished is not None:
        candidate = resume(night.catalog, unfinished)
        finished = _written(night.as_of(unfinished), candidate, announce, dry_run=dry_run)
        if adopted is None or dry_run or candidate.adopted == adopted.as_json():
            return finished
    if adopted is not None:
        require_new(night.catalog, night.tracking, adopted)
    candidate = merge(night.catalog, night.tracking, adopted)
    if candidate.fresh.is_empty:
        return {"learned": candidate.parent, "decision": "nothing new", "run": None}
    return _written(night, candidate, announce, dry_run=dry_run)


def _written(
    night: Night, candidate: Candidate, announce: Callable[[str], None], *, dry_run: bool
) -> Mapping[str, Any]:
    with night.page(dry_run=dry_run) as page:
        page.parameters({**night.facts, **({} if candidate.adopted is None else {ADOPTED: candidate.adopted["store"]})})
        return {**_steps(night, candidate, page, announce, dry_run=dry_run), "run": page.run_id or None}


def _steps(
    night: Night, candidate: Candidate, page: Page, announce: Callable[[str], None], *, dry_run: bool
) -> Mapping[str, Any]:
    def step(name: str) -> AbstractContextManager[Page]:
        announce(name)
        return page.child(name)

    with step("merge") as note:
        before, after = night.beliefs(candidate.former), night.beliefs(candidate.base)
        new = observations(candidate.fresh)
        note.metrics({"observations": observations(candidate.base), "observations_new": new}, now=night.now)
    with step("recalibrate") as note:
        outcomes = night.outcomes(candidate.base)
        calibration = recalibrate(outcomes, candidate.former_calibration, night.learning, night.rules.calibration)
        rules = night.rules.calibration
        curves = curves_of(night.verdicts(candidate.base), night.priors.verdicts, rules, night.look)
        calibration = with_matches(calibration, curves, candidate.former_calibration, night.probe, rules)
        note.parameters({"outcome": calibration.reason})
    with step("gate") as note:
        recorded = recorded_verdict(night.tracking, candidate.published)
        verdict = recorded or judge(
            candidate, before, after, shadow=night.shadow, improve=night.improve, rules=night.rules
        )
        note.parameters({"decision": verdict.decision, "reason": verdict.reason})
    version = candidate.published
    if not dry_run:
        with step("publish") as note:
            version = publish(night, page, candidate, calibration, verdict)
            note.parameters({"learned": version})
    with step("report"):
        findings = examine(night, candidate, before=before, after=after, recalibration=calibration, verdict=verdict)
        written = report(findings, version, night.rules)
        written.write(page, now=night.now)
    if version is not None and not dry_run:
        settle(night.tracking, version)
    return written.summary
