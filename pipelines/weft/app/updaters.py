"""The updaters of a store: run to their end, and what they report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from weft.domain.errors import StoreError
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
    """Check that every consumed record has exactly one fate (FBK-5)."""
    if wrong := [one.report.partition for one in progress if not one.report.balanced]:
        raise StoreError(
            f"partitions {wrong}: expected consumed = applied + duplicate + dead-lettered + late, found otherwise: "
            "the store is damaged; bring back a copy of it, or delete updaters/<partition> to replay what the topic "
            "still holds"
        )
