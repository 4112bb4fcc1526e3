"""Bytes of a record to an event, or the reason why not; and the JSON Schema that producers can check against (FBK-2).

Reasons are stable codes, counted in reports and kept with every dead letter:

    tombstone        the record has no value
    oversized        more bytes than an event may have; nothing was parsed
    undecodable      not UTF-8, not JSON, nested without end, or text that UTF-8 cannot carry
    non_finite       a number is NaN, infinite, or beyond the range of a float
    unknown_schema   written for a schema version that this weft does not know
    unknown_type     no event of this name
    invalid          a field is missing, of the wrong type, or out of its range

Unknown fields are ignored, so that producers may be newer than weft. What the schema calls valid is read: 3.0 is an
integer, and null for an optional field means that it is absent. Of a field that an object has twice, the last counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Never, get_args

import msgspec

from weft.domain.errors import InvalidEventError
from weft.domain.event_fields import SCHEMA_VERSION
from weft.domain.events import (
    LESSON_OPERANDS,
    Accuracy,
    AnyEvent,
    Attribution,
    Correction,
    Explicit,
    Impression,
    Inclusion,
    Reference,
    Retrieval,
    Selection,
    Success,
)
from weft.feedback.events.json_values import coerce_to, leaves, not_json, whole

READABLE_SCHEMAS = frozenset(range(1, SCHEMA_VERSION + 1))
EVENT_TYPES: dict[str, type[AnyEvent]] = {kind.__struct_config__.tag: kind for kind in get_args(AnyEvent)}

_CHECKED_IN_CODE = {
    "Reference": {
        "anyOf": [
            {"required": [name], "properties": {name: {"not": {"type": "null"}}}}
            for name in ("content_hashes", "response", "attribution")
        ]
    },
    "Correction": {
        "allOf": [
            {"oneOf": [{"required": [name], "properties": {name: {"not": {"type": "null"}}}} for name in names]}
            for names in (("query_id", "question"), ("content_hash", "uri"))
        ]
    },
    "LessonChange": {
        "anyOf": [
            {
                "required": ["op", *names],
                "properties": {"op": {"const": op}, **{name: {"not": {"type": "null"}} for name in names}},
            }
            for op, names in LESSON_OPERANDS.items()
        ]
    },
}
"""What the structs check by themselves, where a type cannot say it, in the words of the schema."""

_decoder: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)
_grammar = msgspec.json.Decoder(msgspec.Raw)
_coerce = {kind: coerce_to(kind) for kind in EVENT_TYPES.values()}
_encoder = msgspec.json.Encoder()

_TOGETHER = 64  # values parsed in one go: few, since a wrong one among them has all of them parsed again, one by one

Decoded = AnyEvent | InvalidEventError
"""What a record holds, or why it holds nothing."""


def decode(value: bytes | None, *, max_bytes: int) -> AnyEvent:
    """The event in a record's value."""
    (event,) = decode_all([value], max_bytes=max_bytes)
    if isinstance(event, InvalidEventError):
        raise event
    return event


def decode_all(values: Sequence[bytes | None], *, max_bytes: int) -> list[Decoded]:
    """What each of many values holds, as `decode` says it."""
    events: list[Decoded] = []
    for begin in range(0, len(values), _TOGETHER):
        some = values[begin : begin + _TOGETHER]
        events += _parsed_together(some, max_bytes) or [_decoded(value, max_bytes) for value in some]
    hashes: list[str] = []
    for each in events:
        # Verdicts on one result are the most frequent events by far.
        if type(each) is Explicit and each.attribution is None and each.content_hash is not None:
            hashes.append(each.content_hash)
        else:
            hashes.extend(_hashes_in(each))
    if _is_hexadecimal(hashes):
        return events
    return [each if _is_hexadecimal(_hashes_in(each)) else _not_hexadecimal(each) for each in events]


def encode(event: AnyEvent) -> bytes:
    """The bytes of an event, as they travel."""
    try:
        data = _encoder.encode(event)
        sent = _decoder.decode(data)
    except (ValueError, TypeError) as error:
        raise not_json(event) or InvalidEventError("invalid", str(error)) from error
    if sent != event and (wrong := not_json(event)):
        raise wrong
    if not _is_hexadecimal(_hashes_in(sent)):
        raise _not_hexadecimal(sent)
    return data


def json_schema() -> dict[str, Any]:
    """The JSON Schema of every event, draft 2020-12."""
    schema: dict[str, Any] = json.loads(msgspec.json.encode(msgspec.json.schema(AnyEvent)))  # as files hold it
    for definition in schema["$defs"].values():
        definition.get("properties", {}).update(_nullable(definition))
    for name, condition in _CHECKED_IN_CODE.items():
        schema["$defs"][name] |= condition
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "weft feedback event",
        "description": "One event of the feedback topic; the record's key is `session_id` in UTF-8. "
        "Null means that an optional field is absent.",
        **schema,
    }


def _nullable(definition: Mapping[str, Any]) -> dict[str, Any]:
    """The optional properties that have no null yet, with one: it means that the field is absent."""
    optional = {
        name: dict(stated)
        for name, stated in definition.get("properties", {}).items()
        if name not in definition["required"] and {"type": "null"} not in stated.get("anyOf", ())
    }
    return {
        name: {"default": stated.pop("default"), "anyOf": [stated, {"type": "null"}]}
        for name, stated in optional.items()
    }


def _parsed_together(values: Sequence[bytes | None], max_bytes: int) -> list[AnyEvent] | None:
    """The events in some values, parsed as lines of one text, at half of what they cost apart; None where that differs.

    A parser of lines takes two values on a line, and one on two lines. Where every value begins an object and ends one,
    neither can go unseen: JSON has no line end within a string and nothing to follow "}" with "{", so that a line's end
    is an event's, no line is without, and one that holds more makes the count too high.
    """
    if None in values or max(map(len, values)) > max_bytes:  # type: ignore[arg-type]
        return None
    lines = b"\n".join(values)  # type: ignore[arg-type]
    ends = len(values) - 1
    if lines.count(b"\n") != ends or lines.count(b"}\n{") != ends or lines[:1] != b"{" or lines[-1:] != b"}":
        return None
    try:
        _check_utf8(lines)
        events = _decoder.decode_lines(lines)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return events if len(events) == len(values) else None


def _check_utf8(value: bytes) -> None:
    """Raise UnicodeDecodeError for other bytes; the decoder passes over those of unknown fields."""
    if not value.isascii():
        value.decode("utf-8")


def _decoded(value: bytes | None, max_bytes: int) -> Decoded:
    try:
        return _parsed(value, max_bytes)
    except InvalidEventError as error:
        # Without the traceback, whose frames hold others, nothing here refers to itself.
        return error.with_traceback(None)


def _parsed(value: bytes | None, max_bytes: int) -> AnyEvent:
    """The event in a value, but for its hashes, which may be any 64 characters."""
    if value is None:
        raise InvalidEventError("tombstone", "expected an event, found a record without value")
    if len(value) > max_bytes:
        raise InvalidEventError("oversized", f"expected at most {max_bytes} bytes, found {len(value)}")
    try:
        _check_utf8(value)
        return _decoder.decode(value)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _coerced(_parsed_json(_HALVES.sub(lambda match: match[1] or b"\\ufffd", value)))


_HALVES = re.compile(rb"(\\[^u]|\\u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w)|\\u[dD][89a-fA-F]\w\w")
"""Escapes that are half of a surrogate pair, behind those that are not: JavaScript leaves them where it cuts a text.

They are read as U+FFFD, as its own encoder writes them: a schema calls them text, and UTF-8 cannot carry them.
"""


def _hashes_in(event: Decoded) -> Iterable[str]:
    """Everything in an event that is a hash."""
    hashes = _HASHES.get(type(event))
    return hashes(event) if hashes else ()


def _shares_in(attribution: Attribution | None) -> Iterable[str]:
    return () if attribution is None else attribution.shares


def _one(content_hash: str | None) -> Iterable[str]:
    return () if content_hash is None else (content_hash,)


_HASHES: Mapping[type, Callable[[Any], Iterable[str]]] = MappingProxyType(
    {
        Impression: lambda event: [*_one(event.query_hash), *[result.content_hash for result in event.results]],
        Retrieval: lambda event: event.content_hashes,
        Inclusion: lambda event: event.content_hashes,
        Reference: lambda event: (*(event.content_hashes or ()), *_shares_in(event.attribution)),
        Success: lambda event: _shares_in(event.attribution),
        Explicit: lambda event: (*_one(event.content_hash), *_shares_in(event.attribution)),
        Selection: lambda event: (event.content_hash,),
        Correction: lambda event: _one(event.content_hash),
        Accuracy: lambda event: _one(event.content_hash),
    }
)


def _is_hexadecimal(hashes: Iterable[str]) -> bool:
    return not "".join(hashes).encode().translate(None, b"0123456789abcdef")


def _not_hexadecimal(event: Decoded) -> InvalidEventError:
    wrong = {each for each in _hashes_in(event) if not _is_hexadecimal([each])}
    place, leaf = next((place, leaf) for place, leaf in leaves(event) if leaf in wrong)
    return InvalidEventError(
        "invalid", f"expected a hash of 64 hexadecimal digits in lower case, found {leaf!r} - at `{place}`"
    )


def _parsed_json(value: bytes) -> object:
    """The JSON value that an event was not read from; only failures pay for this second look."""
    try:
        parsed = json.loads(value.decode("utf-8"), parse_constant=_refuse_constant)
        _grammar.decode(value)
    except (ValueError, RecursionError) as error:
        raise InvalidEventError("undecodable", f"expected JSON in UTF-8, found: {error}") from error
    return parsed


def _coerced(parsed: object) -> AnyEvent:
    """The event in a JSON value."""
    if not isinstance(parsed, dict):
        raise InvalidEventError("invalid", f"expected a JSON object, found {type(parsed).__name__}")
    schema, name = whole(parsed.get("schema")), parsed.get("type")
    if type(schema) is int and schema not in READABLE_SCHEMAS:
        expected = f"expected a schema of {sorted(READABLE_SCHEMAS)}"
        raise InvalidEventError("unknown_schema", f"{expected}, found {str(schema)[:64]}")
    if not isinstance(name, str):
        raise InvalidEventError("invalid", f"expected `type`, a text, found {name!r:.64}")
    kind = EVENT_TYPES.get(name)
    if kind is None:
        expected = f"one of {sorted(EVENT_TYPES)}"
        raise InvalidEventError("unknown_type", f"expected a type that is known, found {name[:64]!r}: write {expected}")
    if parsed.get("session_id") is None:
        expected = "expected `session_id`, found none: it stands in the answer's token"
        raise InvalidEventError("no_session", f"{expected}, with all else that says which answer is meant")
    try:
        return msgspec.convert(_coerce[kind](parsed), kind)
    except msgspec.ValidationError as error:
        raise InvalidEventError("invalid", str(error)) from error


def _refuse_constant(name: str) -> Never:
    raise InvalidEventError("non_finite", f"expected finite numbers, found {name}")
