"""Runs a service on uvicorn, from a store to the last answer (OPS-5)."""

from __future__ import annotations

import json
import os
import resource
import secrets
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from types import FrameType

import msgspec
import uvicorn

from weft.app.stated_events import StatedEvents
from weft.client.announced import PLACE, Announced
from weft.domain.errors import ConfigurationError
from weft.feedback.events.producer import FeedbackProducer
from weft.runtime.arrow import leave_pandas_out
from weft.runtime.kafka.writer import KafkaPublisher
from weft.runtime.storage.files import write_atomically
from weft.runtime.storage.stored_answers import StoredAnswers
from weft.service.application import create_application
from weft.service.metrics import Metrics
from weft.service.processes import SearchProcesses
from weft.service.state import Service
from weft.service.tokens import TokenScope, TokenSet
from weft.settings import Settings

DRAIN_S = 30
"""That requests under way may take once the service is asked to end."""

LOOPBACK = {"127.0.0.1", "localhost", "::1"}
_BACKLOG = 2048


def serve(
    settings: Settings, *, host: str, port: int, processes: int, tokens: TokenSet, reports: bool, announce: bool = True
) -> None:
    """Serve a store until SIGTERM or SIGINT; requests under way are answered.

    Raises:
        ConfigurationError: It is to listen to others than this machine, and there are no tokens.
        OSError: The port is taken.
    """
    if not tokens and host not in LOOPBACK:
        raise ConfigurationError(
            f"expected tokens for a service that listens on {host}, found none: name a file with --tokens, or set "
            "WEFT_TOKENS"
        )
    _raise_file_limit()
    leave_pandas_out()
    with ExitStack() as undo:
        listening = undo.enter_context(closing(_listening(host, port)))
        port = listening.getsockname()[1]
        if announce:
            url = f"http://{'127.0.0.1' if host in {'0.0.0.0', '::'} else host}:{port}"  # noqa: S104  compared
            tokens = undo.enter_context(_announced(Path(settings.storage.root), url, tokens))
        service = undo.enter_context(opened_service(settings, processes=processes, tokens=tokens, reports=reports))
        server = uvicorn.Server(
            uvicorn.Config(
                create_application(service),
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=DRAIN_S,
                timeout_keep_alive=30,
                ws_max_size=1_048_576,
                h11_max_incomplete_event_size=65_536,
            )
        )

        def ending(number: int, frame: FrameType | None) -> None:
            service.draining = True
            server.handle_exit(number, frame)

        server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
        server.capture_signals = _no_signals  # type: ignore[method-assign]
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, ending)
        server.run(sockets=[listening])


@contextmanager
def opened_service(
    settings: Settings, *, processes: int, tokens: TokenSet, reports: bool, shards: int = 0
) -> Iterator[Service]:
    """What an application serves from; search processes begin with the application, and may be roots of shards."""
    root = Path(settings.storage.root)
    with ExitStack() as undo:
        events = producer = None
        if reports:
            publisher = KafkaPublisher(settings.kafka, settings.feedback.topic, patient=True)
            events = undo.enter_context(
                closing(StatedEvents(publisher, max_bytes=settings.feedback.limits.event_bytes))
            )
            producer = FeedbackProducer(publisher, key=settings.feedback.key)
        yield Service(
            settings,
            SearchProcesses(settings, count=processes, reports=reports, shards=shards),
            undo.enter_context(closing(StoredAnswers(root))),
            events,
            producer,
            Metrics(),
            tokens,
        )


@contextmanager
def _no_signals() -> Iterator[None]:
    yield


@contextmanager
def _announced(root: Path, url: str, tokens: TokenSet) -> Iterator[TokenSet]:
    """Say in the store where it is served; the tokens, with one for whoever can read that."""
    own = secrets.token_hex(24)
    path = root / PLACE
    write_atomically(path, msgspec.json.encode(Announced(url, os.getpid(), own)))
    path.chmod(0o600)
    try:
        yield tokens.plus(own, TokenScope) if tokens else tokens
    finally:
        try:
            if json.loads(path.read_bytes()).get("pid") == os.getpid():
                path.unlink()
        except (OSError, ValueError):
            pass


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=_BACKLOG)


def _raise_file_limit() -> None:
    """A connection is a file: idle ones must not keep others out."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(hard, 65_536) if hard != resource.RLIM_INFINITY else 65_536
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
