"""`weft generations`: which generations there are, what is in them, and which one is live (ING-26)."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import pyarrow.parquet as pq
import typer
from rich.table import Column

from weft.catalog.catalog import Catalog
from weft.cli.console.options import AsJson, CommonOptions, require_store, store_command
from weft.cli.console.terminal import print_rows, visible
from weft.domain.errors import StoreError
from weft.domain.ids import GenerationId
from weft.indexes.manifest import CHUNKS_FOLDER, Manifest
from weft.runtime.clock import stamp

Generation = Annotated[str, typer.Argument(help="Id of a generation, or `live`.")]
Older = Annotated[str, typer.Argument(help="Id of the generation; `weft generations list` marks the previous one.")]

LIVE = "live"
_COUNTED = ("documents", "chunks", "contents")

generations = typer.Typer(no_args_is_help=True, help="Immutable, complete sets of indexes; exactly one is live.")


@generations.command("list")
@store_command
def list_generations(options: CommonOptions, as_json: AsJson = False) -> None:
    """Every generation, oldest first."""
    catalog = _catalog(options)
    pointer = catalog.pointer()
    id_column = Column("generation", no_wrap=True)  # it is what the other commands take
    brief = {"parent", "content_hash", "created_at", "counts", "models"}

    def texts(one: Manifest) -> tuple[str, ...]:
        mark = {pointer.previous: "previous", pointer.generation: LIVE}.get(one.id, "")
        counts = (f"{one.counts.get(name, 0):,}" for name in _COUNTED)
        return (mark, one.id, stamp(one.created_at), *counts, one.content_hash[:12])

    print_rows(
        catalog.generations(),
        as_json=as_json,
        document=lambda one: {
            "id": one.id,
            "live": one.id == pointer.generation,
            **one.model_dump(mode="json", include=brief),
        },
        columns=("", id_column, "made", *_COUNTED, "content hash"),
        texts=texts,
    )


@generations.command()
@store_command
def show(generation: Generation, options: CommonOptions) -> None:
    """The manifest of a generation, without the hashes of its files."""
    catalog = _catalog(options)
    manifest = _manifest(catalog, generation)
    sys.stdout.write(json.dumps(manifest.model_dump(mode="json", exclude={"files"}), indent=1) + "\n")


@generations.command()
@store_command
def rejected(generation: Generation = LIVE, *, options: CommonOptions, as_json: AsJson = False) -> None:
    """What could not be read or parsed, and why, by place."""
    catalog = _catalog(options)
    folder = catalog.folder_of(_manifest(catalog, generation).id)
    table = pq.read_table(folder / CHUNKS_FOLDER / "rejected.parquet")
    print_rows(
        sorted(table.to_pylist(), key=lambda row: (row["uri"], row["reason"])),
        as_json=as_json,
        document=lambda row: row,
        columns=("uri", "reason", "detail"),
        texts=lambda row: (row["uri"], row["reason"], row["detail"]),
    )


@generations.command()
@store_command
def verify(generation: Generation, options: CommonOptions) -> None:
    """Compare every file of a generation with its manifest."""
    catalog = _catalog(options)
    manifest = catalog.verify(_resolved(catalog, generation))
    sys.stdout.write(f"{visible(manifest.id)}: {len(manifest.files)} files are as they were written\n")


@generations.command()
@store_command
def rollback(generation: Older, options: CommonOptions) -> None:
    """Make an older generation live again, after verifying it."""
    pointer = _catalog(options).rollback(GenerationId(generation))
    sys.stdout.write(visible(f"{pointer.generation} is live, instead of {pointer.previous or 'none'}") + "\n")


@generations.command()
@store_command
def prune(
    keep: Annotated[int, typer.Option("--keep", min=0, help="Newest generations to keep.")], options: CommonOptions
) -> None:
    """Remove old generations; the live one and the one before it always stay."""
    catalog = _catalog(options)
    removed = [*catalog.prune(keep), *(path.name for path in catalog.clean_leftovers())]
    sys.stdout.write("".join(f"removed {visible(name)}\n" for name in removed) or "nothing to remove\n")


def _catalog(options: CommonOptions) -> Catalog:
    return Catalog(require_store(options.settings()))


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
