"""FBK-5, FBK-12: a broker that falls silent under a running updater is told, and patience with it has an end."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.support.feedback_events import explicit, impression, records, rules
from tests.support.feedback_source import FakeLog, FakeSource
from weft.domain.errors import BrokerUnavailableError
from weft.feedback.run.metrics import prometheus, samples
from weft.feedback.run.updater import Updater, keep_up
from weft.runtime.kafka.log import Batches

RULES = rules(retry_s=1.0)


class SilentSource(FakeSource):
    """Polls as Kafka clients do: where nobody answers there is nothing new."""

    def poll(self, max_records: int, timeout_s: float) -> Batches:
        return super().poll(max_records, timeout_s) if self._log.available else {}


@pytest.fixture
def log() -> FakeLog:
    return FakeLog.of(records([impression(), explicit()]))


@pytest.fixture
def updater(log: FakeLog, tmp_path: Path) -> Iterator[Updater]:
    updater = Updater.open(SilentSource(log), tmp_path, [0], RULES)
    yield updater
    updater.close()


def kept_up(updater: Updater, clock: Iterator[int], unreachable_s: float | None, *, calls: int = 1) -> None:
    """Calls as an actor makes them, of a single step each."""
    for _ in range(calls):
        keep_up(
            updater,
            until=lambda _: True,
            monotonic=lambda: float(next(clock)),
            pause=lambda _: None,
            rules=RULES,
            unreachable_s=unreachable_s,
        )


def test_patience_runs_on_from_call_to_call(log: FakeLog, updater: Updater) -> None:
    """FBK-5: each call lasts a second, and patience a minute; polls that bring nothing are no answer."""
    clock = count()
    kept_up(updater, clock, 60.0)
    log.available = False
    with pytest.raises(BrokerUnavailableError):
        kept_up(updater, clock, 60.0, calls=200)
    assert next(clock) >= 60


def test_who_waits_for_ever_is_told_and_sees_the_end_of_it(log: FakeLog, updater: Updater, tmp_path: Path) -> None:
    """FBK-12: the lag is what the broker said last, so that it cannot tell."""
    clock = count()
    told = []
    for available in (True, False, True):
        log.available = available
        kept_up(updater, clock, None, calls=10)
        (standing,) = updater.progress()
        told.append(standing.answers)
        assert standing.lag == 0
        metric = f'weft_feedback_broker_answers{{partition="0"}} {int(available)}\n'
        assert metric in prometheus(samples(tmp_path, [standing], now=0.0))
    assert told == [True, False, True]
