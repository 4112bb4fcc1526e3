"""What is so in a store, on one screen: what is live, its age, how far updaters are, the last night, alarms (OPS-4)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft.catalog.catalog import Catalog
from weft.domain.errors import StoreError
from weft.evaluation.log.alarms import Alarm
from weft.feedback.run.metrics import METRICS_FILE
from weft.feedback.run.partitions import states_in
from weft.feedback.settings import WITHOUT_KEY
from weft.runtime.clock import Clock, system_clock
from weft.runtime.storage.working_copy import replace_table, url_of
from weft.settings import Settings

NIGHT_FILE = "logs/night.json"
"""In a store: when the last night ended, what came of it, and which alarms rang."""

_COUNTS = ("documents", "chunks", "contents")
_EVENTS = ("consumed", "applied", "dead_lettered", "lost")


def note_night(root: Path, summary: Mapping[str, Any], alarms: Sequence[Alarm], *, at: float) -> None:
    """Write down that a night ended: who watches a store sees by its age whether nights still happen."""
    facts = {
        "at": at,
        "learned": summary.get("learned"),
        "decision": summary.get("decision"),
        "alarms": {alarm.name: alarm.says for alarm in alarms},
    }
    data = json.dumps(facts).encode()
    replace_table(root, NIGHT_FILE, lambda _: data)


@dataclass(frozen=True, slots=True)
class Seen:
    """What is so at one time; ages in seconds, None where there is nothing to be old."""

    counts: Mapping[str, int]
    generation_age_s: float | None
    learned_age_s: float | None
    night_age_s: float | None
    alarms: Mapping[str, str]  # what those that rang in the last night say, by name


@dataclass(frozen=True, slots=True)
class StoreFacts:
    """Reads a store, whenever somebody looks."""

    root: Path
    clock: Clock = system_clock

    def read(self) -> Seen:
        """What is so now; what cannot be read is left out."""
        catalog, now = Catalog(self.root), self.clock()
        pointer = catalog.pointer()
        live = next((each for each in catalog.generations() if each.id == pointer.generation), None)
        learned = None
        if pointer.learned is not None:
            try:
                learned = catalog.learned.manifest(pointer.learned).created_at
            except StoreError:
                learned = None
        night = _last_night(self.root)
        return Seen(
            {name: 0 if live is None else live.counts.get(name, 0) for name in _COUNTS},
            None if live is None else now - live.created_at,
            None if learned is None else now - learned,
            None if night is None else now - night["at"],
            {} if night is None else night["alarms"],
        )

    def updaters(self) -> str:
        """What the updaters of the store last said of themselves, in Prometheus' text format."""
        try:
            return (self.root / METRICS_FILE).read_text(encoding="utf-8")
        except OSError:
            return ""


def status_of(root: Path, settings: Settings, *, clock: Clock = system_clock) -> dict[str, Any]:
    """What is live: the generation with its size, the learned version, and the sums over all partitions."""
    catalog, now = Catalog(root), clock()
    pointer, seen = catalog.pointer(), StoreFacts(root, lambda: now).read()
    live = next((each for each in catalog.generations() if each.id == pointer.generation), None)
    reports = [state.report() for state in states_in(root, settings.feedback)]
    disk = shutil.disk_usage(root)
    return {
        "store": url_of(root) or str(root.resolve()),
        "generation": pointer.generation,
        "vectors": "none" if live is None else "still to come" if live.is_by_words else "there",
        "made_at": None if live is None else live.created_at,
        **seen.counts,
        "models": {} if live is None else dict(live.models),
        "learned_version": pointer.learned,
        "learned_age_s": seen.learned_age_s,
        "last_night_age_s": seen.night_age_s,
        "alarms": dict(seen.alarms),
        "partitions": len(reports),
        "lag": sum(max(0, report.log_end - report.next_offset) for report in reports),
        **{f"events_{name}": sum(getattr(report, name) for report in reports) for name in _EVENTS},
        "open_sessions": sum(report.open_sessions for report in reports),
        "authenticity": WITHOUT_KEY if settings.feedback.key is None else "impressions are signed, feedback has tokens",
        "free_bytes": disk.free,
        "disk_bytes": disk.total,
    }


def _last_night(root: Path) -> dict[str, Any] | None:
    try:
        night = json.loads((root / NIGHT_FILE).read_bytes())
        return {"at": float(night["at"]), "alarms": dict(night["alarms"])}
    except (OSError, ValueError, KeyError, TypeError):
        return None
