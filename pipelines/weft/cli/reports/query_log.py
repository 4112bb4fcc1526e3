"""What was measured on a store's query log, for people and programs (EVA-3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from weft.app.comparing import verdict_as_json
from weft.app.log_evaluation import LogComparison, LogReport
from weft.cli.console.output import Shown, markup
from weft.cli.console.terminal import plain, table_of
from weft.cli.reports.figures import LABELS, change_text, mean_cells, titled
from weft.evaluation.measures.compare import HEADLINE
from weft.evaluation.measures.significance import strength_of


def as_json(report: LogReport) -> dict[str, Any]:
    """For machines, under the names of the job's contract; measures that nothing could be measured on are null."""
    return {
        **{name: report.measures[name].mean if name in report.measures else None for name in LABELS},
        "intervals": {name: [value.low, value.high] for name, value in report.measures.items()},
        "queries": report.queries,
        "judged": report.judged,
        "strength": strength_of(max(report.judged, 1)).value,
        "unjudged": report.unjudged,
        "p50_ms": report.p50_ms,
        "p95_ms": report.p95_ms,
        "memory": report.memory.as_json(),
        "alarms": [alarm.as_json() for alarm in report.alarms],
    }


def shown(report: LogReport) -> Iterator[Shown]:
    """For people."""
    strength = strength_of(max(report.judged, 1))
    title = f"{report.queries} logged queries, {report.judged} with a judgement: {strength.value} evidence"
    table = titled(title, "measure", "mean", "interval")
    named = {LABELS[name]: value for name, value in report.measures.items()}
    of_memory = {name.replace("_", " "): getattr(report.memory, name) for name in report.memory.queries}
    for name, value in {**named, **of_memory}.items():
        if value is not None:
            table.add_row(name, *mean_cells(value))
    table.add_row("ms per query", f"{report.p50_ms:.1f}", f"95 % below {report.p95_ms:.1f}")
    yield table
    shares = {
        name: (worth.shown, worth.exclusive, worth.relevant, worth.exclusive_relevant)
        for name, worth in report.memory.channels.items()
    }
    lines = [(name, *("" if one is None else f"{one:.1%}" for one in each)) for name, each in shares.items()]
    yield table_of(("channel", "of results", "alone", "of relevant ones", "alone"), lines)
    for alarm in report.alarms:
        mark = "[red]⚠[/]" if alarm.ringing else "[green]·[/]"
        bound = f"{alarm.value:.3f} (bound {alarm.bound:.3f}, n = {alarm.n})"
        yield markup(f"{mark} {alarm.name}: {bound}: {plain(alarm.says)}")


def comparison_as_json(names: tuple[str, str], comparison: LogComparison) -> dict[str, Any]:
    """For machines."""
    judged_pairs = comparison.judged
    return {
        "control": {"name": names[0]},
        "treatment": {"name": names[1]},
        "queries": comparison.queries,
        "shadow": verdict_as_json(comparison.moved),
        "differences": judged_pairs and {name: each.as_json() for name, each in judged_pairs.differences.items()},
        "strength": judged_pairs and judged_pairs.strength.value,
        "off_policy": [{name: value.as_json() for name, value in values.items()} for values in comparison.values],
    }


def comparison_shown(names: tuple[str, str], comparison: LogComparison) -> Iterator[Shown]:
    """For people."""
    moved = comparison.moved
    yield f"A = {names[0]}, B = {names[1]}: {comparison.queries} logged queries asked again"
    yield markup(f"  rankings moved: [bold]{moved.decision.value}[/] ({moved.reason})")
    if comparison.judged is None:
        yield "  no query has a judgement: nothing can be said about better or worse"
    else:
        change = change_text(comparison.judged.differences[HEADLINE])
        yield f"  {LABELS[HEADLINE]} {change}, {comparison.judged.strength.value} evidence"
    for side, values in zip(("A", "B"), comparison.values, strict=False):
        line = ", ".join(f"{name} {one.estimate:.3f} ({one.low:.3f} … {one.high:.3f})" for name, one in values.items())
        effective = min(one.effective for one in values.values())
        yield f"  {side} would have earned per answer: {line}; effective sample {effective:.0f} places"
