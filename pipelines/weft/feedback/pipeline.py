"""The feedback flow: decode → join and attribute → update → commit. Read this first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from weft.domain.errors import BrokerUnavailableError, InvalidEventError
from weft.feedback.events.authenticity import Authenticity
from weft.feedback.fold.batch import Arrivals, arrived, divided
from weft.feedback.fold.credit import RESPONSES, Attribute, unattributed
from weft.feedback.fold.updates import fold
from weft.feedback.log import FeedbackSource, Positions
from weft.feedback.settings import FeedbackSettings
from weft.feedback.store.state import PartitionState
from weft.runtime.kafka.log import LogFacts, Record
from weft.runtime.kafka.writer import partition_of
from weft.runtime.traces import EventTraces

POLL_TIMEOUT_S = 0.2
"""How long a poll waits for the first record."""
_RESPONSES = (
    50  # in one transaction: each takes the encoder some hundredths of a second, and none is seen before the end
)


def advance(
    source: FeedbackSource,  # assigned to the partitions in `states`, and sought to their offsets
    states: Mapping[int, PartitionState],  # claimed, by partition
    positions: Positions,  # where each of them is read on from
    rules: FeedbackSettings,  # sizes, times and weights
    *,
    attribute: Attribute | None = None,  # says what responses rest on, where somebody can
    traces: EventTraces | None = None,
) -> int:
    """Consume what the log holds next, at most one poll of it.

    The log is identified after its records were read and before any is applied: a topic re-created in between
    cannot slip in.

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
            state = states[partition]
            consume(records, facts, state, rules, skipped=skipped, log_end=end, attribute=attribute, traces=traces)
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
    *,
    skipped: int = 0,  # offsets before and between the records that will never come; of all others a hole is counted
    log_end: int | None = None,
    attribute: Attribute | None = None,  # says what responses rest on, where somebody can
    traces: EventTraces | None = None,
) -> None:
    """Apply one batch of one partition: all of it, or, when anything fails, nothing; in parts where it unlearns."""
    asked = _asked(rules, facts, state.partition)
    arrivals = arrived(records, max_bytes=rules.limits.event_bytes, authenticity=asked)
    for part in (portion for some in divided(arrivals) for portion in _portions(some, attribute)):
        if traces is not None:
            traces.begin()
        offsets = part.records.offsets
        with state.batch(facts, offsets[0], part, log_end=log_end) as batch:
            passed = min(skipped, offsets[-1] + 1 - batch.stored.next_offset - len(offsets))
            batch.commit(fold(batch.stored, part, rules, skipped=passed, attribute=attribute))
        if traces is not None:
            traces.applied(event.event_id for event in part.events if not isinstance(event, InvalidEventError))
        skipped -= passed


def _asked(rules: FeedbackSettings, facts: LogFacts, partition: int) -> Authenticity | None:
    """What a key asks of events; without one nothing is (FBK-13)."""
    if rules.key is None:
        return None
    return Authenticity(rules.key, lambda session: partition_of(session, facts.partitions) == partition)


def _portions(arrivals: Arrivals, attribute: Attribute | None) -> Iterator[Arrivals]:
    """A batch, cut before every so many responses where these are attributed."""
    if attribute is None:
        yield arrivals
        return
    places = [place for place, event in enumerate(arrivals.events) if type(event) in RESPONSES and unattributed(event)]
    edges = [0, *places[_RESPONSES::_RESPONSES], len(arrivals.events)]
    for begin, end in pairwise(edges):
        yield arrivals.between(begin, end)


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
