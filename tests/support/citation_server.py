"""A service on this machine that answers as it is told to, well or badly."""

from __future__ import annotations

import json
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True, slots=True)
class Reply:
    """What is sent for one request.

    Attributes:
        body: Sent as JSON, or as it is where it is bytes.
        dribble_s: Waited between any two bytes.
    """

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    dribble_s: float = 0.0


@dataclass(slots=True)
class Asked:
    """Where the service is, and what it was asked."""

    url: str
    paths: list[str] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)


@contextmanager
def a_service(replies: Mapping[str, list[Reply]]) -> Iterator[Asked]:
    """A service with replies by path, given in turn, the last one again and again; any other path is not found."""
    given: defaultdict[str, int] = defaultdict(int)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.paths.append(self.path)
            asked.headers.append(dict(self.headers))
            some = replies.get(self.path.partition("?")[0], [Reply(404, {"error": "none"})])
            reply = some[min(given[self.path], len(some) - 1)]
            given[self.path] += 1
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.end_headers()
            body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
            with suppress(OSError):  # whoever asked may have hung up
                for byte in body if reply.dribble_s else ():
                    self.wfile.write(bytes([byte]))
                    time.sleep(reply.dribble_s)
                if not reply.dribble_s:
                    self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    asked = Asked(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
