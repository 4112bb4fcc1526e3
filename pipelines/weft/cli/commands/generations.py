"""`weft generations`: which generations there are, what is in them, and which one is live (ING-26)."""

from __future__ import annotations

from typing import Annotated

import pyarrow.parquet as pq
import typer
from rich.table import Column

from weft.catalog.catalog import Catalog
from weft.cli.console.options import CommonOptions, command
from weft.cli.console.output import Result, indented, rows
from weft.domain.errors import StoreError
from weft.domain.ids import GenerationId
from weft.indexes.manifest import Manifest, tables_of
from weft.runtime.clock import stamp

Generation = Annotated[str, typer.Argument(help="Id of a generation, or `live`.")]
Older = Annotated[str, typer.Argument(help="Id of the generation; `weft generations list` marks the previous one.")]

LIVE = "live"
_COUNTED = ("documents", "chunks", "contents")

generations = typer.Typer(no_args_is_help=True, help="Immutable, complete sets of indexes; exactly one is live.")


@generations.command("list")
@command
def list_generations(options: CommonOptions) -> Result:
    """Every generation, oldest first."""
    _, catalog = options.opened()
    pointer = catalog.pointer()
    id_column = Column("generation", no_wrap=True)  # it is what the other commands take
    brief = {"parent", "content_hash", "created_at", "counts", "models"}

    def texts(one: Manifest) -> tuple[str, ...]:
        mark = {pointer.previous: "previous", pointer.generation: LIVE}.get(one.id, "")
        counts = (f"{one.counts.get(name, 0):,}" for name in _COUNTED)
        return (mark, one.id, stamp(one.created_at), *counts, one.content_hash[:12])

    return rows(
        catalog.generations(),
        document=lambda one: {
            "id": one.id,
            "live": one.id == pointer.generation,
            **one.model_dump(mode="json", include=brief),
        },
        columns=("", id_column, "made", *_COUNTED, "content hash"),
        texts=texts,
    )


@generations.command()
@command
def show(generation: Generation, options: CommonOptions) -> Result:
    """The manifest of a generation, without the hashes of its files."""
    _, catalog = options.opened()
    manifest = _manifest(catalog, generation)
    return indented(manifest.model_dump(mode="json", exclude={"files"}))


@generations.command()
@command
def rejected(generation: Generation = LIVE, *, options: CommonOptions) -> Result:
    """What could not be read or parsed, and why, by place."""
    _, catalog = options.opened()
    folder = catalog.folder_of(_manifest(catalog, generation).id)
    noted = [row for file in tables_of(folder, "rejected") for row in pq.read_table(file).to_pylist()]
    return rows(
        sorted(noted, key=lambda row: (row["uri"], row["reason"])),
        document=lambda row: row,
        columns=("uri", "reason", "detail"),
        texts=lambda row: (row["uri"], row["reason"], row["detail"]),
    )


@generations.command()
@command
def verify(generation: Generation, options: CommonOptions) -> Result:
    """Compare every file of a generation with its manifest."""
    _, catalog = options.opened()
    manifest = catalog.verify(_resolved(catalog, generation))
    facts = {"generation": manifest.id, "files": len(manifest.files)}
    return Result([facts], [f"{manifest.id}: {len(manifest.files)} files are as they were written"])


@generations.command()
@command
def rollback(generation: Older, options: CommonOptions) -> Result:
    """Make an older generation live again, after verifying it."""
    pointer = options.opened()[1].rollback(GenerationId(generation))
    facts = {"live": pointer.generation, "previous": pointer.previous}
    return Result([facts], [f"{pointer.generation} is live, instead of {pointer.previous or 'none'}"])


@generations.command()
@command
def prune(
    keep: Annotated[int, typer.Option("--keep", min=0, help="Newest generations to keep.")], options: CommonOptions
) -> Result:
    """Remove old generations; the live one and the one before it always stay."""
    _, catalog = options.opened()
    removed = [*catalog.prune(keep), *(path.name for path in catalog.clean_leftovers())]
    return Result([{"removed": removed}], [f"removed {name}" for name in removed] or ["nothing to remove"])


def _resolved(catalog: Catalog, generation: str) -> GenerationId:
    if generation != LIVE:
        return GenerationId(generation)
    live = catalog.pointer().generation
    if live is None:
        raise StoreError("expected a live generation, found none: run `weft index`")
    return live


def _manifest(catalog: Catalog, generation: str) -> Manifest:
    wanted = _resolved(catalog, generation)
    for manifest in catalog.generations():
        if manifest.id == wanted:
            return manifest
    raise StoreError(f"expected a generation, found no {wanted}; list them with `weft generations list`")
