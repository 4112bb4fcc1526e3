"""The top of a night's page in MLflow, in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from weft.consolidation.improvement import Improvement
from weft.consolidation.report.findings import MEASURES, Findings
from weft.consolidation.steps.gate import Decision
from weft.consolidation.steps.recalibrate import Recalibration, unreliable

_FATES = {
    Decision.SAFE: "goes live",
    Decision.MONITORED: "goes live; it moved enough to deserve a look",
    Decision.REVIEW: "waits as **challenger** until someone moves the alias **champion** to it",
}


def note_of(findings: Findings) -> str:
    """What was decided and why, how far calibration is off, what moved most, and what each step came to."""
    observed, verdict = findings.candidate.observations, findings.verdict
    lines = [
        f"## Learned version {findings.version or '(rehearsal: nothing was published)'}",
        f"**{verdict.decision.value}**: {_FATES[verdict.decision]}. {verdict.reason}.",
        "",
        f"- built on: {findings.candidate.parent or 'the priors'}",
        f"- observations: {observed['observations']:,.1f}, {observed['observations_new']:,.1f} of them new",
        *(
            f"- {name}: {result.note}" + (f"; see `tables/{name}.csv`" if result.examples else "")
            for name, result in findings.results.items()
            if result.note and result.note != verdict.reason
        ),
        *(f"- ⚠ {alarm}" for alarm in alarms(findings)),
        "",
        "| calibration error | before | after |",
        "| --- | --- | --- |",
        *_error_rows(findings.recalibration),
        "",
        *_improvement_rows(findings.improvements),
        "| moved most | before | after | change |",
        "| --- | --- | --- | --- |",
        *(
            f"| {move.domain.value} · {move.signal.value} | {move.before:.1%} | {move.after:.1%} | {move.change:+.1%} |"
            for move in findings.moves[:5]
        ),
        "",
        "**Artifacts → report.html** shows all of it on one page; `pictures/` and `tables/` hold the parts.",
    ]
    return "\n".join(lines)


def alarms(findings: Findings) -> list[str]:
    """What somebody should look at."""
    after, dead = findings.recalibration.after, findings.dead_letters
    off = [] if after is None else unreliable(after)
    return [
        *(
            f"confidence {band.lower:.2f}–{band.upper:.2f} is off by {band.deviation:.2f}"
            f" ({band.observations:,.0f} observations): look at the reliability diagram"
            for band in off
        ),
        *([f"{dead:,} dead letters: see `tables/updaters.csv`"] if dead else []),
    ]


def _error_rows(recalibration: Recalibration) -> list[str]:
    before, after = recalibration.before, recalibration.after
    if before is None or after is None:
        return ["| none measured | | |"]
    return [
        f"| {label} | {getattr(before.measures, name):.4f} | {getattr(after.measures, name):.4f} |"
        for name, label in MEASURES.items()
    ]


def _improvement_rows(improvements: Sequence[Improvement]) -> list[str]:
    if not improvements:
        return []
    return [
        "| retrieval | before | after | change |",
        "| --- | --- | --- | --- |",
        *(
            f"| {one.measure} · {one.questions} {one.source} questions | {one.before.mean:.3f} | {one.after.mean:.3f} |"
            f" {one.change.mean:+.3f} ({one.change.low:+.3f} to {one.change.high:+.3f}) |"
            for one in improvements
        ),
        "",
    ]
