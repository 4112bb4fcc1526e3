"""Signed impressions, and feedback by whom it may come from (FBK-13). Pure; without a key nothing is asked for.

The signature is the last field of an impression's JSON object, and covers all bytes before it:

    {"type":"impression", … ,"signature":"<64 hex digits>"}

A signed impression that lies in another partition than its session's is a copy: whoever may write to the topic may
repeat what was signed, and repeats are recognised within a partition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from weft.domain.errors import InvalidEventError
from weft.domain.events import AnyEvent, Impression
from weft.domain.signatures import SigningKey, is_same, proof_in
from weft.feedback.events.codec import Decoded

FORGED, UNAUTHORISED = "forged", "unauthorised"

_UNSIGNED = b',"signature":null}'  # how an impression without one ends: the field is the last of its struct
_SIGNATURE, _END = b',"signature":"', b'"}'
_DIGITS = 64


def signed(value: bytes, key: SigningKey) -> bytes:
    """An encoded impression with its signature."""
    if not value.endswith(_UNSIGNED):
        raise ValueError("expected an encoded impression without a signature, found another event")
    content = value.removesuffix(_UNSIGNED)
    return content + _SIGNATURE + key.signature(content).encode() + _END


@dataclass(slots=True)
class Authenticity:
    """What is asked of the events of one batch of a partition."""

    key: SigningKey  # what impressions are signed with, and tokens are made by
    is_here: Callable[[str], bool]  # whether a session's events belong to the partition
    _tokens: dict[tuple[str | None, str, str], str] = field(default_factory=dict)

    def checked(self, events: Sequence[Decoded], values: Sequence[bytes | None]) -> list[Decoded]:
        """Events, with an error in the place of each that may not teach."""
        return [
            event if isinstance(event, InvalidEventError) else self._refusal(event, value) or event
            for event, value in zip(events, values, strict=True)
        ]

    def _refusal(self, event: AnyEvent, value: bytes | None) -> InvalidEventError | None:
        if isinstance(event, Impression):
            return self._forgery(event, value or b"")
        query_id = getattr(event, "query_id", None)
        subject = (query_id, event.session_id if query_id is None else "", event.principal)
        token = self._tokens.get(subject)
        if token is None:
            token = self._tokens[subject] = token_of(event, self.key)
        if is_same(token, event.token) or (event.token and is_same(token, proof_in(event.token))):
            return None
        about = f"session {event.session_id!r}" if query_id is None else f"query {query_id!r}"
        return InvalidEventError(
            UNAUTHORISED,
            f"expected the token of {about} for {event.principal!r}, found "
            f"{'none' if event.token is None else 'another'}: send the one that came with the answer",
        )

    def _forgery(self, impression: Impression, value: bytes) -> InvalidEventError | None:
        if not _is_signed(value, self.key):
            expected = "expected an impression that the search service signed, found another"
            return InvalidEventError(FORGED, f"{expected}: give the process that sends it the updaters' key")
        if not self.is_here(impression.session_id):
            expected = "expected an impression in the partition of its session, found a copy of one in another"
            return InvalidEventError(FORGED, f"{expected}: keys of records are session ids")
        return None


def token_of(event: AnyEvent, key: SigningKey) -> str:
    """The token that an event needs: of the query it is about, or else of its session."""
    query_id = getattr(event, "query_id", None)
    if query_id is None:
        return key.session_token(event.session_id, event.principal)
    return key.query_token(query_id, event.principal)


def _is_signed(value: bytes, key: SigningKey) -> bool:
    content, given = value[: -len(_SIGNATURE) - _DIGITS - len(_END)], value[-_DIGITS - len(_END) : -len(_END)]
    framed = value == content + _SIGNATURE + given + _END
    return framed and is_same(key.signature(content), given.decode("ascii", "replace"))
