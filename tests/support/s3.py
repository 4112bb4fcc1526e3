"""A real S3 server over HTTP (moto), and before it what goes wrong on the way to one (SCL-3).

Google's XML API is that of S3, but for names of headers and conditions by generation: it is served from the same.
"""

from __future__ import annotations

import contextlib
import itertools
import secrets
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
from moto.moto_api import state_manager  # noqa: F401  loads what the server answers by
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

Fault = Callable[["S3Server", dict[str, Any], Callable[[], list[bytes]]], list[bytes]]
REGION = "us-east-1"
_NUMBERS = itertools.count(1)


@dataclass
class S3Server:
    """A server on the loopback interface with one bucket.

    Attributes:
        faults: What the next requests meet, by method, the first one first.
        late: Whether lists show what was there when this was set, and not what came since.
        google: Whether it speaks as Google Cloud Storage does.
    """

    endpoint: str = ""
    bucket: str = field(default_factory=lambda: f"weft-{secrets.token_hex(6)}")  # moto keeps buckets of a process
    faults: dict[str, list[Fault]] = field(default_factory=dict)
    late: bool = False
    google: bool = False
    requests: list[tuple[str, str]] = field(default_factory=list)
    _lists: dict[str, list[bytes]] = field(default_factory=dict)
    _generations: dict[str, int] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        self._app = DomainDispatcherApplication(create_backend_app)

    def environment(self) -> dict[str, str]:
        """What a client reads to find it."""
        if self.google:
            return {"GOOGLE_BASE_URL": self.endpoint, "GOOGLE_BEARER_TOKEN": "anyone", "GOOGLE_ALLOW_HTTP": "true"}
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "anyone",
            "AWS_SECRET_ACCESS_KEY": "anything",
            "AWS_REGION": REGION,
        }

    def client(self) -> Any:
        """Another client of the same server."""
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name=REGION,
            aws_access_key_id="anyone",
            aws_secret_access_key="anything",
        )

    def fail(self, method: str, *faults: Fault) -> None:
        """Have the next requests of a method meet these faults, one each."""
        self.faults.setdefault(method, []).extend(faults)

    def __call__(self, environ: dict[str, Any], start: Any) -> list[bytes]:
        """Answer a request; moto itself lets two conditional writes pass at once, so one is answered at a time."""
        method = environ["REQUEST_METHOD"]
        with self._lock:
            self.requests.append((method, environ["PATH_INFO"]))
            if self.google:
                return self._as_google(environ, start)
            faults = self.faults.get(method)
            if faults:
                fault = faults.pop(0)
                answered: list[Any] = []

                def answer() -> list[bytes]:
                    return list(self._app(environ, lambda *args: answered.append(args)))

                body = fault(self, environ, answer)
                busy = ("503 Slow Down", [("Content-Length", str(sum(map(len, body))))])
                start(*(answered[0] if answered and body else busy))
                return body
            if method == "GET" and "list-type" in environ.get("QUERY_STRING", ""):
                return self._listed(environ, start)
            return list(self._app(environ, start))

    def _as_google(self, environ: dict[str, Any], start: Any) -> list[bytes]:
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        environ["HTTP_AUTHORIZATION"] = f"AWS4-HMAC-SHA256 Credential=anyone/20260101/{REGION}/s3/aws4_request"
        asked = environ["QUERY_STRING"]
        environ["RAW_URI"] = environ["REQUEST_URI"] = f"{path}?{asked}" if asked else path  # moto takes "-" plain
        condition = environ.pop("HTTP_X_GOOG_IF_GENERATION_MATCH", None)
        if condition is not None and int(condition) != self._generations.get(path, 0):
            start("412 Precondition Failed", [("Content-Length", "0")])
            return []
        for name in [name for name in environ if name.startswith("HTTP_X_GOOG_")]:
            environ[name.replace("_GOOG_", "_AMZ_")] = environ.pop(name)
        whole = "partNumber" not in asked and not asked.startswith("uploads")

        def answered(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
            if status.startswith("2") and whole and method in {"PUT", "POST"}:
                self._generations[path] = next(_NUMBERS)
            elif method == "DELETE":
                self._generations.pop(path, None)
            generation = ("x-goog-generation", str(self._generations.get(path, 0)))
            own = [(name.lower().replace("x-amz-", "x-goog-"), value) for name, value in headers]
            return start(status, [*own, generation], *rest)

        return list(self._app(environ, answered))

    def _listed(self, environ: dict[str, Any], start: Any) -> list[bytes]:
        query = environ["QUERY_STRING"]
        if not self.late:
            self._lists.clear()
        elif query in self._lists:
            start("200 OK", [("Content-Type", "application/xml")])
            return self._lists[query]
        body = list(self._app(environ, start))
        self._lists[query] = body
        return body


def slow_down(_server: S3Server, _environ: dict[str, Any], _answer: Callable[[], list[bytes]]) -> list[bytes]:
    """Too many requests: nothing is done."""
    return [b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"]


def lost_answer(_server: S3Server, environ: dict[str, Any], answer: Callable[[], list[bytes]]) -> list[bytes]:
    """What was asked is done, and the line is cut before that is told."""
    answer()
    _cut(environ)
    return []


def torn(_server: S3Server, environ: dict[str, Any], _answer: Callable[[], list[bytes]]) -> list[bytes]:
    """The line is cut in the middle of the request: nothing is done."""
    environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0) // 2)
    _cut(environ)
    return []


def _cut(environ: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):
        environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)


class _Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, *_: Any) -> None:
        """Nothing is worth a line."""


@contextlib.contextmanager
def s3_server(host: str = "127.0.0.1", port: int = 0, *, google: bool = False) -> Iterator[S3Server]:
    """A server with an empty bucket."""
    served = S3Server()
    server = make_server(host, port, served, threaded=True, request_handler=_Quiet)
    served.endpoint = f"http://{host}:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        served.client().create_bucket(Bucket=served.bucket)
        served.google = google
        yield served
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


if (
    __name__ == "__main__"
):  # HOST PORT FILE: the name of the bucket is the first line of a file, a line a request follows
    with s3_server(sys.argv[1], int(sys.argv[2])) as running, Path(sys.argv[3]).open("w", encoding="utf-8") as told:
        told.write(f"{running.bucket}\n")
        while True:
            while running.requests:
                told.write(" ".join(running.requests.pop(0)) + "\n")
            told.flush()
            time.sleep(0.1)
