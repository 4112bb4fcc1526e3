"""The updaters of a store: run to their end, or beside something else in one process; and what they report."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from weft.catalog.catalog import Catalog
from weft.catalog.staging import StagingArea
from weft.domain.errors import BrokerUnavailableError, StoreError
from weft.feedback.run.actors import Task, run_updaters
from weft.feedback.run.updater import PartitionProgress
from weft.feedback.store.report import COUNTS, Acceptance
from weft.settings import Settings


def run(
    settings: Settings,
    *,
    local: bool,
    until_caught_up: bool,
    stop: Callable[[], bool] = lambda: False,
    on_progress: Callable[[Sequence[PartitionProgress]], None] = lambda _: None,
    on_tick: Callable[[], None] = lambda: None,
    impatient: bool = False,
    acceptance: Acceptance | None = None,  # by whom records are given up that the log has lost by now
) -> list[PartitionProgress]:
    """Run the updaters that the settings describe; see `run_updaters`."""
    task = Task(
        store=Path(settings.storage.root).absolute(),
        kafka=settings.kafka,
        feedback=settings.feedback,
        unreachable_s=settings.feedback.unreachable_s if until_caught_up or impatient else None,
        embedding=settings.embedding,
    )
    return run_updaters(
        task,
        cluster=None if local else settings.cluster,
        until_caught_up=until_caught_up,
        stop=stop,
        on_progress=on_progress,
        on_tick=on_tick,
        acceptance=acceptance,
    )


def summary(progress: Sequence[PartitionProgress]) -> dict[str, Any]:
    """Counts per partition and in total, for machines."""
    partitions: list[dict[str, Any]] = [
        {
            "partition": each.report.partition,
            "next_offset": each.report.next_offset,
            "lag": each.lag,
            "open_transaction_s": each.open_transaction_s,
            "epoch": each.report.epoch,
            **each.report.counts,
            "dead_letters": dict(each.report.reasons),
        }
        for each in progress
    ]
    totals = {name: sum(row[name] for row in partitions) for name in COUNTS}
    return {**totals, "balanced": all(one.report.balanced for one in progress), "partitions": partitions}


def require_balance(progress: Sequence[PartitionProgress]) -> None:
    """Check that every consumed record has exactly one fate (FBK-5).

    Raises:
        StoreError: Naming the partitions that do not add up.
    """
    if wrong := [one.report.partition for one in progress if not one.report.balanced]:
        raise StoreError(
            f"partitions {wrong}: expected consumed = applied + duplicate + dead-lettered + late, found otherwise: "
            "the store is damaged; bring back a copy of it, or delete updaters/<partition> to replay what the topic "
            "still holds"
        )


class BackgroundUpdaters:
    """The updaters of a store as Ray actors, driven by a thread of their own while a block runs.

    What fails in them is raised where somebody waits for them, a broker that is silent for too long included.
    """

    def __init__(self, settings: Settings, *, local: bool = False) -> None:
        self._settings = settings
        self._local = local
        self._stop = threading.Event()
        self._changed = threading.Condition()
        self._round = 0
        self._progress: Sequence[PartitionProgress] = ()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="updaters", daemon=True)

    def __enter__(self) -> BackgroundUpdaters:
        self._thread.start()
        self._await_rounds(1)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def caught_up(self, timeout_s: float = 120.0) -> Sequence[PartitionProgress]:
        """Wait until everything that was acknowledged before this call is consumed and published.

        Raises:
            BrokerUnavailableError: That did not happen in time.
        """
        deadline = time.monotonic() + timeout_s
        # A lag of 0 may have been measured before the last record was sent, and what is published follows what is
        # committed by a round: only two rounds begun after this call say both.
        self._await_rounds(2)
        while any(each.lag != 0 for each in self._progress):
            if time.monotonic() > deadline:
                lags = [each.lag for each in self._progress]
                raise BrokerUnavailableError(
                    f"updaters: expected to catch up within {timeout_s:g} s, still behind by {lags}"
                )
            self._await_rounds(1)
        self._await_rounds(1)
        return self._progress

    def _run(self) -> None:
        try:
            run(
                self._settings,
                local=self._local,
                until_caught_up=False,
                stop=self._stop.is_set,
                on_progress=self._on_progress,
                impatient=True,
            )
        except BaseException as error:  # noqa: BLE001  handed to the thread that waits
            self._failure = error
            with self._changed:
                self._changed.notify_all()

    def _on_progress(self, progress: Sequence[PartitionProgress]) -> None:
        with self._changed:
            self._progress = progress
            self._round += 1
            self._changed.notify_all()

    def _await_rounds(self, count: int) -> None:
        with self._changed:
            wanted = self._round + count
            self._changed.wait_for(lambda: self._round >= wanted or self._failure is not None)
        if self._failure is not None:
            raise self._failure


@contextmanager
def isolated_store(settings: Settings) -> Iterator[Settings]:
    """The settings with a store that shares the generation and nothing else, and is removed in the end.

    What killed processes left of theirs is removed first; those of running ones stay.
    """
    root = Path(settings.storage.root)
    beside = StagingArea(root.parent)
    beside.clean_leftovers()
    own = beside.stage()
    try:
        generation = Catalog(root).pointer().generation
        place = Path("generations") / str(generation)
        shutil.copytree(root / place, own / place, copy_function=os.link)
        shutil.copy(root / "current.json", own / "current.json")
        yield settings.model_copy(update={"storage": settings.storage.model_copy(update={"root": str(own)})})
    finally:
        beside.release(own)
