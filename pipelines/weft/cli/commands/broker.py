"""Run a Kafka-protocol broker on this machine, for trying things out: everything it holds ends with it.

    weft broker [--port 9092]

In production weft talks to Apache Kafka; every job takes `--bootstrap`, or `kafka.bootstrap` in the configuration.
Exit codes: 0 stopped by SIGTERM or SIGINT, 1, 75 or 78 with a reason (no answer, port taken, it died), 2 usage.
"""

from __future__ import annotations

import signal
import threading
from functools import partial
from typing import Annotated

import typer

from weft.cli.console.options import command, run_job
from weft.cli.console.terminal import note
from weft.domain.errors import BrokerUnavailableError
from weft.runtime.kafka.broker import EmbeddedBroker

_LOOK_EVERY_S = 1.0  # whether the broker still runs


@command
def broker(
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="Port on the loopback interface.")] = 9092,
) -> None:
    """Run a broker until it is stopped."""
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    with EmbeddedBroker(port=port) as running:
        note(f"broker at {running.bootstrap}, in memory; Ctrl-C ends it and all it holds")
        while not stopped.wait(_LOOK_EVERY_S):
            if running.ended():
                raise BrokerUnavailableError(
                    f"expected the broker at {running.bootstrap} to run on, found it ended: what it held is lost; "
                    "start it again, with a new store for what comes"
                )


main = partial(run_job, broker)
"""Run the job on arguments."""
