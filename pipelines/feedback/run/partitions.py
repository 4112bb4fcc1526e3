"""The partitions of a store, for whoever looks into them while updaters may own them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from pipelines.domain.errors import CorruptionError
from pipelines.feedback.run.updater import UPDATERS, partition_folder
from pipelines.feedback.settings import FeedbackSettings
from pipelines.feedback.store.checkpoints import checkpoints_in, is_lost
from pipelines.feedback.store.state import STATE_FILE, PartitionState


def partitions_in(store: Path) -> list[int]:
    """Numbers of the partitions that a store has or had a state of; not of those that were never claimed."""
    folders = (folder for folder in (store / UPDATERS).glob("*") if folder.name.isdecimal())
    return sorted(int(folder.name) for folder in folders if (folder / STATE_FILE).exists() or is_lost(folder))


def states_in(
    store: Path, rules: FeedbackSettings, partitions: Iterable[int] | None = None
) -> Iterator[PartitionState]:
    """Each partition's state, open until the next is asked for: all of them, or those that are named.

    One that an updater is just making, and has not claimed yet, tells nothing and is left out.

    Raises:
        CorruptionError: A state is lost. Opening it would make an empty one, in whose place no updater restores any.
    """
    for partition in partitions_in(store) if partitions is None else partitions:
        folder = partition_folder(store, partition)
        if is_lost(folder):
            raise CorruptionError(
                f"{folder / STATE_FILE}: expected a partition's state, found none beside its checkpoints; start the "
                "updaters: whichever opens it restores it"
            )
        with contextlib.closing(PartitionState(folder, partition, rules)) as state:
            if state.was_claimed() or checkpoints_in(folder):
                yield state
