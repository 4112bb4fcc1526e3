"""Signed impressions, and feedback by whom it may come from (FBK-13). Pure; without a key nothing is asked for.

The signature is the last field of an impression's JSON object, and covers all bytes before it:

    {"type":"impression", … ,"signature":"<64 hex digits>"}
"""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.domain.errors import InvalidEventError
from pipelines.domain.events import AnyEvent, Impression
from pipelines.domain.signatures import SigningKey, is_same
from pipelines.feedback.events.codec import Decoded

FORGED, UNAUTHORISED = "forged", "unauthorised"

_UNSIGNED = b',"signature":null}'  # how an impression without one ends: the field is the last of its struct
_SIGNATURE, _END = b',"signature":"', b'"}'
_DIGITS = 64

_MEND = "give the process that sends it the updaters' key (docs/kafka.md)"


def signed(value: bytes, key: SigningKey) -> bytes:
    """An encoded impression with its signature.

    Raises:
        ValueError: It does not end as an unsigned impression does.
    """
    if not value.endswith(_UNSIGNED):
        raise ValueError("expected an encoded impression without a signature, found another event")
    content = value.removesuffix(_UNSIGNED)
    return content + _SIGNATURE + key.signature(content).encode() + _END


def authentic(events: Sequence[Decoded], values: Sequence[bytes | None], key: SigningKey) -> list[Decoded]:
    """Events, with an error in the place of each that may not teach.

    Args:
        events: As decoded.
        values: The bytes that they were read from.
    """
    tokens: dict[tuple[str | None, str, str], str] = {}
    return [
        event if isinstance(event, InvalidEventError) else _refusal(event, value, key, tokens) or event
        for event, value in zip(events, values, strict=True)
    ]


def token_of(event: AnyEvent, key: SigningKey) -> str:
    """The token that an event needs: of the query it is about, or else of its session."""
    query_id = getattr(event, "query_id", None)
    if query_id is None:
        return key.session_token(event.session_id, event.principal)
    return key.query_token(query_id, event.principal)


def _refusal(
    event: AnyEvent, value: bytes | None, key: SigningKey, tokens: dict[tuple[str | None, str, str], str]
) -> InvalidEventError | None:
    if isinstance(event, Impression):
        if _is_signed(value or b"", key):
            return None
        return InvalidEventError(FORGED, f"expected an impression that the search service signed, found none: {_MEND}")
    query_id = getattr(event, "query_id", None)
    subject = (query_id, event.session_id if query_id is None else "", event.principal)
    token = tokens.get(subject)
    if token is None:
        token = tokens[subject] = token_of(event, key)
    if is_same(token, event.token):
        return None
    about = f"session {event.session_id!r}" if query_id is None else f"query {query_id!r}"
    return InvalidEventError(
        UNAUTHORISED,
        f"expected the token of {about} for {event.principal!r}, found {'none' if event.token is None else 'another'}: "
        "send the one that came with the answer",
    )


def _is_signed(value: bytes, key: SigningKey) -> bool:
    content, given = value[: -len(_SIGNATURE) - _DIGITS - len(_END)], value[-_DIGITS - len(_END) : -len(_END)]
    framed = value == content + _SIGNATURE + given + _END
    return framed and is_same(key.signature(content), given.decode("ascii", "replace"))
