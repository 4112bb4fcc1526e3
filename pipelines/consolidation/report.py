"""A night's report (CON-10): pictures, tables and a page of words that need no other tool to be reviewed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure

from pipelines.consolidation import figures
from pipelines.consolidation.candidate import Proposal
from pipelines.consolidation.figures import Curve
from pipelines.consolidation.fitting import Fitting
from pipelines.consolidation.gate import Decision, GateVerdict, WeightMove, Weights, moves, weights_of
from pipelines.consolidation.improvement import Improvement, as_metrics, as_summary
from pipelines.consolidation.night import RunRecord
from pipelines.consolidation.recalibrate import Recalibration, unreliable
from pipelines.consolidation.settings import ConsolidationSettings
from pipelines.consolidation.tending.steps import Tended, changed_aliases
from pipelines.domain.documents import Domain
from pipelines.domain.ids import LearnedVersion
from pipelines.domain.ranking import Signal
from pipelines.learning.beliefs import Beliefs
from pipelines.learning.calibration.reliability import Band
from pipelines.learning.lessons.measures import GOALS

TOP_MOVERS = 12
"""Rows in the picture of what moved most."""

_HOURS_PER_YEAR = 24.0 * 365.0
_AGES = np.concatenate([[0.0], np.geomspace(1.0, 10.0 * _HOURS_PER_YEAR, 200)])
_MEASURES = {"ece": "ECE", "brier": "Brier", "log_loss": "log loss"}
_FATES = {
    Decision.SAFE: "goes live",
    Decision.MONITORED: "goes live; it moved enough to deserve a look",
    Decision.REVIEW: "waits as **challenger** until someone moves the alias **champion** to it",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """Everything a night's report rests on.

    Attributes:
        before, after: What the live version and the candidate make be believed, read at the same time.
        fitting: Fitted weights against counted ones.
        improvements: Retrieval before and after, where something measures it.
        counters: What the updaters did with their records, by partition.
        tended: What was found of near-duplicates and contradictions.
        lessons: Measures of success of lessons (LES-11), and what came of pairs of them (LES-13).
    """

    candidate: Proposal
    before: Beliefs
    after: Beliefs
    recalibration: Recalibration
    verdict: GateVerdict
    fitting: Fitting = field(default_factory=Fitting)
    improvements: Sequence[Improvement] = ()
    counters: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    tended: Tended = field(default_factory=Tended)
    lessons: Mapping[str, float] = field(default_factory=dict)

    @property
    def weights_before(self) -> Weights:
        """The weights of the live version."""
        return weights_of(self.before)

    @property
    def weights_after(self) -> Weights:
        """The weights of the candidate."""
        return weights_of(self.after)

    @property
    def moves(self) -> list[WeightMove]:
        """Every weight's change, the largest first."""
        return moves(self.weights_before, self.weights_after)

    @property
    def ageing(self) -> Mapping[Domain, Curve]:
        """How each domain is believed to age."""
        return {domain: _curve(self.after, domain) for domain in Domain}


def report(
    page: RunRecord,
    findings: Findings,
    version: LearnedVersion | None,
    settings: ConsolidationSettings,
    *,
    now: float,
) -> dict[str, Any]:
    """Write the report of a night that published `version`, or of a rehearsal that published nothing.

    The page's top comes last, so that what it promises is there.

    Returns:
        The summary.
    """
    summary = summary_of(findings, version)
    page.metrics(_metrics(findings), now=now)
    for name, table in tables_of(findings).items():
        page.table(f"tables/{name}", table)
    for name, picture in _pictures(findings).items():
        page.figure(f"pictures/{name}", picture)
    page.document("summary", summary)
    page.note(_note(findings, version, settings))
    return summary


def summary_of(findings: Findings, version: LearnedVersion | None) -> dict[str, Any]:
    """What a night came to, for machines."""
    return {
        "learned": version,
        "parent": findings.candidate.parent,
        "decision": findings.verdict.decision.value,
        "reason": findings.verdict.reason,
        "calibration": findings.recalibration.reason,
        "recalibrated": findings.recalibration.refitted,
        **as_summary(findings.improvements),
        "fit": _contests(findings),
        **_measures(findings.recalibration),
        "moved": [
            {"domain": move.domain.value, "signal": move.signal.value, "before": move.before, "after": move.after}
            for move in findings.moves[:TOP_MOVERS]
            if move.change
        ],
    }


def _measures(recalibration: Recalibration) -> dict[str, float | None]:
    values: dict[str, float | None] = {}
    for name in _MEASURES:
        after = "ece_after" if name == "ece" else name
        for key, measured in ((f"{name}_before", recalibration.before), (after, recalibration.after)):
            values[key] = None if measured is None else getattr(measured.measures, name)
    return values


def _metrics(findings: Findings) -> dict[str, float]:
    measures = {name: value for name, value in _measures(findings.recalibration).items() if value is not None}
    measures |= {f"gate_{name}": value for name, value in findings.verdict.figures.items()}
    measures |= findings.candidate.observations
    for domain, weights in findings.weights_after.items():
        measures |= {f"weight_{domain.value}_{signal.value}": belief.mean for signal, belief in weights.items()}
    measures |= as_metrics(findings.improvements)
    measures |= {f"lessons_{name}": value for name, value in findings.lessons.items()}
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
    if findings.improvements:
        pictures["retrieval"] = figures.retrieval(findings.improvements)
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
        f"- weights: {findings.fitting.reason}",
        *_tended_lines(findings),
        *_alarms(findings, settings),
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
        "Pictures and tables are under **Artifacts**: `pictures/` and `tables/`.",
    ]
    return "\n".join(lines)


def _tended_lines(findings: Findings) -> list[str]:
    added, dropped = changed_aliases(findings.candidate)
    lines = []
    if added or dropped:
        lines.append(f"- near-duplicates: {added:,} more aliases, {dropped:,} fewer; see `tables/duplicates.csv`")
    against = findings.tended.contradictions
    if against is not None and against.clusters:
        lines.append(
            f"- contradictions: {against.detected:,} found, of which {len(against.edges):,} are named in answers, and "
            f"{against.declared:,} declared, in {against.clusters:,} clusters; see `tables/contradictions.csv`"
        )
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
    return [
        f"| {label} | {getattr(before.measures, name):.4f} | {getattr(after.measures, name):.4f} |"
        for name, label in _MEASURES.items()
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


def _curve(beliefs: Beliefs, domain: Domain) -> Curve:
    freshness = beliefs.freshness_many(domain, _AGES)
    half = float(np.interp(-0.5, -freshness, _AGES)) if freshness[-1] <= 0.5 else float("inf")
    return Curve(_AGES.tolist(), freshness.tolist(), half)


def tables_of(findings: Findings) -> dict[str, pa.Table]:
    """Every table that the findings have rows for, by name."""
    recalibration = findings.recalibration
    measured = [
        (when, one)
        for when, one in (("before", recalibration.before), ("after", recalibration.after))
        if one is not None
    ]
    rows_by_table: dict[str, Sequence[Mapping[str, object]]] = {
        "weights": _weights(findings),
        "ageing": _ageing(findings),
        "calibration_bands": [row for when, one in measured for row in _bands(when, one.bands)],
        "calibration_bins": [row for when, one in measured for row in _bands(when, one.diagram)],
        "retrieval": _retrieval(findings),
        "fit": _fitted(findings),
        **findings.tended.examples(),
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


def _contests(findings: Findings) -> dict[str, Any]:
    return {
        domain.value: {
            "live": one.wins,
            "change": one.change,
            "questions": one.questions,
            "outcomes": one.fit.outcomes,
            "disagreement": one.disagreement,
        }
        for domain, one in findings.fitting.contests.items()
    }


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
