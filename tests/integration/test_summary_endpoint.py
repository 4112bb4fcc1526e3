"""ING-18: an endpoint may write the summaries; where it fails there are extracts, and the failures are counted."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from weft.chunking.prose.summary import summary_of
from weft.domain.documents import ContentType, Document, Domain
from weft.ingestion.settings import SummarySettings
from weft.ingestion.stages.read_and_chunk import FAILED, MOST_FAILURES, SHOWN_CHARACTERS, WRITTEN, Summariser
from weft.settings import load_settings

TEXT = " ".join(f"Sentence number {number} says little of note." for number in range(60))
GOOD = json.dumps({"choices": [{"message": {"role": "assistant", "content": " It says\nlittle. "}}]}).encode()

EMPTY = GOOD.replace(b"It says\\nlittle.", b"")


def a_document(kind: ContentType = ContentType.TEXT, **facts: Any) -> Document:
    return Document(uri="a", content_type=kind, domain=Domain.GENERAL, text=TEXT, trust_level=50, **facts)


def words(text: str) -> int:
    return len(text.split())


class Endpoint:
    """A chat endpoint that gives one answer to all, and remembers what it was asked."""

    def __init__(self) -> None:
        self.status, self.answer = 200, GOOD
        self.asked: list[tuple[str | None, dict[str, Any]]] = []
        self.hold = threading.Event()
        self.hold.set()
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                endpoint.asked.append((self.headers["Authorization"], json.loads(body)))
                endpoint.hold.wait(30.0)
                self.send_response(endpoint.status)
                self.end_headers()
                self.wfile.write(endpoint.answer)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1/chat/completions"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.hold.set()
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    running = Endpoint()
    yield running
    running.close()


def settings(url: str, *assignments: str) -> SummarySettings:
    ours = [f"ingest.summary.endpoint={url}", "ingest.summary.model=small", "ingest.summary.max_tokens=50"]
    return load_settings(assignments=[*ours, *assignments], environment={}).ingest.summary


def test_the_endpoint_writes_what_it_is_asked_for(endpoint: Endpoint) -> None:
    """ING-18: one chat completion per document, of its beginning and with the configured key."""
    asking = Summariser(settings(endpoint.url, "ingest.summary.api_key=secret"), words)
    long = Document(**{**_facts(a_document()), "text": TEXT * (SHOWN_CHARACTERS // len(TEXT) + 1)})
    document = asking.summarised(long, [])
    ((key, body),) = endpoint.asked
    assert document.summary == "It says little."
    assert dict(asking.counts) == {WRITTEN: 1}
    assert (key, body["model"], body["messages"][1]["content"]) == (
        "Bearer secret",
        "small",
        long.text[:SHOWN_CHARACTERS],
    )


def test_declared_and_needless_summaries_are_not_asked_for(endpoint: Endpoint) -> None:
    """ING-4, ING-18: what people declared stays, within the limit; short texts and records cost no request."""
    asking = Summariser(settings(endpoint.url), words)
    assert asking.summarised(a_document(summary="Ours. " + "word " * 60), []).summary == "Ours."
    assert asking.summarised(Document(**{**_facts(a_document()), "text": "Short."}), []).summary is None
    assert asking.summarised(a_document(ContentType.RECORD), []).summary is not None
    assert endpoint.asked == []


@pytest.mark.parametrize(
    ("status", "answer"),
    [(500, b""), (200, b"no json"), (200, b"[]"), (200, b'{"choices": []}'), (200, EMPTY)],
)
def test_a_failure_leaves_an_extract_and_is_counted(endpoint: Endpoint, status: int, answer: bytes) -> None:
    """ING-18: and after a few in a row nobody asks any more."""
    endpoint.status, endpoint.answer = status, answer
    asking = Summariser(settings(endpoint.url), words)
    extract = summary_of(a_document(), [], limit=50, count_tokens=words)
    assert [asking.summarised(a_document(), []).summary for _ in range(MOST_FAILURES + 2)] == [extract] * (
        MOST_FAILURES + 2
    )
    assert dict(asking.counts) == {FAILED: MOST_FAILURES + 2}
    assert len(endpoint.asked) == MOST_FAILURES


def test_an_endpoint_that_hangs_or_is_not_there_holds_nothing_up(endpoint: Endpoint) -> None:
    """ING-18: the time limit is for one answer."""
    endpoint.hold.clear()
    for url in (endpoint.url, "http://127.0.0.1:9/none"):
        asking = Summariser(settings(url), words, timeout_s=0.2)
        assert asking.summarised(a_document(), []).summary is not None
        assert dict(asking.counts) == {FAILED: 1}


def _facts(document: Document) -> dict[str, Any]:
    return {name: getattr(document, name) for name in Document.__dataclass_fields__}


@pytest.mark.parametrize(
    "said", [b"\x16\x03\x01 no HTTP\r\n\r\n", b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 200 + b"\r\n"]
)
def test_what_does_not_speak_http_is_a_failure_like_any_other(said: bytes) -> None:
    """ING-3, ING-18: it ended the run."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(said)

        threading.Thread(target=answer, daemon=True).start()
        asking = Summariser(settings(f"http://127.0.0.1:{server.getsockname()[1]}/v1"), words)
        extract = summary_of(a_document(), [], limit=50, count_tokens=words)
        assert asking.summarised(a_document(), []).summary == extract
    assert dict(asking.counts) == {FAILED: 1}
