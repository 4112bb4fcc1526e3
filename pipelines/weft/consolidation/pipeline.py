"""The night: its steps in their order, each told of what came before, then what they came to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from weft.consolidation.candidate import Adopted, require_new
from weft.consolidation.champion import follow_if_possible
from weft.consolidation.improvement import as_metrics, as_summary
from weft.consolidation.night import DryRunPage, Night, NightContext, NightStep, When
from weft.consolidation.report.findings import Steps, counts_of
from weft.consolidation.report.writing import Summary
from weft.consolidation.steps.gate import GateOutcome
from weft.consolidation.steps.publish import Published, settle, unsettled


def consolidate(night: Night, *, dry_run: bool = False, adopted: Adopted | None = None) -> Mapping[str, Any]:
    """Do all steps of a night; finish what a killed night left before.

    Returns:
        The summary: learned version, decision, calibration errors before and after, what moved, run id, and by step
        what it proposed and applied.

    Raises:
        StaleVersionError: Another night published meanwhile; run again.
        StoreError: What was to be taken over counts already.
        TrackingUnavailableError: The tracker does not answer; run again, nothing is lost.
    """
    if not dry_run:
        follow_if_possible(night.catalog, night.tracking)
    if (unfinished := unsettled(night.catalog, night.tracking)) is not None:
        context = NightContext(night=night.as_of(unfinished), dry_run=dry_run, unfinished=unfinished)
        finished = _consolidated(context)
        taken_over = night.catalog.learned.manifest(unfinished).provenance.get("adopted")
        if adopted is None or dry_run or taken_over == adopted.as_json():
            return finished
    if adopted is not None:
        require_new(night.catalog, night.tracking, adopted)
    return _consolidated(NightContext(night=night, dry_run=dry_run, adopted=adopted))


def _consolidated(context: NightContext) -> Mapping[str, Any]:
    steps = context.night.steps
    judged = [at for at, step in enumerate(steps) if step.when is When.JUDGED]
    first, last = (judged[0], judged[-1] + 1) if judged else (len(steps), len(steps))
    context = ran(context, steps[:first])
    if context.is_changed:
        context = _recorded(context, steps[first:last])
    else:
        context = ran(context, [step for step in steps[first:last] if step.when is not When.JUDGED])
    # Last, once all else is settled: a night that is killed here is done again.
    context = ran(context, steps[last:])
    nothing = {"learned": context.candidate.parent, "decision": "nothing new", **as_summary(()), "run": None}
    return {**(context.outcome(Summary) or nothing), "steps": counts_of(context)}


def ran(context: NightContext, steps: Sequence[NightStep]) -> NightContext:
    """The context once these steps of its night ran."""
    for step in steps:
        if step.when is When.FRESH and context.unfinished is not None:
            continue
        context.night.announce(step)
        seconds: dict[str, float] = {}
        with context.step(step.name, seconds) as note:
            result = step.run(context)
            if step.when is When.JUDGED:
                note.metrics(result.counts, now=context.night.now)
                if result.note:
                    note.parameters({"outcome": result.note})
        results = {**context.results, step.name: result}
        context = replace(context, results=results, seconds={**context.seconds, **seconds})
    return context


def _recorded(context: NightContext, steps: Sequence[NightStep]) -> NightContext:
    """The same with the run open that the night is written to, and those before noted in it."""
    night = context.night
    with night.page(dry_run=context.dry_run) as page:
        page.parameters({**night.facts, **context.candidate.facts})
        so_far: Steps = counts_of(context)
        for name in context.results:
            with page.child(name) as note:
                note.metrics(so_far[name], now=night.now)
        context = ran(replace(context, page=page), steps)
        judgement, published = context.outcome(GateOutcome), context.outcome(Published)
        if published is not None and published.version is not None and not context.dry_run:
            if judgement is not None:
                night.draw_curves(as_metrics(judgement.improvements), published.version)
            settle(night.tracking, published.version)
        return replace(context, page=DryRunPage())
