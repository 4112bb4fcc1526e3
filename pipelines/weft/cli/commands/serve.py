"""Serve a store over HTTP: searches, feedback, lessons, and a console in the browser.

    weft serve --store DIR [--port 8080] [--bootstrap HOST:PORT] [--tokens FILE]

It follows what is published. Without tokens it listens to this machine alone. A token is good for what it says:
`TOKEN:search+feedback+admin`, one a line in the file, or with commas between them in the variable WEFT_TOKENS. With
`--bootstrap` what is shown, and what people say of it, goes to the feedback topic. Exit codes: 0 ended by SIGTERM or
SIGINT, once requests under way were answered; 1, 75 or 78 with a reason (no store, port taken, damaged store); 2 usage.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from weft.cli.console.options import CommonOptions, command, run_job
from weft.cli.console.terminal import note
from weft.settings import require_store

Bootstrap = Annotated[str | None, typer.Option("--bootstrap", help="Broker for feedback, host:port; none without it.")]


@command
def serve(
    options: CommonOptions,
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 takes a free one.")] = 8080,
    processes: Annotated[int, typer.Option("--processes", min=0, help="That search; 0: as many as processors.")] = 0,
    tokens: Annotated[
        Path | None, typer.Option("--tokens", help="File of tokens, TOKEN:search+feedback a line.")
    ] = None,
    bootstrap: Bootstrap = None,
) -> None:
    """Serve a store over HTTP, with a console for browsers; Ctrl-C ends it."""
    # What serves imports a web framework, which `weft --help` does without.
    from weft.service.run import serve as run  # noqa: PLC0415
    from weft.service.tokens import ENVIRONMENT, TokenSet  # noqa: PLC0415

    settings = options.settings(bootstrap=bootstrap)
    require_store(settings)
    accepted = TokenSet.configured(tokens, os.environ.get(ENVIRONMENT, ""))
    who = (
        f"{len(accepted)} tokens"
        if accepted
        else "no tokens: it listens to this machine alone, and anybody on it may ask"
    )
    note(f"serving {settings.storage.place} at http://{host}:{port} · {who}")
    if bootstrap is None:
        note("no broker is named: nothing is learned from what people say; --bootstrap HOST:PORT names one")
    run(
        settings,
        host=host,
        port=port,
        processes=processes or os.cpu_count() or 1,
        tokens=accepted,
        reports=bootstrap is not None,
    )


main = partial(run_job, serve)
"""Run the job on arguments."""
