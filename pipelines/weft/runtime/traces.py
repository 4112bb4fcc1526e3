"""Traces by OpenTelemetry: a request with the stages of its search, an event from its producer to belief (OPS-10).

They are made where a variable of OpenTelemetry names a collector, and cost nothing elsewhere. The trace of an event is
found by the event's id: neither records nor tables carry one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weft.runtime.spans import Spans

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


@cache
def spans() -> Spans | None:
    """What makes spans; None where no collector is named.

    Raises:
        ModuleNotFoundError: One is named, and what sends to it is not installed.
    """
    if not any(os.environ.get(name) for name in ENDPOINTS):
        return None
    from weft.runtime.spans import Spans  # noqa: PLC0415  an extra, and .1 s

    return Spans()


def event_spans(name: str, event_ids: Iterable[str], began_s: float) -> None:
    """A span for each event, from a time in seconds since the epoch until now."""
    if (makes := spans()) is not None:
        makes.of_events(name, event_ids, began_s)


def request_span(name: Callable[[], str], headers: Mapping[str, str]) -> AbstractContextManager[None]:
    """A span of a block, which gives it its name."""
    return nullcontext() if (makes := spans()) is None else makes.of_request(name, headers)


def stage_spans(stages_ms: Mapping[str, float]) -> None:
    """Spans of the stages of a search that has ended; of a batch, an answer's share."""
    if (makes := spans()) is not None:
        makes.of_stages(stages_ms)


class EventTraces:
    """Of an updater: which events were applied, and when searches could believe them."""

    def __init__(self) -> None:
        self._waiting: list[str] = []
        self._began = time.time()

    @classmethod
    def configured(cls) -> EventTraces | None:
        """None where nobody collects them."""
        return None if spans() is None else cls()

    def begin(self) -> None:
        """A batch is applied from now on."""
        self._began = time.time()

    def applied(self, event_ids: Iterable[str]) -> None:
        """They count, durably."""
        applied = list(event_ids)
        event_spans("weft.apply", applied, self._began)
        self._waiting += applied

    def published(self) -> None:
        """What counts is in the snapshots that searches read."""
        event_spans("weft.publish", self._waiting, time.time())
        self._waiting.clear()
