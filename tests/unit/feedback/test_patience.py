"""FBK-5: for how long a broker that does not answer is waited for."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.support.feedback_events import RULES, records, session
from tests.support.feedback_source import FakeLog, FakeSource
from weft.domain.errors import BrokerUnavailableError
from weft.feedback.pipeline import POLL_TIMEOUT_S
from weft.feedback.run.updater import Updater, keep_up
from weft.runtime.kafka.log import Batches

pytestmark = pytest.mark.integration

PATIENCE_S, TURN_S = 60.0, 1.0


class QuietSource(FakeSource):
    """Polls as librdkafka does: while the broker is away they bring nothing, and say nothing of it."""

    def poll(self, max_records: int, timeout_s: float) -> Batches:
        return super().poll(max_records, timeout_s) if self._log.available else {}


@pytest.mark.parametrize("source", [FakeSource, QuietSource])
def test_patience_is_counted_from_the_last_answer(tmp_path: Path, source: type[FakeSource]) -> None:
    """FBK-5: not from the last look at the clock, nor from the last poll that brought nothing."""
    log = FakeLog.of(records([session()]))
    updater = Updater.open(source(log), tmp_path, [0], RULES)
    now = 0.0

    def passes(seconds: float) -> None:
        nonlocal now
        now += seconds

    def caches(until: float, _: Updater) -> bool:
        passes(POLL_TIMEOUT_S)
        return now >= until

    def turns(seconds: float) -> None:
        """What a job does about once a second, between one look at its standings and the next."""
        end = now + seconds
        while now < end:
            keep_up(
                updater,
                until=partial(caches, now + TURN_S),
                monotonic=lambda: now,
                pause=passes,
                rules=RULES,
                unreachable_s=PATIENCE_S,
            )

    turns(2 * PATIENCE_S)
    log.available, left_at = False, now
    with pytest.raises(BrokerUnavailableError):
        turns(2 * PATIENCE_S)
    assert now - left_at == pytest.approx(PATIENCE_S, abs=3 * TURN_S)  # it is asked about once a second
