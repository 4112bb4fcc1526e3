"""The partitions of a store, for commands that look into them."""

from __future__ import annotations

from collections.abc import Iterator

from weft.domain.errors import StoreError
from weft.feedback.run.partitions import partitions_in, states_in
from weft.feedback.store.state import PartitionState
from weft.settings import Settings, require_store


def states(settings: Settings, partition: int | None = None) -> Iterator[PartitionState]:
    """Each partition's state, open until the next is asked for; one alone where a partition is named."""
    root = require_store(settings)
    partitions = partitions_in(root)
    if partition is not None and partition not in partitions:
        raise StoreError(f"{root}: expected a store of partition {partition}, found {partitions}")
    claimed = 0
    for state in states_in(root, settings.feedback, partitions if partition is None else [partition]):
        claimed += 1
        yield state
    if partition is not None and not claimed:
        raise StoreError(
            f"{root}: expected a store of partition {partition}, found one that no updater has claimed yet"
        )
