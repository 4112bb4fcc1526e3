"""What searches read of a partition: its evidence as one Parquet file, replaced whole (FBK-7)."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow.parquet as pq

from pipelines.feedback.state import PartitionState
from pipelines.runtime.files import write_atomically

NAME = "evidence.parquet"


def publish_snapshot(state: PartitionState) -> Path:
    """Write a partition's evidence beside its state.

    The file's metadata says how far it reaches: `weft.partition`, `weft.offset` (the next one), `weft.epoch`,
    `weft.topic`, `weft.topic_id`. The partition is held still meanwhile, so that an updater which lost it can
    never lay an older snapshot over a newer one.

    Raises:
        FencedError: Another updater owns the partition; its snapshot stands.
    """
    path = state.folder / NAME
    with state.owned() as (report, evidence):
        facts = {
            "weft.partition": report.partition,
            "weft.offset": report.next_offset,
            "weft.epoch": report.epoch,
            "weft.topic": report.topic,
            "weft.topic_id": report.topic_id,
        }
        table = evidence.to_table().replace_schema_metadata({name: str(value) for name, value in facts.items()})
        buffer = io.BytesIO()
        pq.write_table(table, buffer, write_page_checksum=True)
        write_atomically(path, buffer.getvalue())
    return path
