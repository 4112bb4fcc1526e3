"""`weft tell`: a person names the right answer to a question, or a wrong one, shown or not (LRN-23)."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from pipelines.catalog.catalog import Catalog
from pipelines.domain.errors import StoreError
from pipelines.domain.ranking import ANONYMOUS, Query
from pipelines.feedback.events.producer import FeedbackProducer
from pipelines.retrieval.snapshot.places import Places
from pipelines.serving.console.options import Bootstrap, CommonOptions, require_store, store_command
from pipelines.serving.console.terminal import login

_NAMED = 5  # documents of one name that are listed


@store_command
def tell(
    question: Annotated[str, typer.Argument(help="What was asked, or may be asked.")],
    options: CommonOptions,
    *,
    right: Annotated[
        list[str] | None,
        typer.Option("--right", help="PATH, PATH#heading or PATH#L12 of the right answer; repeatable."),
    ] = None,
    wrong: Annotated[list[str] | None, typer.Option("--wrong", help="The same of a wrong answer; repeatable.")] = None,
    principal: Annotated[
        str | None, typer.Option("--principal", help="Who says so; default the name you are logged in by.")
    ] = None,
    bootstrap: Bootstrap = None,
) -> None:
    """Name the right answer to a question, or a wrong one, whether or not a search shows it.

    Searches find it under this question and near ones as soon as the updaters have read of it: first for you, and for
    others as far as people agree.
    """
    words = [(name, True) for name in right or ()] + [(name, False) for name in wrong or ()]
    if not words:
        raise typer.BadParameter("expected --right PATH or --wrong PATH, found neither")
    settings = options.settings(bootstrap=bootstrap)
    query = Query(text=question, principal=principal or login() or ANONYMOUS)
    with closing(Catalog(require_store(settings)).open_live()) as generation:
        uris, places = generation.chunks.uris(), Places(generation.chunks)
        named = [(place_of(name, uris, places), is_right) for name, is_right in words]
    with closing(FeedbackProducer.connect_now(settings.kafka, settings.feedback)) as producer:
        for uri, is_right in named:
            event_id = producer.correction(query, right=is_right, uri=uri)
            fact = {"question": question, "uri": uri, "right": is_right, "event_id": event_id}
            sys.stdout.write(json.dumps(fact) + "\n")
        producer.flush()


def place_of(name: str, uris: Sequence[str], places: Places) -> str:
    """The URI of what a person names: a document's URI, or the end of one, and a heading or line behind "#".

    Args:
        uris: Of all documents.
        places: What stands where in them.

    Raises:
        StoreError: No document is called so, or several are; or it has no such heading or line.
    """
    path, mark, anchor = name.partition("#")
    tail = "/" + path.removeprefix("./").lstrip("/")
    full = Path(path).resolve().as_uri() if path else ""
    matching = [uri for uri in uris if uri in {path, full}] or [uri for uri in uris if f"/{uri}".endswith(tail)]
    if len(matching) != 1:
        shown = ", ".join(matching[:_NAMED])
        count = f"{len(matching)}: {shown}; name more of its path" if matching else "none; `weft search` shows URIs"
        raise StoreError(f"{name}: expected one document of this name, found {count}")
    uri = matching[0] + mark + anchor
    if not places.rows_of_uri(uri):
        raise StoreError(
            f"{name}: expected a heading, symbol or line (#L12) of {matching[0]}, found no {anchor!r} in it"
        )
    return uri
