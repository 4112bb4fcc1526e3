"""The feedback flow: decode → join and attribute → update → commit. Read this first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pipelines.domain.errors import BrokerUnavailableError
from pipelines.feedback.events.authenticity import Authenticity
from pipelines.feedback.fold.batch import arrived, divided
from pipelines.feedback.fold.updates import fold
from pipelines.feedback.log import FeedbackSource, Positions
from pipelines.feedback.settings import FeedbackSettings
from pipelines.feedback.store.state import PartitionState
from pipelines.learning.binning import Bins
from pipelines.runtime.kafka.log import LogFacts, Record
from pipelines.runtime.kafka.writer import partition_of

POLL_TIMEOUT_S = 0.2
"""How long a poll waits for the first record."""


def advance(
    source: FeedbackSource,
    states: Mapping[int, PartitionState],
    positions: Positions,
    rules: FeedbackSettings,
    bins: Bins,
) -> int:
    """Consume what the log holds next, at most one poll of it.

    The log is identified after its records were read and before any is applied: a topic re-created in between
    cannot slip in.

    Args:
        source: Assigned to the partitions in `states`, and sought to their offsets.
        states: Claimed, by partition.
        positions: Where each of them is read on from.
        rules: Sizes, times and weights.
        bins: How finely evidence is kept.

    Returns:
        How many records the log delivered.
    """
    batches = source.poll(rules.poll_records, POLL_TIMEOUT_S)
    if not batches and not _passed(source, states, positions):
        return 0
    try:
        facts = source.facts()
        continued = {
            partition: positions.continuation(partition, delivered, source.skipped)
            for partition, delivered in batches.items()
        }
    except BrokerUnavailableError:
        _give_back(source, batches, positions)
        raise
    for partition, (records, read_again, skipped) in continued.items():
        if records:
            end = source.highwater(partition)
            consume(records, facts, states[partition], rules, bins, skipped=skipped, log_end=end)
            positions.passed(partition, records[-1].offset + 1)
        if read_again is not None:
            source.seek(partition, read_again)
    for partition, offset in _passed(source, states, positions).items():
        states[partition].pass_over(facts, offset)
        positions.passed(partition, offset)
    return sum(map(len, batches.values()))


def consume(
    records: Sequence[Record],
    facts: LogFacts,
    state: PartitionState,
    rules: FeedbackSettings,
    bins: Bins,
    *,
    skipped: int = 0,
    log_end: int | None = None,
) -> None:
    """Apply one batch of one partition: all of it, or, when anything fails, nothing; in parts where it unlearns.

    Args:
        skipped: Offsets before and between the records that will never come; of all others a hole is counted.
    """
    asked = _asked(rules, facts, state.partition)
    arrivals = arrived(records, max_bytes=rules.limits.event_bytes, authenticity=asked)
    for part in divided(arrivals):
        offsets = part.records.offsets
        with state.batch(facts, offsets[0], part, log_end=log_end) as batch:
            passed = min(skipped, offsets[-1] + 1 - batch.stored.next_offset - len(offsets))
            batch.commit(fold(batch.stored, part, rules, bins, skipped=passed))
        skipped -= passed


def _asked(rules: FeedbackSettings, facts: LogFacts, partition: int) -> Authenticity | None:
    """What a key asks of events; without one nothing is (FBK-13)."""
    if rules.key is None:
        return None
    return Authenticity(rules.key, lambda session: partition_of(session, facts.partitions) == partition)


def _passed(source: FeedbackSource, states: Iterable[int], positions: Positions) -> dict[int, int]:
    """Partitions that end in what nobody will ever deliver, with the offset behind it (FBK-14)."""
    reached = {partition: source.reached(partition) for partition in states}
    return {
        partition: offset
        for partition, offset in reached.items()
        if offset is not None and offset > positions[partition]
    }


def _give_back(source: FeedbackSource, partitions: Iterable[int], positions: Positions) -> None:
    """Have a delivery that could not be applied delivered once more."""
    for partition in partitions:
        source.seek(partition, positions[partition])
