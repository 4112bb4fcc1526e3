"""Index sources and make the result live.

    weft index PATH… --store DIR [--domain NAME] [--full] [--here] [--local] [--json]
    weft index PATH… --watch        and then, until Ctrl-C, whatever is saved there
    weft index --explain-file PATH  how a file would be read and cut, and what is left out; indexes nothing
    weft index --store DIR          the live generation's documents anew, from their stored texts
    weft index --resize --store DIR     with the chunk sizes that feedback speaks for, as a night may propose
    ray job submit --working-dir . -- python -m jobs.reindex --source PATH --store DIR

`--source PATH` names one, too, and may be repeated.

Sources that the configuration declares (`sources:`) are read, too; one of them that cannot be read costs itself: its
documents stay as they were, and the exit code is 1. A source that was live and is not named any more takes its
documents along only where that is confirmed, or with `--drop`. A source is a folder, a file, a BEIR corpus (`.jsonl`,
`.jsonl.gz`) or a table (`.parquet`). `ray job submit` runs this on the cluster's head: give absolute paths. Every host
of the cluster must see the store and the sources; otherwise nothing changes. Documents that the live generation holds
already are taken from it; content that is live already is not published again. Chunks keep the sizes that the live
generation was cut with, unless settings state others, or with `--resize`, by which documents whose sizes moved are cut
and embedded anew. `--local` indexes in this process, with a thread for each CPU (or `cluster.cpus`), and needs no Ray:
the generation is the same. `--watch` does so, too, and then indexes what is saved, in the same process. `--full` makes
everything anew: it forgets cached vectors and entities and publishes in any case. A run that fails or is killed
changes nothing, and can be started again. Exit codes: 0 the content is live, 1, 75 or 78 with a reason: nothing
changed, or a declared source is broken, 2 wrong usage.
"""

from __future__ import annotations

import logging
import shlex
import sys
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.live import Live

from weft.app.explaining import explained
from weft.app.indexing import LOCK, dropped, executors_of, plan_of, run
from weft.app.tracking import tracking_of
from weft.app.watching import follow
from weft.catalog.catalog import Catalog
from weft.cli.console.exits import stopped_by_signals
from weft.cli.console.options import CommonOptions, command, named_path, named_source, run_job
from weft.cli.console.output import Result
from weft.cli.console.terminal import note, stderr
from weft.cli.reports.explanation import explanation_lines
from weft.cli.reports.indexing import headline, progress_line, report, sizes_table, watch_lines, watched_line
from weft.domain.documents import Domain
from weft.domain.errors import ConfigurationError, SourceError, TrackingUnavailableError
from weft.indexes.manifest import Manifest
from weft.ingestion.pipeline import Watch
from weft.ingestion.plan import IndexPlan
from weft.ingestion.record import record
from weft.ingestion.report import IndexOutcome
from weft.runtime.clock import system_clock
from weft.runtime.storage.locks import exclusive_lock
from weft.settings import Settings, keep_settings

log = logging.getLogger(__name__)

_SHOWN = 20  # declared relations without a target that are named; --json names all


@command
def reindex(
    options: CommonOptions,
    paths: Annotated[
        list[Path], typer.Argument(parser=named_source, metavar="PATH|URL", help="What to index; --source names more.")
    ] = [],
    source: Annotated[
        list[Path], typer.Option("--source", parser=named_source, metavar="PATH|URL", help="What to index; repeatable.")
    ] = [],
    domain: Annotated[Domain | None, typer.Option("--domain", help="Domain of every document.")] = None,
    drop: Annotated[bool, typer.Option("--drop", help="Let documents go whose source is not named any more.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Make everything anew, whatever is cached or live.")] = False,
    here: Annotated[
        bool, typer.Option("--here", help="Read sources on this host alone: others of the cluster need not see them.")
    ] = False,
    local: Annotated[bool, typer.Option("--local", help="Index in this process, without Ray.")] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Then stay, and index what is saved in the sources; as with --local.")
    ] = False,
    resize: Annotated[bool, typer.Option("--resize", help="Cut by the chunk sizes that are believed in now.")] = False,
    explain_file: Annotated[
        Path | None,
        typer.Option(parser=named_path, metavar="PATH", help="Show how a file would be read and cut; index nothing."),
    ] = None,
) -> Result:
    """Index sources and make the result live."""
    settings = options.settings()
    if explain_file is not None:
        explanation = explained(settings, explain_file, domain=domain)
        return Result([asdict(explanation)], explanation_lines(explanation))
    plan = replace(plan_of(settings, [*paths, *source], domain=domain, full=full, resized=resize), here=here)
    if not drop:
        _confirm_drop(plan)
    outcome = run_visibly(settings, plan, local=local or watch)
    keep_settings(settings)
    keep_record(settings, plan, outcome)
    _show(settings, outcome, _manifest(plan, outcome))
    if watch:
        _follow(plan)
    return Result([asdict(outcome)], [], then=partial(_require_whole, outcome))


def _show(settings: Settings, outcome: IndexOutcome, manifest: Manifest | None) -> None:
    """Say on stderr what became of the run."""
    if manifest:
        stderr.print(sizes_table(manifest, outcome.by_domain), soft_wrap=True)
    note(headline(outcome))
    stderr.print(report(outcome))
    if outcome.rejected:
        named = f"weft generations rejected --store {shlex.quote(settings.storage.place)}"
        note(f"what was rejected or noted, and why: {named}")
    if outcome.unmet_relations:
        note(f"declared relations that lead to no document: {len(outcome.unmet_relations):,}")
        for each in outcome.unmet_relations[:_SHOWN]:
            note(f"  {each}")


def _follow(plan: IndexPlan) -> None:
    """Say what becomes of what is saved, until a signal ends it."""
    stop = stopped_by_signals()
    note(f"watching {', '.join(str(place) for place in plan.places)}; Ctrl-C ends it")
    for followed in follow(plan, stop):
        if followed.outcome is None:
            note(f"nothing changed, and is tried again: {followed.trouble}")
        elif followed.outcome.published:
            note(f"{headline(followed.outcome)} · {watched_line(followed.outcome)}")


def _require_whole(outcome: IndexOutcome) -> None:
    if outcome.broken:
        raise SourceError(f"all other sources are live, and of these what was: {'; '.join(outcome.broken.values())}")


def _confirm_drop(plan: IndexPlan) -> None:
    """Say which documents would go for lack of their source, and ask, where somebody is there to answer."""
    going = dropped(plan)
    if not going:
        return
    named = ", ".join(f"{source} (documents: {count:,})" for source, count in going.items())
    if sys.stdin.isatty() and stderr.is_terminal and typer.confirm(f"{named}: no longer named; let it go?", err=True):
        return
    raise ConfigurationError(
        f"expected every live source to be named, found none of {named}: name it with --source, declare it under "
        "`sources:`, or let its documents go with --drop"
    )


def run_visibly(settings: Settings, plan: IndexPlan, *, local: bool = False) -> IndexOutcome:
    """Run a plan, here or on a cluster that is joined or started for it, and show on stderr how far it is."""
    with exclusive_lock(plan.store / LOCK, f"indexing {plan.store}"):
        note("starting: " + ("in this process" if local else "on the cluster"))
        executor, soon = executors_of(settings.cluster, local=local)
        with Live(console=stderr, auto_refresh=False, transient=True) as live:
            shown: Watch = lambda progress: live.update(progress_line(progress), refresh=True)  # noqa: E731
            return run(plan, executor=executor, soon=soon, watch=shown if stderr.is_terminal else watch_lines())


def keep_record(settings: Settings, plan: IndexPlan, outcome: IndexOutcome) -> None:
    """Record the run in MLflow's experiment `indexing`; where that fails the generation is live all the same."""
    manifest = _manifest(plan, outcome)
    if manifest is None:
        log.warning("this run is not recorded in MLflow: its generation was removed meanwhile")
        return
    try:
        record(tracking_of(settings.tracking, plan.store), plan, outcome, manifest, now=system_clock())
    except TrackingUnavailableError as error:
        log.warning("this run is not recorded in MLflow: %s", error)


def _manifest(plan: IndexPlan, outcome: IndexOutcome) -> Manifest | None:
    return next((one for one in Catalog(plan.store).generations() if one.id == outcome.generation), None)


main = partial(run_job, reindex)
"""Run the job on arguments."""
