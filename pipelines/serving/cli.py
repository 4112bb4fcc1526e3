"""The `weft` command: look at what is published and change what is live.

Exit codes: 0 done, 1 refused with a one-line reason on stderr, 2 wrong usage.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import pyarrow.parquet as pq
import typer
from rich.table import Column, Table

from pipelines.catalog.catalog import Catalog
from pipelines.catalog.pointer import Pointer
from pipelines.domain.errors import StoreError, WeftError
from pipelines.domain.ids import GenerationId
from pipelines.indexes.generation import CHUNKS_FOLDER
from pipelines.indexes.manifest import Manifest
from pipelines.serving.attribution import attribute
from pipelines.serving.dlq import dlq
from pipelines.serving.feedback_status import feedback
from pipelines.serving.learned import learned
from pipelines.serving.queries import queries
from pipelines.serving.sessions import sessions
from pipelines.serving.terminal import (
    AsJson,
    Conf,
    LogLines,
    Store,
    cells,
    machines,
    print_lines,
    refusal,
    root_of,
    stamp,
    tell,
    visible,
)
from pipelines.serving.ubi import send_ubi
from pipelines.settings import load_settings

Generation = Annotated[str, typer.Argument(help="Id of a generation, or `live`.")]
Older = Annotated[str, typer.Argument(help="Id of the generation; `weft generations list` marks the previous one.")]

LIVE = "live"

weft = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="Look at what a store holds, and change what is live.",
)
generations = typer.Typer(no_args_is_help=True, help="Immutable, complete sets of indexes; exactly one is live.")
weft.add_typer(generations, name="generations")
weft.add_typer(learned, name="learned")
weft.add_typer(dlq, name="dlq")
weft.add_typer(feedback, name="feedback")
weft.add_typer(sessions, name="sessions")
weft.add_typer(queries, name="queries")
weft.command("ubi")(send_ubi)
weft.command("attribute")(attribute)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogLines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    try:
        weft(args=None if argv is None else list(argv))
    except WeftError as error:
        sys.stderr.write(refusal("weft", error))
        return 1
    except OSError as error:
        sys.stderr.write(refusal("weft", machines(error)))
        return 1
    except SystemExit as ended:  # typer reports wrong usage and --help itself
        return int(ended.code or 0)
    return 0


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
    return Catalog(root_of(store, load_settings(conf)))


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
