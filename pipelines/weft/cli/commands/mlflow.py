"""Open the MLflow UI on the database of a store, for what nights, runs of indexing and measurements recorded.

    weft mlflow --store DIR [--port 5000]

Exit codes: 0 stopped by SIGTERM or SIGINT, 1 with a reason (no store, a server that is named elsewhere, port taken),
2 usage.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import closing
from typing import Annotated

import typer

from weft.cli.console.options import CommonOptions, command
from weft.cli.console.terminal import note
from weft.domain.errors import TrackingUnavailableError
from weft.runtime.mlflow.runs import uri_of
from weft.settings import require_store

_HOST = "127.0.0.1"  # nobody is asked for a password


@command
def mlflow(
    options: CommonOptions,
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="Port on the loopback interface.")] = 5000,
) -> None:
    """Open the MLflow UI on what nights, runs and measurements recorded, until it is stopped."""
    settings = options.settings()
    if (uri := settings.tracking.uri).startswith(("http://", "https://")):
        raise TrackingUnavailableError(f"expected runs in the store, found them at {uri}: open that in a browser")
    root = require_store(settings)
    _require_free(port)
    note(f"MLflow at http://{_HOST}:{port}; Ctrl-C ends it")
    ui = ["mlflow", "ui", "--host", _HOST, "--port", str(port), "--backend-store-uri", uri or uri_of(root)]
    # What lies in the working folder is no module of MLflow's.
    server = subprocess.Popen([sys.executable, "-m", *ui], env={**os.environ, "PYTHONSAFEPATH": "1"})
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: server.terminate())
    if (code := server.wait()) > 0:
        raise TrackingUnavailableError(f"expected the UI to run until it is stopped, found it ended with {code}")


def _require_free(port: int) -> None:
    """Refuse a port that is taken, before MLflow has taken seconds to start.

    Raises:
        OSError: It is.
    """
    with closing(socket.socket()) as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind((_HOST, port))
