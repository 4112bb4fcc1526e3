"""Records with what they hold, a batch at a time: decoded, and with the fingerprints that a state knows them by."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import NamedTuple

from pipelines.domain.errors import InvalidEventError
from pipelines.feedback.codec import Decoded, decode_all
from pipelines.runtime.log import Record, Records


class Arrivals(NamedTuple):
    """A batch in columns, one element per record, in the order of their offsets.

    Attributes:
        events: What each record holds, or why it holds nothing.
        fingerprints: Sixteen bytes for the id of each event, however long that is; empty without an event.
        queries: Of the queries that they are about; empty for events that are about none.
    """

    records: Records
    events: Sequence[Decoded]
    fingerprints: Sequence[bytes]
    queries: Sequence[bytes]


def arrived(records: Sequence[Record], *, max_bytes: int) -> Arrivals:
    """Records decoded, and fingerprinted once for everything that follows.

    Args:
        records: Of one partition.
        max_bytes: Longer values are refused unparsed.
    """
    columns = Records.of(records)
    events = decode_all(columns.values, max_bytes=max_bytes)
    fingerprints, queries, known = [], [], dict[tuple[str, str], bytes]()
    for event in events:
        if isinstance(event, InvalidEventError):
            fingerprints.append(b"")
            queries.append(b"")
            continue
        fingerprints.append(blake2b(event.event_id.encode(), digest_size=16).digest())
        query_id = getattr(event, "query_id", None)
        if query_id is None:
            queries.append(b"")
            continue
        # Most queries have several events, which come close to each other.
        about = (event.session_id, query_id)
        query = known.get(about)
        if query is None:
            query = known[about] = query_fingerprint(*about)
        queries.append(query)
    return Arrivals(columns, events, fingerprints, queries)


def query_fingerprint(session_id: str, query_id: str) -> bytes:
    """Sixteen bytes that stand for one query of one session: another session's feedback can never meet it."""
    # The length prefix keeps ("ab", "c") and ("a", "bc") apart.
    return blake2b(f"{len(session_id)}:{session_id}{query_id}".encode(), digest_size=16).digest()
