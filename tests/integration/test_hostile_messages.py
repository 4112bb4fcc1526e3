"""FBK-3: ten thousand messages that mean harm, with honest ones between them."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.feedback_events import NOON, explicit, impression, one_of_each, rules
from tests.support.feedback_source import FakeLog, FakeSource
from weft.feedback.events.codec import encode
from weft.feedback.run.updater import Updater
from weft.feedback.store.tables import dead_letters_in, evidence_in
from weft.learning.observe.verdicts import is_good
from weft.runtime.kafka.log import Record

TIMES = (-1, 0, 2**62, -(2**63), 2**63 - 1, NOON)
LIMIT = 16_384
SETTINGS = rules(limits__event_bytes=LIMIT, poll_records=700)


def templates() -> list[dict[str, Any]]:
    return [json.loads(encode(event)) for event in one_of_each()]


def dumps(value: object) -> bytes:
    return json.dumps(value).encode()


def mangled(rng: random.Random, template: dict[str, Any]) -> tuple[bytes | None, frozenset[str]]:
    """A message and the reasons that it may be refused with; none for what may still be an event."""
    event = dict(template, event_id=f"{rng.getrandbits(64):x}")
    whole = dumps(event)
    name = rng.choice(sorted(event))
    kinds: tuple[Callable[[], tuple[bytes | None, frozenset[str]]], ...] = (
        lambda: (None, frozenset({"tombstone"})),
        lambda: (rng.randbytes(rng.randrange(1, 60)), frozenset({"undecodable", "invalid"})),
        lambda: (whole[: rng.randrange(len(whole))], frozenset({"undecodable"})),
        lambda: (whole.replace(b'"principal": "', b'"principal": "\xff\xfe', 1), frozenset({"undecodable"})),
        lambda: (b"[" * rng.choice((50, 16_000)), frozenset({"undecodable", "invalid"})),
        lambda: (b'{"a":' * 2_000 + b"1" + b"}" * 2_000, frozenset({"undecodable", "invalid", "unknown_type"})),
        lambda: (b" " * (LIMIT + 1), frozenset({"oversized"})),
        lambda: (dumps({**event, "padding": "x" * LIMIT}), frozenset({"oversized"})),
        lambda: (dumps({**event, "ts": rng.choice((-1, 0))}), frozenset({"too_old"})),
        lambda: (dumps({**event, "ts": rng.choice((2**62, 2**63 - 1))}), frozenset({"too_new"})),
        lambda: (dumps({**event, "ts": 10**400}), frozenset({"invalid", "non_finite", "too_new"})),
        lambda: (dumps({**event, "ts": float("nan")}), frozenset({"non_finite"})),
        lambda: (dumps({**event, "signal": float("inf")}), frozenset({"non_finite"})),
        lambda: (dumps({**event, "schema": 99}), frozenset({"unknown_schema"})),
        lambda: (dumps({**event, "type": "applause"}), frozenset({"unknown_type"})),
        lambda: (dumps({**event, name: {"deeply": ["wrong"]}}), frozenset({"invalid", "unknown_type"})),
        lambda: (dumps({key: value for key, value in event.items() if key != "event_id"}), frozenset({"invalid"})),
        lambda: (dumps({**event, "session_id": ""}), frozenset({"invalid"})),
        lambda: (dumps({**event, "principal": "p" * 1_000}), frozenset({"invalid"})),
        lambda: (dumps([event]), frozenset({"invalid"})),
        lambda: (b"null", frozenset({"invalid"})),
    )
    return rng.choice(kinds)()


def test_ten_thousand_hostile_messages_cost_nothing(tmp_path: Path) -> None:
    """FBK-3, FBK-5: every record has one fate, every dead letter its reason, every honest event its effect."""
    rng, shapes = random.Random(17), templates()
    values: list[bytes | None] = []
    reasons: dict[int, frozenset[str]] = {}
    honest = 0
    for number in range(10_000):
        if number % 20 == 0:
            query = f"honest-{number}"
            values.append(encode(impression(query)))
            values.append(encode(explicit(1.0, 1 + number % 4, query_id=query, event_id=f"{query} verdict")))
            honest += 1
        value, allowed = mangled(rng, rng.choice(shapes))
        reasons[len(values)] = allowed
        values.append(value)
    lain = [
        Record(0, offset, rng.choice(TIMES) if offset in reasons and rng.random() < 0.3 else NOON, b"\xff", value)
        for offset, value in enumerate(values)
    ]
    updater = Updater.open(FakeSource(FakeLog.of(lain)), tmp_path, [0], SETTINGS)
    while updater.step(0.0):
        pass
    state = updater._states[0]
    report, evidence = state.report(), state.read(evidence_in)
    letters = state.read(dead_letters_in, 0, 20_000)
    updater.close()
    assert report.balanced
    assert (report.consumed, report.dead_lettered) == (len(values), 10_000)
    assert report.applied == 2 * honest
    assert Counter(letter.reason for letter in letters) == Counter(report.reasons)
    assert {letter.offset for letter in letters} == set(reasons)
    for letter in letters:
        assert letter.reason in reasons[letter.offset], (letter.reason, letter.original[:200])
    assert sum(mass for key, mass in evidence.usage.items() if is_good(key.bin)) == honest * 1_000_000


@pytest.mark.parametrize("time", TIMES)
def test_no_record_time_moves_an_honest_event(tmp_path: Path, time: int) -> None:
    """FBK-3: whatever the times around it."""
    lain = [
        Record(0, 0, time, None, b"{"),
        *(
            Record(0, 1 + index, NOON, None, value)
            for index, value in enumerate((encode(impression()), encode(explicit())))
        ),
    ]
    updater = Updater.open(FakeSource(FakeLog.of(lain)), tmp_path, [0], SETTINGS)
    while updater.step(0.0):
        pass
    evidence = updater._states[0].read(evidence_in)
    report = updater._states[0].report()
    updater.close()
    assert report.applied == 2
    assert {key.day for key in evidence.usage} <= {NOON // 86_400_000}
