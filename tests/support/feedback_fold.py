"""An independent reading of a feedback log, from the specification alone: none of weft's code, only `json` and dicts.

It serves logs whose times are plausible and lie within a few hours, so that windows and clocks never come into play.

Evidence of one credited result, of weight w, shown with signal values s in [0, 1] and a score (LRN-4):
    mass = round(w · 10⁶); agreed = round(w · s · 10⁶) if good, round(w · (1 − s) · 10⁶) if bad
    signal.<name>.<good|bad>: "for" += agreed, "against" += mass − agreed
    where a result at a rank that is looked at with probability p weighs min(1/p, clip) times a click's or skip's weight
    examination of a shown result: "<rank>/<bin>/<bins>.shown" += 10⁶, ".score" += round(score · 10⁶); ".clicked" += 10⁶
    relevance: "<bin>/<bins>.<good|bad>" += mass;  usage of the content: "positive" or "negative" += mass
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MICRO = 1_000_000
DAY_MS = 86_400_000


@dataclass
class Overlay:
    """What an isolated session learned."""

    counts: dict[tuple[Any, ...], int] = field(default_factory=lambda: defaultdict(int))
    usage: dict[tuple[Any, ...], int] = field(default_factory=lambda: defaultdict(int))


@dataclass
class Folded:
    """What a log comes to: integer masses by key, and how many records met which fate."""

    counts: dict[tuple[Any, ...], int] = field(default_factory=lambda: defaultdict(int))
    usage: dict[tuple[Any, ...], int] = field(default_factory=lambda: defaultdict(int))
    fates: Counter[str] = field(default_factory=Counter)

    def digest(self) -> str:
        """SHA-256 over all masses that are not zero."""
        return digest_of(self.counts, self.usage)


def digest_of(counts: dict[tuple[Any, ...], int], usage: dict[tuple[Any, ...], int]) -> str:
    rows = sorted([*map(str, key), str(mass)] for key, mass in [*counts.items(), *usage.items()] if mass)
    return hashlib.sha256("\n".join("\t".join(row) for row in rows).encode()).hexdigest()


def fold_log(partitions: Iterable[Sequence[bytes | None]], *, bins: int, weights: dict[str, float]) -> Folded:
    """Read every partition from its start: values in the order of their offsets."""
    folded = Folded()
    for values in partitions:
        _Reader(folded, bins, weights).read(values)
    return folded


def digest_of_stores(folders: Iterable[Path]) -> str:
    """The same digest over what the updaters left, read with SQL; keys of several partitions add up."""
    counts: dict[tuple[Any, ...], int] = defaultdict(int)
    usage: dict[tuple[Any, ...], int] = defaultdict(int)
    for folder in folders:
        connection = sqlite3.connect(folder / "state.sqlite")
        for *key, mass in connection.execute(
            "select day, domain, model, agent, intent, parameter, bin, micro from evidence"
        ):
            counts[tuple(key)] += mass
        for *key, mass in connection.execute("select day, content_hash, bin, micro from usage"):
            usage[tuple(key)] += mass
        connection.close()
    return digest_of(counts, usage)


class _Reader:
    def __init__(self, folded: Folded, bins: int, weights: dict[str, float]) -> None:
        self.folded = folded
        self.bins = bins
        self.weights = weights
        self.overlays: dict[str, Overlay] = {}
        self.ended: dict[str, str] = {}

    def read(self, values: Sequence[bytes | None]) -> None:
        seen: set[str] = set()
        shown: dict[tuple[str, str], dict[str, Any]] = {}
        early: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
        for value in values:
            event = _event(value)
            if event is None:
                self.folded.fates["dead_lettered"] += 1
                continue
            if event["event_id"] in seen:
                self.folded.fates["duplicate"] += 1
                continue
            seen.add(event["event_id"])
            self.folded.fates["applied"] += 1
            if event["type"] == "session":
                self.turn(event["session_id"], event["phase"])
                continue
            query = (event["session_id"], event["query_id"])
            if event["type"] == "impression":
                shown[query] = {**event, "chosen": []}
                for result in event["results"]:
                    self.examine(shown[query], result, {"shown": MICRO, "score": round(result["score"] * MICRO)})
                for one in early.pop(query, []):
                    self.credit(one, shown[query])
            elif query in shown:
                self.credit(event, shown[query])
            else:
                early[query].append(event)

    def turn(self, session: str, phase: str) -> None:
        isolated = self.overlays.get(session)
        if phase in {"start", "resume"}:
            self.overlays[session] = isolated or Overlay()
            self.ended.pop(session, None)
        elif isolated is not None and phase in {"complete", "abandon"}:
            del self.overlays[session]
            self.ended[session] = phase
            if phase == "complete":
                for into, masses in (
                    (self.folded.counts, isolated.counts),
                    (self.folded.usage, isolated.usage),
                ):
                    for key, mass in masses.items():
                        into[key] += mass

    def place(self, session: str) -> Overlay | Folded:
        """Where a session's evidence goes: shared, its own, or nowhere."""
        return self.overlays.get(session) or (Overlay() if self.ended.get(session) == "abandon" else self.folded)

    def credit(self, event: dict[str, Any], impression: dict[str, Any]) -> None:
        named = [result for result in impression["results"] if result["content_hash"] == event.get("content_hash")]
        if event["type"] == "selection":
            self.choose(event, impression, named[0])
            return
        weight = abs(event["signal"]) * self.weights["explicit"]
        judged = named
        if not named:
            judged = [result for result in impression["results"] if result["included"]]
            weight = weight / len(judged)
        if weight > 0:
            for result in judged:
                self.add(event, impression, result, event["signal"] > 0, weight)

    def choose(self, event: dict[str, Any], impression: dict[str, Any], result: dict[str, Any]) -> None:
        if result["rank"] in impression["chosen"]:
            return
        self.examine(impression, result, {"clicked": MICRO})
        self.add(event, impression, result, True, self.weights["selected"] * self.inverse(result))
        for other in impression["results"]:
            if max(impression["chosen"], default=0) < other["rank"] < result["rank"]:
                self.add(event, impression, other, False, self.weights["skipped"] * self.inverse(other))
        impression["chosen"].append(result["rank"])

    def inverse(self, result: dict[str, Any]) -> float:
        looked = result.get("examination", 1.0)
        return min(1.0 / looked, self.weights["inverse_clip"]) if looked else self.weights["inverse_clip"]

    def examine(self, impression: dict[str, Any], result: dict[str, Any], masses: dict[str, int]) -> None:
        if result["rank"] > self.weights["ranks"]:
            return
        leaf = (impression["ts"] // DAY_MS, result["domain"], impression["model"], impression["agent"], "*")
        bins = int(self.weights["score_bins"])
        cell = f"{result['rank']:02d}/{min(int(result['score'] * bins), bins - 1):02d}/{bins}"
        place = self.place(impression["session_id"])
        for kind, mass in masses.items():
            place.counts[*leaf, "examination", f"{cell}.{kind}"] += mass

    def add(
        self, event: dict[str, Any], impression: dict[str, Any], result: dict[str, Any], good: bool, weight: float
    ) -> None:
        day, kind, bins = event["ts"] // DAY_MS, "good" if good else "bad", self.bins
        leaf = (day, result["domain"], impression["model"], impression["agent"], "*")
        place = self.place(event["session_id"])
        mass, counts = round(weight * MICRO), place.counts
        for name, value in result["signals"].items():
            agreed = round(weight * (value if good else 1.0 - value) * MICRO)
            counts[*leaf, f"signal.{name}.{kind}", "for"] += agreed
            counts[*leaf, f"signal.{name}.{kind}", "against"] += mass - agreed
        counts[*leaf, "relevance", f"{min(int(result['score'] * bins), bins - 1):02d}/{bins}.{kind}"] += mass
        place.usage[day, result["content_hash"], "positive" if good else "negative"] += mass


def _event(value: bytes | None) -> dict[str, Any] | None:
    try:
        event: dict[str, Any] = json.loads((value or b"").decode())
    except (ValueError, RecursionError):
        return None
    # The traffic's own garbage: everything in it that is JSON lacks a principal.
    return event if "principal" in event else None
