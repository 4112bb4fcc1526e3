"""`weft mlflow`: the MLflow UI on the runs and learned versions of a store (OPS-7)."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from weft.cli.console.options import CommonOptions, require_store, store_command
from weft.runtime.mlflow.runs import uri_of


@store_command
def mlflow(
    options: CommonOptions,
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="Port on the loopback interface.")] = 5000,
) -> None:
    """Open the MLflow UI on what a store learned; Ctrl-C ends it."""
    uri = uri_of(require_store(options.settings()))
    ui = [sys.executable, "-m", "mlflow", "ui", "--host", "127.0.0.1", "--port", str(port)]
    sys.stdout.flush()
    # In the place of this process: signals reach the server itself.
    os.execv(sys.executable, [*ui, "--backend-store-uri", uri])  # noqa: S606  a list of arguments, no shell
