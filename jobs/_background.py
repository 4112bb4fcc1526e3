"""Updaters that run beside something else in one process, and a store that is theirs alone."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from jobs import update
from pipelines.catalog.catalog import Catalog
from pipelines.catalog.staging import StagingArea
from pipelines.domain.errors import BrokerUnavailableError
from pipelines.feedback.run.updater import PartitionProgress
from pipelines.settings import Settings


class BackgroundUpdaters:
    """The updaters of a store as Ray actors, driven by a thread of their own while a block runs.

    What fails in them is raised where somebody waits for them, a broker that is silent for too long included.

    Args:
        local: One updater in that thread instead.
    """

    def __init__(self, settings: Settings, *, local: bool = False) -> None:
        self._settings = settings
        self._local = local
        self._stop = threading.Event()
        self._told = threading.Condition()
        self._round = 0
        self._standings: Sequence[PartitionProgress] = ()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="updaters", daemon=True)

    def __enter__(self) -> BackgroundUpdaters:
        self._thread.start()
        self._await_rounds(1)
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
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
        while any(standing.lag != 0 for standing in self._standings):
            if time.monotonic() > deadline:
                lags = [standing.lag for standing in self._standings]
                raise BrokerUnavailableError(
                    f"updaters: expected to catch up within {timeout_s:g} s, still behind by {lags}"
                )
            self._await_rounds(1)
        self._await_rounds(1)
        return self._standings

    def _run(self) -> None:
        try:
            update.run(
                self._settings,
                local=self._local,
                until_caught_up=False,
                stop=self._stop.is_set,
                on_progress=self._hear,
                impatient=True,
            )
        except BaseException as error:  # noqa: BLE001  handed to the thread that waits
            self._failure = error
            with self._told:
                self._told.notify_all()

    def _hear(self, standings: Sequence[PartitionProgress]) -> None:
        with self._told:
            self._standings = standings
            self._round += 1
            self._told.notify_all()

    def _await_rounds(self, count: int) -> None:
        with self._told:
            wanted = self._round + count
            self._told.wait_for(lambda: self._round >= wanted or self._failure is not None)
        if self._failure is not None:
            raise self._failure


@contextmanager
def apart(settings: Settings) -> Iterator[Settings]:
    """The settings with a store that shares the generation and nothing else, and is removed in the end.

    What killed processes left of theirs is removed first; those of running ones stay.
    """
    root = Path(settings.storage.root)
    beside = StagingArea(root.parent)
    beside.clean_leftovers()
    own = beside.stage()
    try:
        generation = Catalog(root).pointer().generation
        shutil.copytree(
            root / "generations" / str(generation), own / "generations" / str(generation), copy_function=_linked
        )
        shutil.copy(root / "current.json", own / "current.json")
        yield settings.model_copy(update={"storage": settings.storage.model_copy(update={"root": str(own)})})
    finally:
        beside.release(own)


def _linked(source: str, target: str) -> None:
    Path(target).hardlink_to(source)
