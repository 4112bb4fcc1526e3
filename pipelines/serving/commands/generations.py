"""`weft generations`: which generations there are, what is in them, and which one is live (ING-26)."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import pyarrow.parquet as pq
import typer
from rich.table import Column, Table

from pipelines.catalog.catalog import Catalog
from pipelines.catalog.pointer import Pointer
from pipelines.domain.errors import StoreError
from pipelines.domain.ids import GenerationId
from pipelines.indexes.manifest import CHUNKS_FOLDER, Manifest
from pipelines.serving.terminal import (
    AsJson,
    Conf,
    Store,
    cells,
    print_lines,
    root_of,
    settings_of,
    stamp,
    tell,
    visible,
)

Generation = Annotated[str, typer.Argument(help="Id of a generation, or `live`.")]
Older = Annotated[str, typer.Argument(help="Id of the generation; `weft generations list` marks the previous one.")]

LIVE = "live"

generations = typer.Typer(no_args_is_help=True, help="Immutable, complete sets of indexes; exactly one is live.")


@generations.command("list")
def list_generations(store: Store = None, conf: Conf = [], as_json: AsJson = False) -> None:  # noqa: B006
    """Every generation, oldest first."""
    catalog = _catalog(store, conf)
    pointer, manifests = catalog.pointer(), catalog.generations()
    if as_json:
        print_lines({"id": one.id, "live": one.id == pointer.generation, **_brief(one)} for one in manifests)
        return
    id_column = Column("generation", no_wrap=True)  # it is what the other commands take
    table = Table("", id_column, "made", "documents", "chunks", "contents", "content hash", box=None)
    for manifest in manifests:
        counts = [f"{manifest.counts.get(name, 0):,}" for name in ("documents", "chunks", "contents")]
        made = stamp(manifest.created_at)
        table.add_row(*cells(_mark(manifest.id, pointer), manifest.id, made, *counts, manifest.content_hash[:12]))
    tell(table)


@generations.command()
def show(generation: Generation, store: Store = None, conf: Conf = []) -> None:  # noqa: B006
    """The manifest of a generation, without the hashes of its files."""
    catalog = _catalog(store, conf)
    manifest = _manifest(catalog, generation)
    sys.stdout.write(json.dumps(manifest.model_dump(mode="json", exclude={"files"}), indent=1) + "\n")


@generations.command()
def rejected(
    generation: Annotated[str, typer.Argument(help="Id of a generation, or `live`.")] = LIVE,
    *,
    store: Store = None,
    conf: Conf = [],  # noqa: B006
    as_json: AsJson = False,
) -> None:
    """What could not be read or parsed, and why, by place."""
    catalog = _catalog(store, conf)
    folder = catalog.folder_of(_manifest(catalog, generation).id)
    table = pq.read_table(folder / CHUNKS_FOLDER / "rejected.parquet")
    rows = sorted(table.to_pylist(), key=lambda row: (row["uri"], row["reason"]))
    if as_json:
        print_lines(rows)
        return
    shown = Table("uri", "reason", "detail", box=None)
    for row in rows:
        shown.add_row(*cells(row["uri"], row["reason"], row["detail"]))
    tell(shown)


@generations.command()
def verify(generation: Generation, store: Store = None, conf: Conf = []) -> None:  # noqa: B006
    """Compare every file of a generation with its manifest."""
    catalog = _catalog(store, conf)
    manifest = catalog.verify(_resolved(catalog, generation))
    sys.stdout.write(f"{visible(manifest.id)}: {len(manifest.files)} files are as they were written\n")


@generations.command()
def rollback(generation: Older, store: Store = None, conf: Conf = []) -> None:  # noqa: B006
    """Make an older generation live again, after verifying it."""
    pointer = _catalog(store, conf).rollback(GenerationId(generation))
    sys.stdout.write(visible(f"{pointer.generation} is live, instead of {pointer.previous or 'none'}") + "\n")


@generations.command()
def prune(
    keep: Annotated[int, typer.Option("--keep", min=0, help="Newest generations to keep.")],
    store: Store = None,
    conf: Conf = [],  # noqa: B006
) -> None:
    """Remove old generations; the live one and the one before it always stay."""
    catalog = _catalog(store, conf)
    removed = [*catalog.prune(keep), *(path.name for path in catalog.clean_leftovers())]
    sys.stdout.write("".join(f"removed {visible(name)}\n" for name in removed) or "nothing to remove\n")


def _catalog(store: Path | None, conf: Sequence[Path]) -> Catalog:
    return Catalog(root_of(store, settings_of(conf, [], store)))


def _resolved(catalog: Catalog, generation: str) -> GenerationId:
    if generation != LIVE:
        return GenerationId(generation)
    live = catalog.pointer().generation
    if live is None:
        raise StoreError("expected a live generation, found none: run `python -m jobs.reindex`")
    return live


def _manifest(catalog: Catalog, generation: str) -> Manifest:
    wanted = _resolved(catalog, generation)
    for manifest in catalog.generations():
        if manifest.id == wanted:
            return manifest
    raise StoreError(f"expected a generation, found no {wanted}; list them with `weft generations list`")


def _mark(generation: GenerationId, pointer: Pointer) -> str:
    return {pointer.previous: "previous", pointer.generation: LIVE}.get(generation, "")


def _brief(manifest: Manifest) -> dict[str, object]:
    return manifest.model_dump(mode="json", include={"parent", "content_hash", "created_at", "counts", "models"})
