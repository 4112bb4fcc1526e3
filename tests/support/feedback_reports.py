"""Events as JSON, and what reports leave as evidence: a part of the independent reading of a feedback log."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

MICRO = 1_000_000


def _review(event: dict[str, Any]) -> list[tuple[str, str, int]]:
    place = min(int(event["confidence"] * 20), 19)
    return [("threshold", f"{place}/20.{'good' if event['good'] else 'bad'}", MICRO)]


def _accuracy(event: dict[str, Any]) -> list[tuple[str, str, int]]:
    place = int(4 * math.log2(max(event["age_hours"], 1.0)))
    return [("decay", f"{place}/4.{'accurate' if event['accurate'] else 'inaccurate'}", MICRO)]


def _quality(event: dict[str, Any]) -> list[tuple[str, str, int]]:
    found = {"n": 1.0, "sum": event["quality"], "squares": event["quality"] ** 2}
    return [("quality", f"{event['turn']}/64.{name}", round(value * MICRO)) for name, value in found.items()]


REPORTS: dict[str, Callable[[dict[str, Any]], list[tuple[str, str, int]]]] = {
    "review": _review,
    "accuracy": _accuracy,
    "model_quality": _quality,
    "trust": lambda event: [(f"trust.{event['source']}", "verified" if event["verified"] else "refuted", MICRO)],
}


def about_of(event: dict[str, Any]) -> list[str]:
    return [event[name] for name in ("source",) if name in event]


def event_of(value: bytes | None) -> dict[str, Any] | None:
    try:
        event: dict[str, Any] = json.loads((value or b"").decode())
    except (ValueError, RecursionError):
        return None
    # The traffic's own garbage: everything in it that is JSON lacks a principal.
    return event if "principal" in event else None
