"""`weft store`: a store in another folder, with what MLflow recorded of it in the right place (CON-7a)."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Annotated

import typer

from weft.app.retention import prune
from weft.catalog.store_id import STORE_FILE
from weft.cli.console.options import CommonOptions, command
from weft.cli.console.output import Result
from weft.domain.errors import StoreError
from weft.runtime.storage.errors import refused
from weft.runtime.storage.locks import users_of
from weft.runtime.storage.working_copy import url_of

store = typer.Typer(no_args_is_help=True, help="Move a store to another folder, or remove what is old of it.")

_MARKS = (STORE_FILE, "generations", "learned")  # one of which every store has, however old it is


@store.command()
@command
def move(
    old: Annotated[Path, typer.Argument(help="The folder that it is in.")],
    new: Annotated[Path, typer.Argument(help="The folder that it is to be; there must be none yet.")],
) -> Result:
    """Rename a store's folder while nobody works in it, and put right where MLflow finds its files.

    Killed in between, `weft store moved NEW` finishes it.
    """
    _require_store(old)
    if (url := url_of(old)) is not None:
        raise StoreError(f"{old}: expected a store that lies in this folder, found the working copy of {url}")
    if new.exists():
        raise StoreError(f"expected no {new} yet, found one: name another folder, or move that one away")
    _require_quiet(old)
    source, target = old.resolve(), new.absolute()
    try:
        source.rename(target)
    except OSError as error:
        if error.errno == errno.EXDEV:
            raise StoreError(
                f"{new}: expected it on the disk of {old}, found another: copy the folder (cp -a), run "
                f"`weft store moved {new}`, and remove the old one"
            ) from error
        raise refused(target, error) from error
    return _put_right(target)


@store.command()
@command
def moved(folder: Annotated[Path, typer.Argument(help="The folder that it is in now.")]) -> Result:
    """Put right where MLflow finds its files, after a store's folder was moved or copied by other means."""
    _require_store(folder)
    _require_quiet(folder)
    return _put_right(folder)


@store.command("prune")
@command
def prune_store(options: CommonOptions) -> Result:
    """Remove old generations and learned versions, as `storage.keep_generations` says; nights do the same."""
    settings, _ = options.opened()
    removed = prune(settings)
    lines = [f"removed {kind}: {', '.join(names)}" for kind, names in removed.items() if names]
    return Result([{kind: list(names) for kind, names in removed.items()}], lines or ["nothing to remove"])


def _put_right(folder: Path) -> Result:
    # MLflow takes 1.7 s to import: nobody who is refused waits for it.
    from weft.runtime.mlflow.moving import correct_places  # noqa: PLC0415

    places = correct_places(folder)
    shown = f"the store is in {folder}; {places} places in MLflow's records were put right"
    return Result([{"store": str(folder), "places": places}], [shown])


def _require_quiet(folder: Path) -> None:
    if users := users_of(folder):
        by = " and ".join(map(str, users))
        raise StoreError(f"{folder}: expected nobody to work in it, found {by}; nothing has changed")


def _require_store(folder: Path) -> None:
    if not any((folder / name).exists() for name in _MARKS):
        raise StoreError(f"expected a store in {folder}, found none of {', '.join(_MARKS)} there: name its folder")
