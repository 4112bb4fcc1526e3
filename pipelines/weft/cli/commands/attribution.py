"""`weft attribute`: what a response rests on, for producers that have no encoder of their own (FBK-9)."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from weft.cli.console.options import CommonOptions, command
from weft.cli.console.output import Result
from weft.cli.console.terminal import note, reading
from weft.domain.errors import StoreError
from weft.domain.ids import ContentHash
from weft.embedding.encoders.precision import pinned
from weft.feedback.events.attributor import Attributor, texts_in

Response = Annotated[Path, typer.Argument(help="File with the text of the response; - is standard input.")]
Contents = Annotated[list[str], typer.Argument(help="Content hashes of what the response was given.")]


@command
def attribute(response: Response, contents: Contents, options: CommonOptions) -> Result:
    """Print the `attribution` of an event about a response: a method, and how much of it rests on each content.

    Texts are those of the live generation; contents that it does not hold are counted on stderr and get nothing.
    """
    settings, catalog = options.opened()
    rules = settings.feedback.attribution.model_copy(update={"encoder": True})
    with reading(response):
        from_stdin = str(response) == "-"
        text = sys.stdin.read() if from_stdin else response.read_text(encoding="utf-8", errors="replace")
    with closing(catalog.open_live()) as generation:
        texts = texts_in(generation.chunks, [ContentHash(each) for each in contents])
    attributor = Attributor.load(rules, pinned(settings.embedding, catalog.precisions()))
    attribution = attributor.attribution(texts, text)
    if attributor.unknown:
        note(f"weft: {attributor.unknown} of {len(texts)} contents are not in the live generation")
    if attribution is None:
        raise StoreError("expected a response and a content of the live generation, found nothing to compare")
    return Result([msgspec.to_builtins(attribution)])
