"""Spans as OpenTelemetry makes and sends them; imported where a collector is named."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.propagate import extract
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, TraceFlags, set_span_in_context

_NS = 1_000_000_000


class Spans:
    """Makes spans, and sends them in the background."""

    def __init__(self) -> None:
        os.environ.setdefault("OTEL_SERVICE_NAME", "weft")
        provider = TracerProvider(resource=Resource.create())
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = provider.get_tracer("weft")

    def of_events(self, name: str, event_ids: Iterable[str], began_s: float) -> None:
        """One for each event, from a time in seconds since the epoch until now."""
        ended = time.time_ns()
        for each in event_ids:
            facts = {"weft.event_id": each}
            began = int(began_s * _NS)
            self._tracer.start_span(name, event_context(each), attributes=facts, start_time=began).end(ended)

    @contextmanager
    def of_request(self, name: Callable[[], str], headers: Mapping[str, str]) -> Iterator[None]:
        """One of what runs inside, which gives it its name; below the caller's where `traceparent` names that."""
        with self._tracer.start_as_current_span("request", extract(headers), kind=SpanKind.SERVER) as span:
            try:
                yield
            finally:
                span.update_name(name())

    def of_stages(self, stages_ms: Mapping[str, float]) -> None:
        """One for each stage of a search, one after another until now, below the span that runs."""
        at = time.time_ns() - int(sum(stages_ms.values()) * 1e6)
        for name, took in stages_ms.items():
            span = self._tracer.start_span(f"search {name}", start_time=at)
            at += int(took * 1e6)
            span.end(at)


def event_context(event_id: str) -> Context:
    """Where the spans of an event belong, in whichever process they are made: a hash of its id."""
    digest = hashlib.blake2b(event_id.encode(), digest_size=24).digest()
    ids = int.from_bytes(digest[:16]), int.from_bytes(digest[16:])
    return set_span_in_context(NonRecordingSpan(SpanContext(*ids, is_remote=True, trace_flags=TraceFlags(1))))
