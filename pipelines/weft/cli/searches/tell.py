"""`weft tell`: a person names the right answer to a question, or a wrong one, shown or not (LRN-23)."""

from __future__ import annotations

from typing import Annotated

import typer

from weft.cli.console.options import Bootstrap, Principal, ServedOptions, command
from weft.cli.console.output import Result
from weft.domain.ranking import Query
from weft.runtime.process import speaker_of


@command
def tell(
    question: Annotated[str, typer.Argument(help="What was asked, or may be asked.")],
    options: ServedOptions,
    *,
    right: Annotated[
        list[str] | None,
        typer.Option("--right", help="PATH, PATH#heading or PATH#L12 of the right answer; repeatable."),
    ] = None,
    wrong: Annotated[list[str] | None, typer.Option("--wrong", help="The same of a wrong answer; repeatable.")] = None,
    principal: Principal = None,
    bootstrap: Bootstrap = None,
) -> Result:
    """Name the right answer to a question, or a wrong one, whether or not a search shows it.

    Searches find it under this question and near ones as soon as the updaters have read of it: first for you, and for
    others as far as people agree.
    """
    words = [(name, True) for name in right or ()] + [(name, False) for name in wrong or ()]
    if not words:
        raise typer.BadParameter("expected --right PATH or --wrong PATH, found neither")
    query = Query(text=question, principal=speaker_of(principal))
    if (client := options.service({"--bootstrap": bootstrap}, feedback=True)) is not None:
        with client:
            named = [(client.place(name), is_right) for name, is_right in words]
            ids = [client.correct(query, uri, right=is_right) for uri, is_right in named]
    else:
        from weft.cli.searches.here import corrected  # noqa: PLC0415  1 s, which who asks a service does without

        named, ids = corrected(options, query, words, bootstrap)
    return Result(
        {"question": question, "uri": uri, "right": is_right, "event_id": event_id}
        for (uri, is_right), event_id in zip(named, ids, strict=True)
    )
