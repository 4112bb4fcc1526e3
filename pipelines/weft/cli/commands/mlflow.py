"""`weft mlflow`: the MLflow UI on the runs and learned versions of a store (OPS-7)."""

from __future__ import annotations

import os
import socket
import sys
from typing import Annotated

import typer

from weft.cli.console.options import CommonOptions, command
from weft.domain.errors import TrackingUnavailableError
from weft.runtime.mlflow.runs import uri_of

_HOST = "127.0.0.1"  # nobody is asked for a password


@command
def mlflow(
    options: CommonOptions,
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="Port on the loopback interface.")] = 5000,
) -> None:
    """Open the MLflow UI on what a store learned; Ctrl-C ends it."""
    settings, catalog = options.opened()
    if (uri := settings.tracking.uri).startswith(("http://", "https://")):
        raise TrackingUnavailableError(f"expected runs in the store, found them at {uri}: open that in a browser")
    with socket.create_server((_HOST, port)):  # refused at once where the port is taken: MLflow takes seconds to start
        pass
    ui = [sys.executable, "-m", "mlflow", "ui", "--host", _HOST, "--port", str(port)]
    os.environ["PYTHONSAFEPATH"] = "1"  # what lies in the working folder is no module of MLflow's
    sys.stdout.flush()
    # In the place of this process: signals reach the server itself.
    os.execv(sys.executable, [*ui, "--backend-store-uri", uri or uri_of(catalog.root)])  # noqa: S606  no shell
