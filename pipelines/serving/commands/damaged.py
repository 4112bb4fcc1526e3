"""`weft feedback damaged`: states that updaters set aside, which stay until a person removes them (OPS-15)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from rich.table import Table

from pipelines.domain.errors import StoreError
from pipelines.feedback.run.updater import UPDATERS, partition_folder
from pipelines.feedback.store.damaged import damaged_in, remove_damaged
from pipelines.serving.terminal import AsJson, Conf, Store, cells, print_lines, root_of, stamp, tell
from pipelines.settings import load_settings

damaged = typer.Typer(no_args_is_help=True, help="Damaged states that updaters set aside; no run removes them.")


class _DamagedState(NamedTuple):
    partition: int
    folder: str
    bytes: int
    set_aside_at: float


@damaged.command("list")
def list_damaged(store: Store = None, conf: Conf = [], as_json: AsJson = False) -> None:  # noqa: B006
    """Every state that was set aside, by partition, oldest first."""
    root = root_of(store, load_settings(conf))
    rows = [
        _DamagedState(partition, str(folder), _bytes(folder), folder.stat().st_mtime)
        for partition in _partitions(root)
        for folder in damaged_in(partition_folder(root, partition))
    ]
    if as_json:
        print_lines(row._asdict() for row in rows)
        return
    table = Table("partition", "folder", "bytes", "set aside", box=None)
    for row in rows:
        table.add_row(*cells(str(row.partition), row.folder, f"{row.bytes:,}", stamp(row.set_aside_at)))
    tell(table)


@damaged.command()
def remove(
    partition: Annotated[int, typer.Argument(min=0, help="Number of the partition.")],
    store: Store = None,
    conf: Conf = [],  # noqa: B006
) -> None:
    """Remove all damaged states of a partition, for good."""
    root = root_of(store, load_settings(conf))
    if not (count := remove_damaged(partition_folder(root, partition))):
        raise StoreError(
            f"{root}: expected damaged states of partition {partition}, found none; `weft feedback damaged list` names"
            " those that there are"
        )
    sys.stdout.write(f"removed {count}\n")


def _partitions(root: Path) -> list[int]:
    return sorted(int(folder.name) for folder in (root / UPDATERS).glob("*") if folder.name.isdecimal())


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
