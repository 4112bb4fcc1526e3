"""What an operator watches of a service, for Prometheus (OPS-10)."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from weft.app.views.status import StoreFacts
from weft.domain.errors import StoreError

if TYPE_CHECKING:
    from weft.service.processes import Searches

SECONDS = (0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.12, 0.25, 0.5, 1.0, 2.5, 10.0)
"""Bounds of the histograms: the goals of a search are .06 and .08 s."""


class Metrics:
    """Counters of one service, and gauges that are read when somebody looks."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._facts: StoreFacts | None = None
        at: Any = {"registry": self.registry}
        self.requests = Counter(
            "weft_http_requests", "Requests by route and status", ["route", "method", "status"], **at
        )
        self.seconds = Histogram("weft_http_request_seconds", "Time of a request", ["route"], buckets=SECONDS, **at)
        self.in_flight = Gauge("weft_http_requests_in_flight", "Requests under way", **at)
        self.refused = Counter("weft_refused", "Requests refused, by reason", ["reason"], **at)
        self.searches = Counter("weft_searches", "Searches by outcome: answered, gap or failed", ["outcome"], **at)
        self.stages = Histogram(
            "weft_search_stage_seconds", "Time of a search by stage", ["stage"], buckets=SECONDS, **at
        )
        self.events = Counter("weft_producer_events", "Events taken for the topic, by type", ["type"], **at)
        for outcome in ("answered", "gap", "failed"):
            self.searches.labels(outcome)

    def watch(self, searches: Searches, facts: StoreFacts, producer: Any) -> None:
        """Read gauges of search processes, a store and a producer whenever somebody looks."""
        self._facts = facts
        self.registry.register(_Gauges(searches, facts, producer))

    def searched(self, outcome: str, stages_ms: Mapping[str, float]) -> None:
        """Count a search."""
        self.searches.labels(outcome).inc()
        for stage, took in stages_ms.items():
            self.stages.labels(stage).observe(took / 1000.0)

    def text(self) -> bytes:
        """All of it in Prometheus' text format, and what the updaters of the store say of themselves."""
        return generate_latest(self.registry) + ("" if self._facts is None else self._facts.updaters()).encode()


class _Gauges:
    """What is read of a store when somebody looks; what cannot be read is left out."""

    def __init__(self, searches: Searches, facts: StoreFacts, producer: Any) -> None:
        self._searches = searches
        self._facts = facts
        self._producer = producer

    def describe(self) -> Iterable[Metric]:
        """Nothing: names are known when they are collected."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """What is so now."""
        yield GaugeMetricFamily("weft_searches_waiting", "Searches that wait", value=self._searches.waiting)
        yield CounterMetricFamily(
            "weft_search_process_restarts", "Search processes started anew", value=self._searches.restarts
        )
        vectors = CounterMetricFamily(
            "weft_query_vectors", "Texts of queries, by whether their vectors were remembered", labels=["from"]
        )
        vectors.add_metric(["memory"], self._searches.recalled)
        vectors.add_metric(["encoder"], self._searches.computed)
        yield vectors
        if self._producer is not None:
            yield GaugeMetricFamily(
                "weft_producer_waiting", "Events not acknowledged yet", value=self._producer.waiting
            )
            yield CounterMetricFamily("weft_producer_lost", "Events no broker will have", value=self._producer.lost)
        yield GaugeMetricFamily("weft_store_free_bytes", "Free space under the store", value=_free(self._facts.root))
        try:
            seen = self._facts.read()
        except (OSError, StoreError):
            return
        ages = {"generation": seen.generation_age_s, "learned": seen.learned_age_s, "night": seen.night_age_s}
        for name, age in ages.items():
            if age is not None:
                yield GaugeMetricFamily(f"weft_{name}_age_seconds", f"Age of what is live: {name}", value=age)
        for name, count in seen.counts.items():
            yield GaugeMetricFamily(f"weft_{name}", f"In the live generation: {name}", value=count)
        alarms = GaugeMetricFamily("weft_alarm", "Alarms that rang in the last night", labels=["name"])
        for name in seen.alarms:
            alarms.add_metric([name], 1.0)
        yield alarms


def _free(root: Path) -> float:
    try:
        return float(shutil.disk_usage(root).free)
    except OSError:
        return 0.0
