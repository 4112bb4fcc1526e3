"""Run the night: fold the day's evidence into a learned version, calibrate, judge, publish and report it in MLflow.

    weft consolidate --store DIR [--adopt DIR] [--dry-run] [--json]

Queries of the query log are asked again for the gate, where there are any. Retrieval is measured before and after, on
judged questions and on the store's own; MLflow draws it over nights. It can be killed at any instant and started again:
the next run finishes what was begun. `--dry-run` finds everything out and changes nothing. `--adopt` takes over what
another store learned, as after a move to another topic. Exit codes: 0 done or nothing new, 1, 75 or 78 with a reason
(no MLflow, no store or a damaged one, taken over before), 2 usage.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from weft.app.log_evaluation import ringing
from weft.app.night import asking_night, run_night
from weft.app.retention import prune
from weft.app.views.status import note_night
from weft.catalog.catalog import Catalog
from weft.cli.console.options import CommonOptions, command, run_job
from weft.cli.console.output import Result
from weft.cli.console.terminal import note, warn
from weft.cli.reports.indexing import watch_lines
from weft.consolidation.candidate import Adopted, learned_by
from weft.consolidation.night import Night, NightStep
from weft.runtime.clock import system_clock
from weft.settings import Settings, require_store


@command
def consolidate(
    options: CommonOptions,
    adopt: Annotated[Path | None, typer.Option("--adopt", help="Another store, to take over what it learned.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Report what would be published, change nothing.")] = False,
) -> Result:
    """Fold the day's evidence into a learned version, calibrate, judge, publish and report it."""
    settings = options.settings()
    require_store(settings)  # a night over a folder that is not there would find nothing new, every night
    adopted = None if adopt is None else _learned_by(adopt, settings)
    with asking_night(settings, waits=note, watch=watch_lines()) as night:
        summary = run_visibly(night, dry_run=dry_run, adopted=adopted)
    alarms = ringing(settings)
    if not dry_run:
        note_night(Path(settings.storage.root), summary, alarms, at=system_clock())
        prune(settings)
    for alarm in alarms:
        warn(f"⚠ {alarm.name}: {alarm.says}")
    return Result([{**summary, "alarms": [alarm.as_json() for alarm in alarms]}], [])


def run_visibly(night: Night, *, dry_run: bool = False, adopted: Adopted | None = None) -> Mapping[str, Any]:
    """Do a night, and say on stderr what is done and what came of it."""

    def announce(step: NightStep) -> None:
        note(f"step {night.steps.index(step) + 1} of {len(night.steps)} · {step.name}: {step.says}")

    summary = run_night(replace(night, announce=announce), dry_run=dry_run, adopted=adopted)
    if "reason" in summary:
        version = summary["learned"] or "rehearsal, nothing published"
        outcome = f"learned version {version}: {summary['decision']} ({summary['reason']}); {summary['calibration']}"
    else:
        outcome = f"nothing new since learned version {summary['learned'] or 'none'}"
    note(outcome)
    return summary


def _learned_by(store: Path, settings: Settings) -> Adopted:
    if store.resolve() == Path(settings.storage.root).resolve():
        raise typer.BadParameter(f"--adopt takes another store than the one that it is taken over into, {store}")
    return learned_by(str(store.resolve()), Catalog(store))


main = partial(run_job, consolidate)
"""Run the job on arguments."""
