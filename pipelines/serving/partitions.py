"""The partitions of a store, for commands that look into them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pipelines.domain.errors import StoreError
from pipelines.feedback.settings import FeedbackSettings
from pipelines.feedback.state import PartitionState
from pipelines.feedback.updater import UPDATERS
from pipelines.serving.terminal import root_of
from pipelines.settings import Settings


def states(settings: Settings, store: Path | None, partition: int | None = None) -> Iterator[PartitionState]:
    """Each partition's state, open until the next is asked for; one alone where a partition is named.

    Raises:
        StoreError: There is no such partition.
    """
    root = root_of(store, settings) / UPDATERS
    found = sorted(int(folder.name) for folder in root.glob("*") if folder.name.isdecimal())
    if partition is not None and partition not in found:
        raise StoreError(f"{root}: expected a store of partition {partition}, found {found}")
    for number in found if partition is None else [partition]:
        yield from _opened(root / str(number), number, settings.feedback)


def _opened(folder: Path, partition: int, rules: FeedbackSettings) -> Iterator[PartitionState]:
    state = PartitionState(folder, partition, rules)
    try:
        yield state
    finally:
        state.close()
