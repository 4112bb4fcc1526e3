"""The top of a night's page in MLflow, in Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.consolidation.gate import Decision
from weft.consolidation.improvement import Improvement
from weft.consolidation.recalibrate import Recalibration, unreliable
from weft.consolidation.report.findings import MEASURES, Findings
from weft.consolidation.tending.steps import alias_changes
from weft.domain.ids import VersionName
from weft.learning.lessons.measures import GOALS

_FATES = {
    Decision.SAFE: "goes live",
    Decision.MONITORED: "goes live; it moved enough to deserve a look",
    Decision.REVIEW: "waits as **challenger** until someone moves the alias **champion** to it",
}


def note_of(findings: Findings, version: VersionName | None) -> str:
    """What was decided and why, how far calibration is off, and what moved most."""
    observed = findings.candidate.observations
    lines = [
        f"## Learned version {version or '(rehearsal: nothing was published)'}",
        f"**{findings.verdict.decision.value}**: {_FATES[findings.verdict.decision]}. {findings.verdict.reason}.",
        "",
        f"- built on: {findings.candidate.parent or 'the priors'}",
        f"- observations: {observed['observations']:,.1f}, {observed['observations_new']:,.1f} of them new",
        f"- calibration: {findings.recalibration.reason}",
        f"- weights: {findings.fitting.reason}",
        *_tended_lines(findings),
        *(f"- ⚠ {alarm}" for alarm in alarms(findings)),
        *_lesson_lines(findings.lessons),
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


def _tended_lines(findings: Findings) -> list[str]:
    added, dropped = map(len, alias_changes(findings.candidate))
    lines = []
    if added or dropped:
        lines.append(f"- near-duplicates: {added:,} more aliases, {dropped:,} fewer; see `tables/duplicates.csv`")
    if (newer := findings.tended.successions) is not None and len(newer.edges):
        lines.append(f"- releases: {len(newer.edges):,} pages are superseded; see `tables/successions.csv`")
    against = findings.tended.contradictions
    if against is not None and against.clusters:
        lines.append(
            f"- contradictions: {against.detected:,} found, of which {len(against.edges):,} are named in answers, and "
            f"{against.declared:,} declared, in {against.clusters:,} clusters; see `tables/contradictions.csv`"
        )
    if (links := findings.tended.links) is not None and len(links.edges):
        counts = links.counts()
        lines.append(
            f"- links: {counts['similar']:,} pairs are similar, {counts['co_used']:,} were used together; see "
            "`tables/links.csv`"
        )
    thinning = findings.tended.thinning
    if thinning is not None and thinning.proposed:
        outcome = "are passed over" if thinning.thinned else "are only proposed, for what recall would lose"
        lines.append(
            f"- thinning: {len(thinning.proposed):,} chunks far from what their documents are about {outcome}; see "
            "`tables/thinning.csv`"
        )
    rebuild = findings.tended.rebuild
    if rebuild is not None and (rebuild.moved or rebuild.outdated):
        outcome = "was made so once and taken back" if rebuild.declined else "is made anew, if this night goes live"
        moved = f"{len(rebuild.moved)} sizes moved; see `tables/rebuild.csv`" if rebuild.moved else ""
        outdated = f"its vectors were trained without {rebuild.changed:.0%} of its contents" if rebuild.outdated else ""
        lines.append(f"- the live generation {outcome}: {', and '.join(filter(None, (outdated, moved)))}")
    return lines


def _lesson_lines(lessons: Mapping[str, float]) -> list[str]:
    if not lessons.get("lessons"):
        return []
    measures = [
        f"{name.replace('_', ' ')} {lessons[name]:.2f} ({'at least' if more else 'at most'} {goal:g})"
        + ("" if (lessons[name] >= goal if more else lessons[name] <= goal) else " ⚠")
        for name, (goal, more) in GOALS.items()
        if name in lessons
    ]
    lines = [f"- {lessons['lessons']:,.0f} lessons: {'; '.join(measures)}"]
    if lessons.get("proposed"):
        waiting = f"{lessons['to_review']:,.0f} to review, {lessons['in_conflict']:,.0f} of them in conflict"
        lines.append(f"- pairs of lessons: {lessons['applied']:,.0f} merged, {waiting}; see `weft lessons review`")
    return lines


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
