"""Stores that are taught: their updaters beside a block, and stores of their own over one generation."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from weft.app.updaters import run
from weft.catalog.catalog import Catalog
from weft.catalog.staging import StagingArea
from weft.domain.errors import BrokerUnavailableError
from weft.feedback.run.updater import PartitionProgress
from weft.settings import Settings


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
