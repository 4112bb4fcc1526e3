"""Dead letters on their way out of a partition's store: to a topic of their own, where others can watch them (FBK-3).

The store is where they are kept, in the transaction that consumed their records. The topic is told afterwards, at
least once: a crash between telling and noting it down tells it again, under the same key.
"""

from __future__ import annotations

import base64
import json

from pipelines.domain.errors import InvalidEventError
from pipelines.feedback.codec import decode
from pipelines.feedback.producer import Publisher
from pipelines.feedback.state import KeptDeadLetter, PartitionState


def republish(state: PartitionState, publisher: Publisher, *, at_most: int) -> int:
    """Tell the dead-letter topic of what it has not been told yet.

    Args:
        state: Owned.
        publisher: To the dead-letter topic.
        at_most: How many to tell in one go.

    Returns:
        How many it was told of.

    Raises:
        BrokerUnavailableError: Not all were acknowledged; they stay to be told.
        FencedError: Another updater owns the partition.
    """
    report = state.report()
    letters = state.dead_letters(from_offset=report.republished, at_most=at_most)
    for letter in letters:
        publisher.send(f"{report.partition}:{letter.offset}".encode(), envelope(letter, report.topic, report.partition))
    if letters:
        publisher.flush()
        state.note_republished(letters[-1].offset + 1)
    return len(letters)


def envelope(letter: KeptDeadLetter, topic: str, partition: int) -> bytes:
    """A dead letter as JSON: where it came from, why it is one, and its bytes in base64, as far as they are kept."""
    facts = letter._asdict() | {"topic": topic, "partition": partition}
    return json.dumps(facts | {"original": base64.b64encode(letter.original).decode()}, sort_keys=True).encode()


def replayed(letter: KeptDeadLetter, *, max_bytes: int) -> tuple[bytes, bytes] | None:
    """Key and value to send a dead letter again with; None where it is no event still, or was kept in part only.

    The key is the session's, so that the event meets what else its session says in the same partition.
    """
    if letter.size != len(letter.original):
        return None
    try:
        event = decode(letter.original, max_bytes=max_bytes)
    except InvalidEventError:
        return None
    return event.session_id.encode(), letter.original
