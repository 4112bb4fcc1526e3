"""Index sources and make the result live.

    python -m jobs.reindex --source PATH [--source PATH …] --store DIR [--domain NAME] [--full] [--json]
    python -m jobs.reindex --store DIR          the live generation's documents anew, from their stored texts
    ray job submit --working-dir . -- python -m jobs.reindex --source PATH --store DIR

A source is a folder, a file, a BEIR corpus (`.jsonl`, `.jsonl.gz`) or a table (`.parquet`). `ray job submit` runs this
on the cluster's head: give absolute paths. Every host of the cluster must see the store and the sources; otherwise
nothing changes. Documents that the live generation holds already are taken from it; content that is live already
is not published again. `--full` makes everything anew: it forgets cached vectors and entities and publishes in any
case. A run that fails or is killed changes nothing, and can be started again.
Exit codes: 0 the content is live, 1 nothing changed, with a reason, 2 wrong usage.
"""

from __future__ import annotations

import logging
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.live import Live
from rich.table import Table

from jobs import _job
from pipelines.catalog.catalog import Catalog
from pipelines.domain.documents import Domain
from pipelines.domain.errors import ConfigurationError, TrackingUnavailableError
from pipelines.ingestion.pipeline import Watch, ingest
from pipelines.ingestion.plan import IndexPlan
from pipelines.ingestion.report import IndexOutcome, IndexProgress
from pipelines.runtime.clock import system_clock
from pipelines.runtime.ray.cluster import connect
from pipelines.runtime.ray.stages import ON_CLUSTER, Executor
from pipelines.runtime.storage.locks import alone
from pipelines.serving.terminal import Conf, Store, named_path, plain
from pipelines.settings import Settings

log = logging.getLogger(__name__)

_RATES = {"documents": "documents", "chunks": "chunks", "mentions": "entities", "embedded": "embeddings"}
_LINE_EVERY_S = 10.0
_LOCK = Path("generations") / ".indexing"


def reindex(
    conf: Conf = [],
    assignments: _job.Assignments = [],
    source: Annotated[
        list[Path],
        typer.Option("--source", parser=named_path, metavar="PATH", help="What to index; repeatable."),
    ] = [],
    store: Store = None,
    domain: Annotated[Domain | None, typer.Option("--domain", help="Domain of every document.")] = None,
    full: Annotated[bool, typer.Option("--full", help="Make everything anew, whatever is cached or live.")] = False,
    as_json: _job.AsJson = False,
) -> None:
    """Index sources and make the result live."""
    settings = _job.settings_of(conf, assignments, store)
    plan = plan_of(settings, source, domain=domain, full=full)
    outcome = run_visibly(settings, plan)
    keep_record(settings, plan, outcome)
    _job.stderr.print(headline(outcome), soft_wrap=True, highlight=False)
    _job.stderr.print(report(outcome))
    if outcome.rejected:
        named = f"weft generations rejected --store {shlex.quote(settings.storage.root)}"
        _job.stderr.print(f"what was rejected, and why: {plain(named)}", soft_wrap=True, highlight=False)
    _job.emit(asdict(outcome), as_json=as_json)


def plan_of(
    settings: Settings, sources: Sequence[Path], *, domain: Domain | None = None, full: bool = False
) -> IndexPlan:
    """What the settings and a job's arguments ask for.

    Raises:
        ConfigurationError: No source is given, and there is no live generation whose texts could be indexed anew.
    """
    root = Path(settings.storage.root).absolute()
    if not sources and Catalog(root).pointer().generation is None:
        raise ConfigurationError("expected at least one --source: a folder, a file, a corpus or a table")
    return IndexPlan(
        sources=[path.absolute() for path in sources],
        store=root,
        domain=domain,
        full=full,
        fingerprint=settings.fingerprint,
        ingest=settings.ingest,
        chunking=settings.chunking,
        priors=settings.priors,
        extraction=settings.extraction,
        embedding=settings.embedding,
        index=settings.index,
    )


def run(plan: IndexPlan, *, watch: Watch = lambda _: None, executor: Executor = ON_CLUSTER) -> IndexOutcome:
    """Run a plan on the cluster that this process has joined; see `ingest`."""
    return ingest(plan, Catalog(plan.store), executor, watch, clock=time.monotonic)


def run_visibly(settings: Settings, plan: IndexPlan) -> IndexOutcome:
    """Join or start the cluster, run a plan on it, and show on stderr how far it is.

    Raises:
        StoreError: Another process indexes this store.
    """
    with alone(plan.store / _LOCK, f"indexing {plan.store}"):
        _job.stderr.print("starting: joining or starting the cluster")
        connect(settings.cluster)
        with Live(console=_job.stderr, auto_refresh=False, transient=True) as live:
            return run(plan, watch=_shown(live) if _job.stderr.is_terminal else _logged())


def keep_record(settings: Settings, plan: IndexPlan, outcome: IndexOutcome) -> None:
    """Record the run in MLflow's experiment `indexing`; where that fails the generation is live all the same."""
    # MLflow takes seconds to import: only once the generation is live.
    from pipelines.ingestion.record import record  # noqa: PLC0415
    from pipelines.runtime.mlflow.tracking import Tracking  # noqa: PLC0415

    manifest = next((one for one in Catalog(plan.store).generations() if one.id == outcome.generation), None)
    if manifest is None:
        log.warning("this run is not recorded in MLflow: its generation was removed meanwhile")
        return
    try:
        record(Tracking.of(settings.tracking, plan.store), plan, outcome, manifest, now=system_clock())
    except TrackingUnavailableError as error:
        log.warning("this run is not recorded in MLflow: %s", error)


def headline(outcome: IndexOutcome) -> str:
    """What became of the run, in a line."""
    state = "is live" if outcome.published else "was live already and stays: the content is the same"
    return f"generation {outcome.generation} {state}"


def report(outcome: IndexOutcome) -> Table:
    """The final summary, for people."""
    table = Table("what", "count", box=None, show_header=False)
    for name in ("documents", "unchanged", "chunks", "entities", "embedded", "embedding_cache_hits", "skipped"):
        table.add_row(name.replace("_", " "), f"{getattr(outcome, name):,}")
    for title, counts in (
        ("type", outcome.by_type),
        ("domain", outcome.by_domain),
        ("language", outcome.by_language),
        ("rejected", outcome.rejected),
        ("left out", outcome.left_out),
    ):
        for name, count in counts.items():
            table.add_row(f"{title} {name}", f"{count:,}")
    table.add_row("seconds", f"{outcome.seconds:.1f}")
    return table


def line(progress: IndexProgress) -> str:
    """One line about a run under way.

    Examples:
        >>> begun = IndexProgress("embedding", total=4, begun=0.0, now=0.0)
        >>> line(begun.after({"documents": 30, "chunks": 300, "rejected:binary": 2}, now=10.0))
        'embedding 1/4 · 30 documents 3.0/s · 300 chunks 30.0/s · 0 entities · 0 embeddings · 2 rejected · 0:30 left'
    """
    parts = [f"{progress.phase} {progress.done}/{progress.total}"]
    for name, shown in _RATES.items():
        rate = f" {progress.rate(name):.1f}/s" if progress.counts.get(name) else ""
        parts.append(f"{progress.counts.get(name, 0):,} {shown}{rate}")
    parts.append(f"{sum(progress.rejected.values())} rejected")
    if progress.seconds_left:
        minutes, seconds = divmod(round(progress.seconds_left), 60)
        parts.append(f"{minutes}:{seconds:02d} left")
    return " · ".join(parts)


def _shown(live: Live) -> Callable[[IndexProgress], None]:
    return lambda progress: live.update(line(progress), refresh=True)


def _logged() -> Callable[[IndexProgress], None]:
    """Where there is no terminal, a line at every new phase and every few seconds."""
    last: dict[str, float] = {}

    def watch(progress: IndexProgress) -> None:
        if progress.now - last.get(progress.phase, float("-inf")) >= _LINE_EVERY_S:
            last[progress.phase] = progress.now
            _job.stderr.print(line(progress), highlight=False, soft_wrap=True)

    return watch


if __name__ == "__main__":
    sys.exit(_job.run(reindex))
