"""Feedback, read from the topic and kept beside the queries that it is about (EVA-3).

The topic is Kafka's and forgets; the log keeps what it needs of it. Where reading stopped is written after what was
read: a crash in between reads a few events again, and readers count an event id once.
"""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from weft.domain.errors import InvalidEventError, WrongLogError
from weft.domain.events import AnyEvent, Explicit, Feedback, Reference, Selection
from weft.evaluation.queries.days import OUTCOME_LOG, day_folder, keep_days, merge_small
from weft.evaluation.queries.schema import OUTCOMES
from weft.evaluation.queries.writer import write_rows
from weft.evaluation.settings import QueryLogSettings
from weft.feedback.events.codec import decode
from weft.feedback.log import FeedbackSource
from weft.runtime.clock import day_of
from weft.runtime.kafka.log import Batches, Record
from weft.runtime.storage.working_copy import replace_table, working_copy_of

log = logging.getLogger(__name__)

POLL_RECORDS = 5_000
"""Events read at once."""

_POLL_S = 1.0  # to wait for them
_POSITIONS = "positions.json"
_FEEDBACK = get_args(Feedback)


@dataclass(frozen=True, slots=True)
class Collected:
    """What one run read and kept."""

    records: int
    outcomes: int


class Outcomes:
    """Reads a topic on from where the last run stopped; one process at a time."""

    def __init__(self, root: Path, settings: QueryLogSettings, *, max_bytes: int, now: float) -> None:
        self._folder = root / OUTCOME_LOG
        self._root = root
        self._settings = settings
        self._max_bytes = max_bytes
        self._now = now

    def collect(self, source: FeedbackSource) -> Collected:
        """Read what is in the topic now, and keep what is feedback about an answer.

        Raises:
            BrokerUnavailableError: Nobody answers; what was read is kept, and the next run goes on from there.
        """
        facts = source.facts()
        stored = self._positions(facts.topic_id)
        positions = {partition: stored.get(partition, 0) for partition in range(facts.partitions)}
        source.assign(list(positions))
        for partition, position in list(positions.items()):
            positions[partition] = max(position, source.log_start(partition))
            source.seek(partition, positions[partition])
        records = outcomes = 0
        while batches := _polled(source):
            rows = [row for batch in batches.values() for record in batch for row in self._rows(record)]
            self._write(rows)
            for partition, batch in batches.items():
                positions[partition] = batch[-1].offset + 1
                records += len(batch)
            outcomes += len(rows)
            self._remember(facts.topic_id, positions)
        keep_days(self._folder, self._settings.keep_days, today=day_of(self._now))
        return Collected(records, outcomes)

    def _positions(self, topic_id: str) -> dict[int, int]:
        """Where the next record of each partition is; none for a topic that was made anew."""
        if (copy := working_copy_of(self._root)) is not None:
            copy.look_up(f"{OUTCOME_LOG}/{_POSITIONS}")
        try:
            stored = json.loads((self._folder / _POSITIONS).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        if stored["topic_id"] != topic_id:
            log.warning("the topic was made anew: outcomes are collected from its start")
            return {}
        return {int(partition): int(offset) for partition, offset in stored["positions"].items()}

    def _remember(self, topic_id: str, positions: Mapping[int, int]) -> None:
        content = {"topic_id": topic_id, "positions": {str(name): offset for name, offset in positions.items()}}
        replace_table(self._root, f"{OUTCOME_LOG}/{_POSITIONS}", lambda _: json.dumps(content, sort_keys=True).encode())

    def _write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        by_day: defaultdict[int, list[Mapping[str, Any]]] = defaultdict(list)
        for row in rows:
            by_day[day_of(row["said_at"] / 1000.0)].append(row)
        for day, some in sorted(by_day.items()):
            write_rows(day_folder(self._folder, day), some, OUTCOMES)
            merge_small(day_folder(self._folder, day))

    def _rows(self, record: Record) -> Iterator[dict[str, Any]]:
        try:
            event = decode(record.value, max_bytes=self._max_bytes)
        except InvalidEventError:
            return  # the updaters count it and keep it as a dead letter
        # A time from nowhere would put the row on a day that nobody looks at.
        horizon = self._settings.keep_days * 86_400_000
        if isinstance(event, _FEEDBACK) and abs(event.ts - self._now * 1000.0) < horizon:
            yield from outcome_rows(event)


def outcome_rows(event: AnyEvent) -> Iterator[dict[str, Any]]:
    """The rows that a piece of feedback becomes, one per content that it names; none for other events."""
    if not isinstance(event, _FEEDBACK):
        return
    facts = {
        "said_at": event.ts,
        "event_id": event.event_id,
        "query_id": event.query_id,
        "session_id": event.session_id,
        "principal": event.principal,
        "kind": event.__struct_config__.tag,
        "rank": event.rank if isinstance(event, Selection) else None,
        "value": event.signal if isinstance(event, Explicit) else event.match if isinstance(event, Reference) else 1.0,
    }
    named = getattr(event, "content_hashes", None) or (getattr(event, "content_hash", None),)
    for content in named:
        yield {**facts, "content_hash": content}


def _polled(source: FeedbackSource) -> Batches:
    try:
        return source.poll(POLL_RECORDS, _POLL_S)
    except WrongLogError as error:
        raise WrongLogError(f"{error}: delete logs/outcomes/{_POSITIONS} to read the topic from its start") from error
