"""`weft tell`: a person names the right answer to a question, or a wrong one, shown or not (LRN-23)."""

from __future__ import annotations

import json
import sys
from contextlib import closing
from typing import Annotated

import typer

from weft.catalog.catalog import Catalog
from weft.cli.console.options import Bootstrap, CommonOptions, require_store, store_command
from weft.cli.console.terminal import login
from weft.domain.ranking import ANONYMOUS, Query
from weft.feedback.events.producer import FeedbackProducer
from weft.retrieval.snapshot.places import ContentLocator, place_of


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
        uris, places = generation.chunks.uris(), ContentLocator(generation.chunks)
        named = [(place_of(name, uris, places), is_right) for name, is_right in words]
    with closing(FeedbackProducer.connect_now(settings.kafka, settings.feedback)) as producer:
        for uri, is_right in named:
            event_id = producer.correction(query, right=is_right, uri=uri)
            fact = {"question": question, "uri": uri, "right": is_right, "event_id": event_id}
            sys.stdout.write(json.dumps(fact) + "\n")
        producer.flush()
