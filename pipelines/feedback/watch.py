"""Whether the log is still the one that the stores belong to, asked at a steady pace while nothing is delivered.

Records that are delivered are checked with their batch. A log that was made again, truncated, repartitioned or
overtaken by its retention may deliver nothing at all, for ever; so it is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping

from pipelines.feedback.positions import Positions
from pipelines.feedback.source import FeedbackSource
from pipelines.feedback.standing import require_same_log, require_still_there, require_within
from pipelines.feedback.state import PartitionState


class LogWatch:
    """Looks at the log every `every_s` seconds of a monotonic clock."""

    def __init__(self, *, every_s: float) -> None:
        self._every_s = every_s
        self._look_at = float("-inf")
        self._beyond: set[int] = set()

    def look(
        self, source: FeedbackSource, states: Mapping[int, PartitionState], positions: Positions, now: float
    ) -> None:
        """Check every partition, if it is time to.

        Raises:
            WrongLogError: Naming the partition and what differs.
            BrokerUnavailableError: Nobody answers; asking again later is safe.
        """
        if now < self._look_at:
            return
        facts = source.facts()  # who does not answer is asked again at the next step: silence must not pass for health
        self._look_at = now + self._every_s
        for partition, state in states.items():
            report = state.report()
            require_same_log(report, facts, partition)
            require_still_there(report, source.log_start(partition))
            self._require_within(state, source.highwater(partition), positions[partition])

    def _require_within(self, state: PartitionState, highwater: int | None, position: int) -> None:
        if highwater is None or position <= highwater:
            self._beyond.discard(state.partition)
        elif state.partition in self._beyond:
            require_within(state.report(), highwater)
        else:
            # A new leader may know an older end for a moment: it is believed when it stays.
            self._beyond.add(state.partition)
