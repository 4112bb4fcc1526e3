"""As much of S3 as a broker needs to keep its log in: whole objects in memory, conditional writes, listing.

It outlives the broker, which is what a test of broker crashes wants; no request is checked for a signature.
"""

from __future__ import annotations

import hashlib
import threading
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape


class ObjectStore:
    """A server on the loopback interface, as long as its context lasts."""

    def __init__(self) -> None:
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.daemon_threads = True
        self._server.objects = {}  # type: ignore[attr-defined]
        self._server.lock = threading.Lock()  # type: ignore[attr-defined]
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> ObjectStore:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def environment(self) -> dict[str, str]:
        """What a client of S3 reads to find it."""
        return {
            "AWS_ENDPOINT": self.endpoint,
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "anyone",
            "AWS_SECRET_ACCESS_KEY": "anything",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_REGION": "us-east-1",
        }


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """A client that was killed in the middle of a request is what this is for."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Any

    def do_PUT(self) -> None:
        data = self._body()
        key, objects = self._key(), self.server.objects
        with self.server.lock:
            there = objects.get(key)
            wanted = self.headers.get("If-Match")
            taken = self.headers.get("If-None-Match") == "*" and there is not None
            if taken or (wanted is not None and (there is None or there[1] != wanted)):
                self._answer(412, _problem("PreconditionFailed"))
                return
            tag = '"' + hashlib.md5(data, usedforsecurity=False).hexdigest() + '"'
            objects[key] = (data, tag)
        self._answer(200, headers={"ETag": tag})

    def do_GET(self) -> None:
        split = urlsplit(self.path)
        query = parse_qs(split.query, keep_blank_values=True)
        if "list-type" in query:
            self._list(query)
            return
        self._send_object(with_body=True)

    def do_HEAD(self) -> None:
        self._send_object(with_body=False)

    def do_DELETE(self) -> None:
        with self.server.lock:
            self.server.objects.pop(self._key(), None)
        self._answer(204)

    def do_POST(self) -> None:
        body = ElementTree.fromstring(self._body())
        keys = [element.text or "" for element in body.iter() if element.tag.endswith("Key")]
        bucket = urlsplit(self.path).path.split("/")[1]
        with self.server.lock:
            for key in keys:
                self.server.objects.pop(f"{bucket}/{key}", None)
        deleted = "".join(f"<Deleted><Key>{escape(key)}</Key></Deleted>" for key in keys)
        self._answer(200, f"<DeleteResult>{deleted}</DeleteResult>".encode())

    def log_message(self, *_: object) -> None:
        """Nothing is worth a line."""

    def _send_object(self, *, with_body: bool) -> None:
        with self.server.lock:
            there = self.server.objects.get(self._key())
        if there is None:
            self._answer(404, _problem("NoSuchKey"), with_body=with_body)
            return
        data, tag = there
        if self.headers.get("If-None-Match") == tag:
            self._answer(304, headers={"ETag": tag})
            return
        status, headers = 200, {"ETag": tag, "Last-Modified": formatdate(0, usegmt=True), "Accept-Ranges": "bytes"}
        if (span := self.headers.get("Range")) is not None:
            first, _, last = span.removeprefix("bytes=").partition("-")
            begin = int(first) if first else len(data) - int(last)
            end = min(int(last) + 1, len(data)) if first and last else len(data)
            headers["Content-Range"] = f"bytes {begin}-{end - 1}/{len(data)}"
            status, data = 206, data[begin:end]
        self._answer(status, data, headers, with_body=with_body)

    def _list(self, query: dict[str, list[str]]) -> None:
        bucket = urlsplit(self.path).path.split("/")[1]
        prefix, delimiter = query.get("prefix", [""])[0], query.get("delimiter", [""])[0]
        after = query.get("start-after", [""])[0]
        with self.server.lock:
            names = [key.removeprefix(f"{bucket}/") for key in self.server.objects if key.startswith(f"{bucket}/")]
            sizes = {name: len(self.server.objects[f"{bucket}/{name}"][0]) for name in names}
            tags = {name: self.server.objects[f"{bucket}/{name}"][1] for name in names}
        found = [name for name in sorted(names) if name.startswith(prefix) and name > after]
        shared = sorted(
            {
                prefix + name[len(prefix) :].split(delimiter)[0] + delimiter
                for name in found
                if delimiter and delimiter in name[len(prefix) :]
            }
        )
        alone = [name for name in found if not delimiter or delimiter not in name[len(prefix) :]]
        contents = "".join(
            f"<Contents><Key>{escape(name)}</Key><LastModified>1970-01-01T00:00:00.000Z</LastModified>"
            f"<ETag>{escape(tags[name])}</ETag><Size>{sizes[name]}</Size></Contents>"
            for name in alone
        )
        prefixes = "".join(f"<CommonPrefixes><Prefix>{escape(each)}</Prefix></CommonPrefixes>" for each in shared)
        self._answer(
            200, f"<ListBucketResult><IsTruncated>false</IsTruncated>{contents}{prefixes}</ListBucketResult>".encode()
        )

    def _key(self) -> str:
        return unquote(urlsplit(self.path).path.lstrip("/"))

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _answer(
        self, status: int, data: bytes = b"", headers: dict[str, str] | None = None, *, with_body: bool = True
    ) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if with_body and status not in {204, 304}:
            self.wfile.write(data)


def _problem(code: str) -> bytes:
    return f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode()
