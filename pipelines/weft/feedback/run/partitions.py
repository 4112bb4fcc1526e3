"""The partitions of a store: claimed by an updater, or looked into by anybody while updaters may own them."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Iterator
from pathlib import Path

from weft.domain.errors import CorruptionError
from weft.feedback.publish.snapshot import repair_snapshot
from weft.feedback.settings import FeedbackSettings
from weft.feedback.store.checkpoints import checkpoints_in, exclusive_folder, is_lost, restore, write_checkpoint
from weft.feedback.store.heads import show, take_over
from weft.feedback.store.report import Acceptance, was_claimed
from weft.feedback.store.state import STATE_FILE, PartitionState
from weft.runtime.kafka.log import LogFacts
from weft.runtime.storage.working_copy import working_copy_of

_log = logging.getLogger(__name__)

UPDATERS = "updaters"
"""Folder of a store with one folder per partition, named by its number."""


def partition_folder(store: Path, partition: int) -> Path:
    """Where a partition's state and snapshot lie below a store's root."""
    return store / UPDATERS / str(partition)


def partitions_in(store: Path) -> list[int]:
    """Numbers of the partitions that a store has or had a state of; not of those that were never claimed."""
    folders = [folder for folder in (store / UPDATERS).glob("*") if folder.name.isdecimal()]
    if (copy := working_copy_of(store)) is not None:
        copy.follow()
        folders = [folder for folder in (store / UPDATERS).glob("*") if folder.name.isdecimal()]
        for folder in folders:
            show(folder)
    return sorted(int(folder.name) for folder in folders if (folder / STATE_FILE).exists() or is_lost(folder))


def states_in(
    store: Path, rules: FeedbackSettings, partitions: Iterable[int] | None = None
) -> Iterator[PartitionState]:
    """Each partition's state, open until the next is asked for: all of them, or those that are named."""
    for partition in partitions_in(store) if partitions is None else partitions:
        folder = partition_folder(store, partition)
        if is_lost(folder):
            raise CorruptionError(
                f"{folder / STATE_FILE}: expected a partition's state, found none beside its checkpoints; start the "
                "updaters: whichever opens it restores it"
            )
        try:
            state = PartitionState(folder, partition, rules)
        except FileNotFoundError:  # it is being taken over here: there is another in a moment
            continue
        with contextlib.closing(state):
            if state.read(was_claimed) or checkpoints_in(folder):
                yield state


def claimed(
    folder: Path,
    partition: int,
    rules: FeedbackSettings,
    facts: LogFacts,
    *,
    log_start: int,  # oldest offset of the log, as the topic counts
    acceptance: Acceptance | None = None,  # by whom unread records that the log lost are given up now
) -> PartitionState:
    """A partition's state, owned; a damaged one is restored from its newest intact checkpoint, or from the log."""
    with exclusive_folder(folder, rules.patience):
        epoch = take_over(folder)
        if is_lost(folder):
            restore(folder, "there is none", log_start=log_start)

        def claim() -> PartitionState:
            return _claimed(folder, partition, rules, facts, log_start=log_start, acceptance=acceptance, epoch=epoch)

        try:
            return claim()
        except CorruptionError as error:
            _log.warning("%s; looking once more", error)
        try:  # what does not show again was no damage: memory that ran out within SQLite looks like it, once
            return claim()
        except CorruptionError as error:
            restore(folder, str(error), log_start=log_start)
        return claim()


def _claimed(
    folder: Path,
    partition: int,
    rules: FeedbackSettings,
    facts: LogFacts,
    *,
    log_start: int,
    acceptance: Acceptance | None,
    epoch: int | None,
) -> PartitionState:
    state = PartitionState(folder, partition, rules)
    try:
        state.claim(facts, log_start=log_start, acceptance=acceptance, epoch=epoch)
        repair_snapshot(state)
        if acceptance is not None or not checkpoints_in(folder):
            write_checkpoint(state)
    except BaseException:
        state.close()
        raise
    return state
