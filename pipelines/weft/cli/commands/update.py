"""Run the streaming updaters: feedback events of the topic become evidence in the store.

    weft update --store DIR --bootstrap HOST:PORT [--until-caught-up] [--accept-loss] [--local] [--json]

Without `--until-caught-up` it runs until SIGTERM or SIGINT. It can be killed at any instant and started again: every
event counts exactly once. The folder of the store must be there: `weft index` makes one, and so does `mkdir`, where
events are to be learned from before anything is indexed. `--accept-loss` gives up what the log has lost unread by the
time of the start. Every host of the cluster must see the store. Exit codes: 0 done, 1, 75 or 78 with a reason (no
store, wrong log, no broker, partition taken over), 2 usage.
"""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.live import Live
from rich.table import Table

from weft.app.lessons.keeping import BoardKeeper
from weft.app.tracking import tracking_of
from weft.app.updaters import require_balance, run, summary
from weft.catalog.catalog import Catalog
from weft.cli.console.exits import stopped_by_signals
from weft.cli.console.options import Bootstrap, CommonOptions, command, run_job
from weft.cli.console.output import Result
from weft.cli.console.terminal import note, stderr
from weft.consolidation.champion import ChampionFollower
from weft.consolidation.settings import FOLLOW_EVERY_S
from weft.domain.ids import VersionName
from weft.feedback.run.metrics import EventRates, losses_of, partition_progress, write_metrics
from weft.feedback.run.updater import PartitionProgress
from weft.feedback.settings import MS, WITHOUT_KEY
from weft.feedback.store.report import Acceptance
from weft.runtime.clock import system_clock
from weft.runtime.extras import installed
from weft.runtime.process import login
from weft.runtime.settings import HTTP_TIMEOUT_S
from weft.settings import Settings, keep_settings, require_store

log = logging.getLogger(__name__)

_SHOWN = {
    "consumed": "consumed",
    "applied": "applied",
    "duplicate": "duplicate",
    "dead_lettered": "dead",
    "late": "late",
    "waiting": "waiting",
}


@command
def update(
    options: CommonOptions,
    bootstrap: Bootstrap = None,
    until_caught_up: Annotated[bool, typer.Option("--until-caught-up", help="Stop when the log is consumed.")] = False,
    local: Annotated[
        bool,
        typer.Option("--local", help="One updater in this process, without Ray; so it is where Ray is not installed."),
    ] = False,
    accept_loss: Annotated[
        bool, typer.Option("--accept-loss", help="Count records that the log lost unread, and go on without them.")
    ] = False,
) -> Result:
    """Keep the evidence of every partition up with the feedback topic; while it runs on, follow the champion alias."""
    settings = options.settings(bootstrap=bootstrap)
    root = require_store(settings)  # a name mistyped would learn beside the store that searches read, and say nothing
    follower = ChampionFollower(Catalog(root), _Registry(settings), every_s=FOLLOW_EVERY_S, clock=system_clock)
    started, started_ms = time.monotonic(), round(system_clock() * MS)
    paces, connection = EventRates(), ConnectionLog(settings)
    if settings.feedback.key is None:
        log.warning(WITHOUT_KEY)
    if not (local or installed("ray")):
        log.warning("Ray is not installed: one updater runs in this process, as with --local")
        local = True
    has_registry = settings.tracking.uri or not Catalog(root).is_remote  # of its own a host knows its own nights alone
    follows = not until_caught_up and bool(has_registry) and installed("mlflow")
    if not (until_caught_up or follows) and has_registry:
        log.warning("MLflow is not installed: the champion alias is not followed; the extra `night` brings it")

    def show(progress: Sequence[PartitionProgress]) -> None:
        if not connection.has_begun:  # not before: a process that could not start changes nothing
            keep_settings(settings)
        connection.tell(progress)
        live.update(_table(progress), refresh=True)
        write_metrics(root, progress, now=system_clock(), paces=paces.of(progress, at=time.monotonic()))

    # Hooks of agents read a table that is kept beside the store.
    with BoardKeeper(root, settings), Live(console=stderr, auto_refresh=False, transient=True) as live:
        final = run(
            settings,
            local=local,
            until_caught_up=until_caught_up,
            stop=stopped_by_signals().is_set,
            on_progress=show,
            on_tick=follower.tick if follows else lambda: None,
            acceptance=Acceptance(f"{login()}@{socket.gethostname()}", started_ms) if accept_loss else None,
        )
    follower.close(HTTP_TIMEOUT_S)
    stderr.print(_table(final))
    seconds = time.monotonic() - started
    flagged = [asdict(source) for source in partition_progress(root, settings.feedback)[1] if source.flags]
    for source in flagged:
        note(f"{source['kind']} {source['name']}: {source['flags']}")
    facts = {"flagged": flagged, "losses": losses_of(root, settings.feedback), "seconds": round(seconds, 3)}
    return Result([summary(final) | facts], [], then=partial(require_balance, final))


class ConnectionLog:
    """Says in the log that the updaters have begun, that the broker has fallen silent, and that it answers again."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._silent: bool | None = None  # None before anything was told

    @property
    def has_begun(self) -> bool:
        """Whether the updaters have told once where they stand."""
        return self._silent is not None

    def tell(self, progress: Sequence[PartitionProgress]) -> None:
        """Say what has changed since the last time."""
        waiting = [one.report.partition for one in progress if one.answers is False]
        topic, broker_at = self._settings.feedback.topic, self._settings.kafka.bootstrap
        if self._silent is None:
            log.info(
                "%s learns from %s at %s: %d partitions", self._settings.storage.place, topic, broker_at, len(progress)
            )
        if waiting and not self._silent:
            log.warning("no answer from the broker at %s: partitions %s wait, nothing is lost", broker_at, waiting)
        elif self._silent and not waiting:
            log.info("the broker at %s answers again", broker_at)
        self._silent = bool(waiting)


class _Registry:
    """The registry, reached for at the first look: importing MLflow takes longer than catching up often does."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def alias(self, alias: str) -> VersionName | None:
        """The learned version an alias names, None where it names none of weft's."""
        return tracking_of(self._settings.tracking, Path(self._settings.storage.root)).alias(alias)


def _table(progress: Sequence[PartitionProgress]) -> Table:
    table = Table("partition", *_SHOWN.values(), "lag", title="feedback", box=None)
    for partition in progress:
        counts = [f"{getattr(partition.report, name):,}" for name in _SHOWN]
        table.add_row(str(partition.report.partition), *counts, "?" if partition.lag is None else f"{partition.lag:,}")
    return table


main = partial(run_job, update)
"""Run the job on arguments."""
