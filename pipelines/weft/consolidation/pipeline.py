"""The night, in the order of `night.STEPS`: from what providers count to the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from weft.consolidation.candidate import Adopted, Proposal, merge, require_new, resume
from weft.consolidation.champion import follow_if_possible
from weft.consolidation.citations.refresh import RefreshResult
from weft.consolidation.fitting import Fitting
from weft.consolidation.gate import Decision, GateVerdict, judge
from weft.consolidation.improvement import Improvement, as_metrics, as_summary, deciding
from weft.consolidation.night import DryRunPage, Night, RunRecord
from weft.consolidation.publish import publish, recorded_verdict, settle, unsettled
from weft.consolidation.recalibrate import Recalibration, curves_of, recalibrate, with_matches
from weft.consolidation.report.examples import expired
from weft.consolidation.report.findings import Findings, ReportContext
from weft.consolidation.report.writing import report
from weft.consolidation.tending.links import LINKS
from weft.consolidation.tending.rebuild import RebuildResult
from weft.consolidation.tending.steps import MaintenanceFindings, Steps, steps_of
from weft.consolidation.tending.succession import Successions
from weft.domain.ids import VersionName
from weft.domain.links import LinkKind
from weft.learning.beliefs import Beliefs
from weft.learning.edges import LearnedEdges
from weft.learning.lessons.measures import success_measures
from weft.learning.thinned import NOTHING_THINNED

_NIGHTS = 13  # before this one that its report shows: two weeks


def consolidate(night: Night, *, dry_run: bool = False, adopted: Adopted | None = None) -> Mapping[str, Any]:
    """Fold the day into a candidate, calibrate, judge, publish and report it; finish what a killed night left.

    Returns:
        The summary: learned version, decision, calibration errors before and after, what moved, run id.

    Raises:
        StaleVersionError: Another night published meanwhile; run again.
        StoreError: What was to be taken over counts already.
        TrackingUnavailableError: The tracker does not answer; run again, nothing is lost.
    """
    night.seconds.clear()
    citations = _cited(night, dry_run=dry_run)
    summary = _consolidated(night, dry_run=dry_run, adopted=adopted)
    may = not dry_run and summary["decision"] != Decision.REVIEW
    return {**summary, "steps": {**summary["steps"], "citations": citations, "rebuild": _rebuilt(night, may=may)}}


def _rebuilt(night: Night, *, may: bool) -> Mapping[str, float]:
    """What became of the live generation, once all else is settled: a night that is killed here is done again."""
    rebuilt = RebuildResult()
    if night.rebuild is not None:
        with night.step(DryRunPage(), "rebuild"):
            rebuilt = night.rebuild(may)
    return {**rebuilt.as_step(), "seconds": round(night.seconds.get("rebuild", 0.0), 3)}


def _cited(night: Night, *, dry_run: bool) -> Mapping[str, float]:
    """What came of asking providers for counts that are due; they are the store's, and part of no learned version."""
    refreshed = RefreshResult()
    if night.citations is not None:
        with night.step(DryRunPage(), "citations"):
            refreshed = night.citations(dry_run)
    return {**refreshed.as_step(), "seconds": round(night.seconds.get("citations", 0.0), 3)}


def _consolidated(night: Night, *, dry_run: bool, adopted: Adopted | None) -> Mapping[str, Any]:
    if not dry_run:
        follow_if_possible(night.catalog, night.tracking)
    if (unfinished := unsettled(night.catalog, night.tracking)) is not None:
        candidate = resume(night.catalog, unfinished)
        finished = _recorded(night.as_of(unfinished), candidate, MaintenanceFindings(), dry_run=dry_run)
        if adopted is None or dry_run or candidate.adopted == adopted.as_json():
            return finished
    if adopted is not None:
        require_new(night.catalog, night.tracking, adopted)
    with night.step(DryRunPage(), "merge"):
        candidate = merge(night.catalog, night.tracking, adopted)
    candidate, tended = _tended(night, candidate)
    if candidate.is_unchanged:
        steps = steps_of(candidate, tended, night.seconds, judged=False, applied=False)
        return {"learned": candidate.parent, "decision": "nothing new", **as_summary(()), "steps": steps, "run": None}
    return _recorded(night, candidate, tended, dry_run=dry_run)


def _tended(night: Night, candidate: Proposal) -> tuple[Proposal, MaintenanceFindings]:
    """The candidate with the aliases and edges of tonight's contents; those of contents that are gone expire."""
    moved = None if night.rebuild is None else night.rebuild(False)  # what the report says; it is done last
    if night.duplicates is None:
        return candidate, MaintenanceFindings(rebuild=moved)
    kinds = (LinkKind.CONTRADICTS,), LINKS, (LinkKind.SUPERSEDES,)
    opposed, links, newer = (candidate.edges.of_kinds(each) for each in kinds)
    with night.step(DryRunPage(), "duplicates"):
        successions = Successions(newer) if night.successions is None else night.successions()
        duplicates = night.duplicates(candidate.base, successions.superseded)
    newer = successions.edges
    tended = MaintenanceFindings(
        duplicates, rebuild=moved, successions=None if night.successions is None else successions
    )
    if night.contradictions is not None:
        with night.step(DryRunPage(), "contradictions"):
            detected = night.contradictions(duplicates, newer, candidate.base)
            tended = replace(tended, contradictions=detected)
        opposed = detected.edges
    if night.links is not None:
        with night.step(DryRunPage(), "links"):
            tended = replace(tended, links=(near := night.links(duplicates.aliases, opposed, candidate.base)))
        links = near.edges
    with night.step(DryRunPage(), "expiry"):
        edges = LearnedEdges.of([*opposed.edges, *links.edges, *newer.edges])
        candidate = replace(candidate, aliases=duplicates.aliases, edges=edges)
    return _thinned(night, candidate, tended)


def _thinned(night: Night, candidate: Proposal, tended: MaintenanceFindings) -> tuple[Proposal, MaintenanceFindings]:
    """The candidate with what searches of everything pass over, where recall bears it."""
    if night.thinning is None:
        return candidate, tended
    with night.step(DryRunPage(), "thinning"):
        thinning = night.thinning(candidate.base, candidate.aliases)
        if thinning.proposed and night.recall is not None:
            whole, thinner = (replace(candidate, thinned=some).learned for some in (NOTHING_THINNED, thinning.proposed))
            thinning = thinning.checked(night.recall(whole, thinner), night.rules.thinning)
        return replace(candidate, thinned=thinning.thinned), replace(tended, thinning=thinning)


def _recorded(night: Night, candidate: Proposal, tended: MaintenanceFindings, *, dry_run: bool) -> Mapping[str, Any]:
    with night.page(dry_run=dry_run) as page:
        page.parameters({**night.facts, **candidate.facts})
        before = _merged(night, candidate, page)
        _note_tended(night, candidate, tended, page)
        calibration, fitting = _recalibrated(night, candidate, page)
        if candidate.published is None:
            candidate = replace(candidate, fitted=fitting.fitted)
        after = night.beliefs(candidate.learned)
        lessons = _lessons(night, after, page, dry_run=dry_run)
        improvements, verdict = _judged(night, candidate, page, before, after)
        findings = Findings(
            candidate=candidate,
            before=before,
            after=after,
            recalibration=calibration,
            fitting=fitting,
            verdict=verdict,
            improvements=improvements,
            counters=night.counters,
            tended=tended,
            lessons=lessons,
            expired=expired(candidate, night.triggers_of_live(candidate), after, night.texts),
        )
        version = candidate.published if dry_run else _published(night, page, findings)
        applied = verdict.decision.goes_live and not dry_run
        came_to = partial(steps_of, candidate, tended, night.seconds, judged=True, applied=applied, lessons=lessons)
        with night.step(page, "report"):
            summary = report(page, findings, _context(night, version, came_to()))
        if version is not None and not dry_run:
            night.draw_curves(as_metrics(improvements), version)
            settle(night.tracking, version)
        return {**summary, "steps": came_to(), "run": page.run_id or None}


def _context(night: Night, version: VersionName | None, steps: Steps) -> ReportContext:
    return ReportContext(
        version=version,
        live=night.catalog.pointer().learned,
        store=str(night.catalog.root.resolve()),
        now=night.now,
        steps=steps,
        nights=night.recorded(limit=_NIGHTS),
    )


def _merged(night: Night, candidate: Proposal, page: RunRecord) -> Beliefs:
    with page.child("merge") as note:
        note.metrics(candidate.observations, now=night.now)
        return night.beliefs(candidate.live)


def _note_tended(night: Night, candidate: Proposal, tended: MaintenanceFindings, page: RunRecord) -> None:
    steps = steps_of(candidate, tended, night.seconds, judged=False, applied=False)
    steps["rebuild"] = (tended.rebuild or RebuildResult()).as_step()
    for name in ("duplicates", "contradictions", "links", "expiry", "thinning", "rebuild"):
        with page.child(name) as note:
            note.metrics(steps[name], now=night.now)


def _recalibrated(night: Night, candidate: Proposal, page: RunRecord) -> tuple[Recalibration, Fitting]:
    rules, former = night.rules.calibration, candidate.former_calibration
    with night.step(page, "recalibrate") as note:
        scores = recalibrate(night.outcomes(candidate.base), former, night.learning, rules)
        curves = curves_of(night.verdicts(candidate.base), night.priors.verdicts, rules, night.look)
        calibration = with_matches(scores, curves, former, night.probe, rules)
        fitting = night.fitting(candidate.base)
        if fitting.fitted is not None:
            measured = deciding(
                night.compared(*(replace(candidate, fitted=each).learned for each in (None, fitting.fitted)))
            )
            if measured is not None and measured.significant and measured.change.mean < 0.0:
                fitting = fitting.refused(measured)
        note.parameters({"outcome": calibration.reason, "weights": fitting.reason})
        return calibration, fitting


def _lessons(night: Night, after: Beliefs, page: RunRecord, *, dry_run: bool) -> Mapping[str, float]:
    with night.step(page, "lessons") as note:
        measures = dict(success_measures(after.lessons, active=night.priors.lessons.active))
        if night.tend_lessons is not None:
            measures |= night.tend_lessons(after.lessons, dry_run)
        note.metrics(measures, now=night.now)
        return measures


def _judged(
    night: Night, candidate: Proposal, page: RunRecord, before: Beliefs, after: Beliefs
) -> tuple[Sequence[Improvement], GateVerdict]:
    with night.step(page, "gate") as note:
        improvements = night.compared(candidate.live, candidate.learned)
        recorded = recorded_verdict(night.tracking, candidate.published)
        verdict = recorded or judge(
            candidate, before, after, shadow=night.shadow, measured=deciding(improvements), rules=night.rules
        )
        note.parameters({"decision": verdict.decision, "reason": verdict.reason})
        return improvements, verdict


def _published(night: Night, page: RunRecord, findings: Findings) -> VersionName:
    with night.step(page, "publish") as note:
        version = publish(night, page, findings.candidate, findings.recalibration, findings.verdict)
        note.parameters({"learned": version})
        return version
