"""Serve a store on a Ray cluster: the application of `weft serve`, in replicas.

    ray job submit --working-dir . -- python -m jobs.serve --store DIR [--replicas N] [--bootstrap HOST:PORT]

It deploys, or replaces what is deployed, waits until searches are answered, and ends; the deployment goes on. `serve
shutdown` ends it. With `--shards N` the shards of the live generation are searched in N deployments of their own, and a
replica of the application merges what they find.

Every machine must reach the store under the same path. Tokens come from --tokens or the variable
WEFT_TOKENS, as for `weft serve`. Exit codes: 0 ready, 1, 75 or 78 with a reason (no store, no cluster), 2 usage.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from weft.cli.console.options import CommonOptions, command, run_job
from weft.cli.console.terminal import note
from weft.runtime.ray.cluster import connect
from weft.settings import require_store


@command
def serve(
    options: CommonOptions,
    host: Annotated[str, typer.Option("--host", help="Address that Ray's proxies listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="Port of Ray's proxies.")] = 8000,
    replicas: Annotated[int, typer.Option("--replicas", min=1, help="Copies, each with a processor.")] = 1,
    shards: Annotated[int, typer.Option("--shards", min=0, help="Deployments that shards are searched in.")] = 0,
    tokens: Annotated[Path | None, typer.Option("--tokens", help="File of tokens, TOKEN:search a line.")] = None,
    bootstrap: Annotated[str | None, typer.Option("--bootstrap", help="Broker for feedback, host:port.")] = None,
) -> None:
    """Serve a store on a Ray cluster."""
    settings = options.settings(bootstrap=bootstrap)
    require_store(settings)
    connect(settings.cluster)
    from weft.service.on_ray import run  # noqa: PLC0415  Ray Serve takes seconds to import
    from weft.service.tokens import ENVIRONMENT, TokenSet  # noqa: PLC0415

    accepted = TokenSet.configured(tokens, os.environ.get(ENVIRONMENT, ""))
    reports = bootstrap is not None
    run(settings, host=host, port=port, replicas=replicas, tokens=accepted, reports=reports, shards=shards)
    note(f"serving {settings.storage.place} at http://{host}:{port} in {replicas} replicas; `serve shutdown` ends it")


main = partial(run_job, serve)
"""Run the job on arguments."""
