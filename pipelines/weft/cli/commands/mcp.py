"""Give agents the tools of a store over MCP: search, explain, tell, lessons, remember.

    weft mcp --store DIR [--bootstrap HOST:PORT]

It speaks MCP on stdin and stdout, as agents start it (docs/mcp.md). Where `weft serve` serves the store, that service
is asked; else this process opens the store, with one search process. Exit codes: 0 the input ended, 1, 75 or 78 with a
reason (no store, damaged store), 2 usage.
"""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from weft.cli.console.options import ServedOptions, command
from weft.runtime.process import speaker_of
from weft.settings import require_store


@command
def mcp(
    options: ServedOptions,
    principal: Annotated[
        str | None, typer.Option("--principal", help="Who asks and says; default the name you are logged in by.")
    ] = None,
    bootstrap: Annotated[
        str | None, typer.Option("--bootstrap", help="Broker for feedback, host:port; default the service's.")
    ] = None,
) -> None:
    """Give agents the tools of a store over MCP, on stdin and stdout."""
    from weft.service import mcp_stdio  # noqa: PLC0415  what serves imports a web framework

    who = speaker_of(principal)
    if (client := options.service({"--bootstrap": bootstrap})) is not None:
        with client:
            asyncio.run(mcp_stdio.on_stdio(client.asynchronous(), principal=who))
        return
    settings = options.settings(bootstrap=bootstrap)
    require_store(settings)
    asyncio.run(mcp_stdio.over_store(settings, principal=who, feedback=bootstrap is not None))
