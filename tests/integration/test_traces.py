"""OPS-10: traces and logs of a running service and its updaters, as a collector and a machine get them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from opentelemetry.trace import get_current_span

from tests.support.service import ROOT, serving, small_store
from weft.runtime.kafka.broker import EmbeddedBroker
from weft.runtime.spans import event_context

pytestmark = pytest.mark.integration

CALLER = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"


class Collector:
    """Takes spans over HTTP, as OpenTelemetry's own does."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.spans: list[Span] = []

    def await_trace(self, trace_id: str, names: set[str], within_s: float = 60.0) -> dict[str, Span]:
        """The spans of a trace by name, once it has those that are named."""
        until = time.monotonic() + within_s
        while time.monotonic() < until:
            found = {span.name: span for span in list(self.spans) if span.trace_id.hex() == trace_id}
            if names <= found.keys():
                return found
            time.sleep(0.1)
        raise AssertionError(
            f"expected {names} in {trace_id}, found {[(span.name, span.trace_id.hex()) for span in self.spans]}"
        )


@contextmanager
def collecting() -> Iterator[Collector]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            sent = ExportTraceServiceRequest.FromString(body)
            collector.spans += [
                span for one in sent.resource_spans for scope in one.scope_spans for span in scope.spans
            ]
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_args: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector = Collector(f"http://127.0.0.1:{server.server_port}")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield collector
    finally:
        server.shutdown()


@pytest.mark.slow
def test_a_search_and_an_event_can_be_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """OPS-10: a request with its stages below the caller's span; an event from its producer to belief; JSON logs."""
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "200")
    store = small_store(tmp_path)
    with collecting() as collector, EmbeddedBroker() as broker:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        at = ["--bootstrap", broker.bootstrap]
        update = [sys.executable, "-m", "weft", "update", "--local", "--store", str(store), *at]
        with (tmp_path / "update.log").open("wb") as log:
            updaters = subprocess.Popen(
                update, cwd=ROOT, stdout=log, stderr=log, env={**os.environ, "WEFT_LOG": "json"}
            )
        try:
            with serving(store, *at, "--log", "json") as served, served.client() as client:
                asked = {"text": "yellow fruit that grows", "k": 3}
                answer = client.post(
                    "/v1/search", json=asked, headers={"traceparent": f"00-{CALLER}-{PARENT}-01"}
                ).json()
                spans = collector.await_trace(CALLER, {"POST /v1/search", "search channels"})
                request, stage = spans["POST /v1/search"], spans["search channels"]
                assert request.parent_span_id.hex() == PARENT
                assert stage.parent_span_id == request.span_id
                assert request.start_time_unix_nano < stage.start_time_unix_nano < stage.end_time_unix_nano
                verdict = {
                    "type": "explicit",
                    "answer": answer["token"],
                    "signal": 1.0,
                    "content_hash": answer["results"][0]["content_hash"],
                }
                taken = client.post("/v1/feedback", json=verdict)
                assert taken.status_code == httpx.codes.ACCEPTED, taken.text
                (event_id,) = taken.json()["event_ids"]
                trace_id = f"{get_current_span(event_context(event_id)).get_span_context().trace_id:032x}"
                spans = collector.await_trace(trace_id, {"weft.send", "weft.apply", "weft.publish"})
                sent, applied, published = (spans[name] for name in ("weft.send", "weft.apply", "weft.publish"))
                assert sent.start_time_unix_nano < applied.start_time_unix_nano < published.start_time_unix_nano
                assert {each.key: each.value.string_value for each in sent.attributes} == {"weft.event_id": event_id}
            lines = [line for path in tmp_path.glob("serve-*.log") for line in path.read_text().splitlines()]
        finally:
            updaters.terminate()
            updaters.wait(60)
    logged = [json.loads(line) for line in lines if line.startswith("{")]
    requests = [each for each in logged if each["message"] == "request" and each["route"] == "/v1/search"]
    assert [(each["level"], each["method"], each["status"]) for each in requests] == [("INFO", "POST", 200)]
    updates = (tmp_path / "update.log").read_text().splitlines()
    assert [json.loads(line)["message"] for line in updates if line.startswith("{")]
    assert not [line for line in [*lines, *updates] if " INFO " in line or " WARNING " in line]
