"""Health: what is live and what rings, who says what, and what could not be read."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import Request
from nicegui import ui

from weft.app.views.status import status_of
from weft.feedback.run.metrics import SourceActivity, UnmetQuery, partition_progress, unmet_queries
from weft.feedback.run.partitions import states_in
from weft.feedback.store.tables import StoredDeadLetter, dead_letters_in
from weft.runtime.clock import stamp
from weft.service.console.layout import ERRORS, PATIENCE_S, el, show_error, table, visit
from weft.service.state import Service

_LETTERS = 20  # shown of each partition
_MS = 1000.0
_MINUTE_S, _HOUR_S, _DAY_S = 60.0, 3600.0, 86_400.0
_GB = 1e9


@dataclass(frozen=True, slots=True)
class _Values:
    """All that the page shows."""

    status: Mapping[str, Any]
    sources: Sequence[SourceActivity]
    unmet: Sequence[UnmetQuery]
    letters: Sequence[tuple[int, StoredDeadLetter]]  # by partition


@ui.page("/sources", response_timeout=PATIENCE_S)
async def page(request: Request) -> None:
    """What `weft status`, `weft feedback status` and `weft dlq list` say."""
    at = visit(request, "health")
    box = el("div")
    try:
        values = await asyncio.to_thread(_read, at.service)
    except ERRORS as error:
        show_error(box, error)
        return
    with box:
        el("h1", "Health")
        _status(at.service, values.status)
        el("h2", "Who says what")
        _sources(values.sources)
        el("h2", "Feedback without an answer")
        rows = [
            (each.waiting.session_id, each.waiting.query_id, str(each.waiting.events), each.advice)
            for each in values.unmet
        ]
        if rows:
            table(("session", "query", "events", "what to do"), rows, numbers=frozenset({2}))
        else:
            el("p", "None waits.", "soft")
        el("h2", "Dead letters")
        letters = [
            (f"{partition}:{each.offset}", stamp(each.timestamp / _MS), each.reason, each.detail)
            for partition, each in values.letters
        ]
        if letters:
            table(("place", "time", "reason", "what was wrong"), letters)
        else:
            el("p", "None: every record could be read.", "soft")


def _read(service: Service) -> _Values:
    rules = service.settings.feedback
    _, sources = partition_progress(service.root, rules)
    _, unmet = unmet_queries(service.root, rules)
    letters = [
        (state.partition, each)
        for state in states_in(service.root, rules)
        for each in state.read(dead_letters_in, 0, _LETTERS)
    ]
    return _Values(status_of(service.root, service.settings), sources, unmet, letters)


def _status(service: Service, status: Mapping[str, Any]) -> None:
    for name, says in status["alarms"].items():
        el("p", f"{name}: {says}", "problem", role="note")
    if not status["alarms"]:
        el("p", "No alarm rings.", "fine")
    hears = "none is named" if service.events is None else service.settings.kafka.bootstrap
    facts = {
        "Generation": status["generation"] or "none",
        "Documents": f"{status.get('documents', 0):,}",
        "Learned version": status["learned_version"] or "the priors alone",
        "Last night": _ago(status["last_night_age_s"]),
        "Broker": hears,
        "Updaters": f"{status['partitions']} partitions, {status['lag']:,} events behind",
        "Events applied": f"{status['events_applied']:,} of {status['events_consumed']:,}",
        "Dead letters": f"{status['events_dead_lettered']:,}, and {status['events_lost']:,} lost",
        "Searches waiting": str(service.searches.waiting),
        "Free disk": f"{status['free_bytes'] / _GB:,.1f} of {status['disk_bytes'] / _GB:,.1f} GB",
        "Feedback": status["authenticity"],
    }
    with el("dl", None, "facts-grid"):
        for name, value in facts.items():
            with el("div"):
                el("dt", name)
                el("dd", str(value))


def _ago(age_s: float | None) -> str:
    if age_s is None:
        return "none yet"
    for unit, length in (("days", _DAY_S), ("hours", _HOUR_S), ("minutes", _MINUTE_S)):
        if age_s >= length:
            return f"{age_s / length:.1f} {unit} ago"
    return "a moment ago"


def _sources(sources: Sequence[SourceActivity]) -> None:
    if not sources:
        el("p", "Nobody was shown anything yet, or no updater has run.", "soft")
        return
    rows = []
    for each in sources:
        rates = ", ".join(
            f"{what} {rate:.2g} ({each.expected.get(what, 0.0):.2g})" for what, rate in each.seen.items() if rate
        )
        rows.append((each.kind, each.name, f"{each.impressions:,}", rates, "; ".join(each.flags) or "as others"))
    table(("kind", "source", "answers", "per answer (others)", "flags"), rows, numbers=frozenset({2}))
