"""The feedback flow: decode → join and attribute → update → commit. Read this first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pipelines.domain.errors import BrokerUnavailableError
from pipelines.feedback.arrivals import arrived
from pipelines.feedback.positions import Positions
from pipelines.feedback.settings import FeedbackSettings
from pipelines.feedback.source import FeedbackSource
from pipelines.feedback.state import PartitionState
from pipelines.feedback.updates import fold
from pipelines.learning.binning import Bins
from pipelines.runtime.log import LogFacts, Record


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
    batches = source.poll(rules.poll_records, rules.poll_timeout_s)
    if not batches:
        return 0
    try:
        facts = source.facts()
    except BrokerUnavailableError:
        _give_back(source, batches, positions)
        raise
    for partition, delivered in batches.items():
        records, read_again = positions.continuation(partition, delivered)
        if records:
            consume(records, facts, states[partition], rules, bins, log_end=source.highwater(partition))
            positions.passed(partition, records[-1].offset + 1)
        if read_again is not None:
            source.seek(partition, read_again)
    return sum(map(len, batches.values()))


def consume(
    records: Sequence[Record],
    facts: LogFacts,
    state: PartitionState,
    rules: FeedbackSettings,
    bins: Bins,
    *,
    log_end: int | None = None,
) -> None:
    """Apply one batch of one partition: all of it, or, when anything fails, nothing."""
    arrivals = arrived(records, max_bytes=rules.limits.event_bytes)
    with state.batch(facts, records[0].offset, arrivals, log_end=log_end) as batch:
        batch.commit(fold(batch.known, arrivals, rules, bins))


def _give_back(source: FeedbackSource, partitions: Iterable[int], positions: Positions) -> None:
    """Have a delivery that could not be applied delivered once more."""
    for partition in partitions:
        source.seek(partition, positions[partition])
