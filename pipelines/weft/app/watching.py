"""Following sources: what is saved in them is searched some seconds later (ING-25)."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from watchfiles import Change, watch

from weft.app.indexing import LOCK, run
from weft.catalog.catalog import Catalog
from weft.domain.errors import ConfigurationError, WeftError
from weft.domain.ids import GenerationId
from weft.ingestion.pipeline import warm
from weft.ingestion.plan import IndexPlan
from weft.ingestion.report import IndexOutcome
from weft.runtime.reuse import reusing
from weft.runtime.stages import HERE
from weft.runtime.storage.locks import exclusive_lock

SPARED = 4
"""Newest generations of a store that following spares, of those it made: searches may still be over one of them."""

_QUIET_MS, _LONGEST_MS = 100, 1_600  # without a change before a run begins; and for how long changes may put it off
_TICK_MS = 1_000  # how often sources that are files are looked at
_AGAIN_S = 5.0  # after a run that failed


@dataclass(frozen=True, slots=True)
class Followed:
    """What became of one run."""

    outcome: IndexOutcome | None  # None where it failed: what was live stays, and it is tried again
    trouble: str  # why it failed; empty where it did not
    seconds: float  # from when its changes were seen


def follow(plan: IndexPlan, stop: threading.Event) -> Iterator[Followed]:
    """Index what changes in the sources of a plan, in this process and one change after the other, until `stop` is set.

    The first run takes what changed before it was watched. Models stay loaded. Chunks keep their sizes, and from when
    on a match counts as an answer stays as it was found out last. Generations in between are removed: of those made
    here the newest `SPARED` stay, and what is live.

    Raises:
        ConfigurationError: There is nothing to watch.
        WeftError: A model cannot be loaded, or the system lets nobody watch so many folders.
    """
    if not plan.places:
        raise ConfigurationError("expected sources to watch, found none: name one, or declare it under `sources:`")
    plan = replace(plan, full=False, resized=False, retrained=False, describe=None, described_least=0.0)
    catalog, made = Catalog(plan.store), list[GenerationId]()
    with reusing():
        warm(plan, catalog)
        while not stop.is_set():
            for followed in _runs(plan, stop):
                if followed.outcome is not None and followed.outcome.published:
                    made.append(followed.outcome.generation)
                    made = sorted(set(made).difference(catalog.prune(SPARED, among=made)))
                yield followed
            stop.wait(_AGAIN_S)


def _runs(plan: IndexPlan, stop: threading.Event) -> Iterator[Followed]:
    """A run at once and after every change, up to one that fails: a folder that is gone is not watched any more."""
    is_due = True
    for changed in _changes(plan, stop):
        if changed or is_due:
            is_due = False
            yield (followed := _run(plan))
            if followed.outcome is None:
                return


def _run(plan: IndexPlan) -> Followed:
    begun = time.monotonic()
    try:
        # Not held between runs: a night, or somebody else, may index the store, too.
        with exclusive_lock(plan.store / LOCK, f"indexing {plan.store}"):
            outcome = run(plan, executor=HERE)
    except (WeftError, OSError) as error:
        return Followed(None, str(error), time.monotonic() - begun)
    return Followed(outcome, "", time.monotonic() - begun)


def _changes(plan: IndexPlan, stop: threading.Event) -> Iterator[bool]:
    """Whether something changed, as soon as it did, and otherwise every second."""
    folders = [place for place in plan.places if place.is_dir()]
    files = [place for place in plan.places if not place.is_dir()]
    stamps = _stamps(files)
    for changes in watch(
        *folders,
        watch_filter=partial(_concerns, folders, plan.store, frozenset(plan.ingest.skipped_names)),
        debounce=_LONGEST_MS,
        step=_QUIET_MS,
        stop_event=stop,
        rust_timeout=_TICK_MS,
        yield_on_timeout=True,
        raise_interrupt=False,
    ):
        # A file is looked at by its name: editors put another in its place, and a watch would stay with the old one.
        before, stamps = stamps, _stamps(files)
        yield bool(changes) or stamps != before


def _concerns(folders: Sequence[Path], store: Path, skipped: frozenset[str], _: Change, changed: str) -> bool:
    """Whether a changed path may be read at all: what rules of git leave out, a run tells."""
    path = Path(changed)
    above = next((folder for folder in folders if path.is_relative_to(folder)), None)
    names = () if above is None else path.relative_to(above).parts
    return not path.is_relative_to(store) and skipped.isdisjoint(names)


def _stamps(files: Sequence[Path]) -> list[tuple[int, int, int] | None]:
    return [_stamp(file) for file in files]


def _stamp(file: Path) -> tuple[int, int, int] | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
