"""FBK-2, FBK-3: what is an event, and why the rest is none."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from pipelines.domain.errors import InvalidEventError
from pipelines.domain.events import Explicit
from pipelines.feedback.codec import EVENT_TYPES, decode, encode, json_schema
from tests.support.feedback_events import HASHES, NOON, explicit, impression, selection, session

ROOT = Path(__file__).resolve().parents[3]
LIMIT = 10_000
FACTS: dict[str, Any] = {
    "type": "explicit",
    "event_id": "e1",
    "ts": NOON,
    "session_id": "s1",
    "principal": "ada",
    "query_id": "q1",
    "signal": 1.0,
}


def value(**changes: Any) -> bytes:
    return json.dumps({**FACTS, **changes}).encode()


def reason_of(data: bytes | None) -> str:
    with pytest.raises(InvalidEventError) as caught:
        decode(data, max_bytes=LIMIT)
    return caught.value.reason


WRONG = {
    "a tombstone": (None, "tombstone"),
    "one byte too many": (b" " * (LIMIT + 1), "oversized"),
    "no bytes": (b"", "undecodable"),
    "no JSON": (b"{signal", "undecodable"),
    "not UTF-8": (value(event_id="x").replace(b'"x"', b'"\xe9"'), "undecodable"),
    "a lone surrogate": (value(event_id="\ud800"), "undecodable"),
    "nested without end": (b'{"x":' * 1_500, "undecodable"),
    "closed but deep": (b"[" * 4_000 + b"]" * 4_000, "undecodable"),
    "NaN": (value(signal=float("nan")), "non_finite"),
    "Infinity": (value(signal=float("inf")), "non_finite"),
    "beyond a float": (value().replace(b"1.0", b"1e999"), "non_finite"),
    "an unknown type": (value(type="applause"), "unknown_type"),
    "a newer schema": (value(schema=99), "unknown_schema"),
    "a newer schema with a newer type": (value(schema=99, type="applause"), "unknown_schema"),
    "a schema that is no number": (value(schema="1"), "invalid"),
    "no type": (json.dumps({key: FACTS[key] for key in FACTS if key != "type"}).encode(), "invalid"),
    "an array": (b"[1, 2]", "invalid"),
    "null": (b"null", "invalid"),
    "satisfaction out of range": (value(signal=1.01), "invalid"),
    "an empty session": (value(session_id=""), "invalid"),
    "no principal": (json.dumps({key: FACTS[key] for key in FACTS if key != "principal"}).encode(), "invalid"),
    "a hash that is none": (value(content_hash="abc"), "invalid"),
    "a hash with a line end": (value(content_hash=HASHES[0] + "\n"), "invalid"),
    "a time in fractions": (value(ts=1.5), "invalid"),
    "an unknown domain": (value(domain="gossip"), "invalid"),
    "a phase with a line end": (json.dumps({**FACTS, "type": "session", "phase": "start\n"}).encode(), "invalid"),
}


@pytest.mark.parametrize(("data", "reason"), WRONG.values(), ids=WRONG.keys())
def test_wrong_bytes_have_a_stable_reason(data: bytes | None, reason: str) -> None:
    """FBK-3: undecodable, invalid, oversized and non-finite records are told apart."""
    assert reason_of(data) == reason


def test_the_size_is_checked_before_anything_is_parsed() -> None:
    """FBK-3: an event of exactly the limit passes, a valid one above it does not."""
    assert decode(value().ljust(LIMIT), max_bytes=LIMIT) == Explicit(**{k: v for k, v in FACTS.items() if k != "type"})
    assert reason_of(value().ljust(LIMIT + 1)) == "oversized"


def test_unknown_fields_are_ignored() -> None:
    """FBK-2: a newer producer's extra fields, nested ones too, change nothing."""
    assert decode(value(colour={"deep": [1, {"er": None}]}), max_bytes=LIMIT) == decode(value(), max_bytes=LIMIT)


@pytest.mark.parametrize("event", [impression(), explicit(), explicit(-0.5, None), selection(2), session("complete")])
def test_what_is_encoded_is_decoded_the_same(event: Any) -> None:
    """FBK-1: the four events travel unchanged."""
    assert decode(encode(event), max_bytes=LIMIT) == event


def test_the_producer_side_refuses_what_the_updater_would() -> None:
    """FBK-2: an invalid event fails where it is made, not in the dead letters."""
    for wrong in (explicit(signal=2.0), explicit(signal=float("nan")), explicit(event_id="\ud800")):
        with pytest.raises(InvalidEventError):
            encode(wrong)


def test_every_event_type_has_its_name() -> None:
    """FBK-1: the names on the topic are those of the specification."""
    assert {name: kind.__struct_config__.tag for name, kind in EVENT_TYPES.items()} == {n: n for n in EVENT_TYPES}


def test_the_published_schema_is_the_one_in_force() -> None:
    """FBK-2: `make schema` was run after the last change of an event."""
    published = json.loads((ROOT / "infra/kafka/feedback.schema.json").read_text())
    assert published == json_schema()
    jsonschema.Draft202012Validator.check_schema(published)


@pytest.mark.parametrize("event", [impression(), explicit(), explicit(-0.5, None), selection(2), session("complete")])
def test_the_schema_accepts_what_weft_sends(event: Any) -> None:
    """FBK-2: encoded events validate against the published schema."""
    jsonschema.validate(json.loads(encode(event)), json_schema())


@pytest.mark.parametrize("name", [name for name, (_, reason) in WRONG.items() if reason in {"unknown_type", "invalid"}])
def test_the_schema_refuses_what_weft_refuses(name: str) -> None:
    """FBK-2: a producer that checks against the schema sends nothing that becomes a dead letter as invalid."""
    data, _ = WRONG[name]
    assert data is not None
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(json.loads(data), json_schema())


def test_every_example_in_the_documentation_is_valid() -> None:
    """FBK-2: each JSON example of docs/feedback.md validates, and there is one of every type."""
    text = (ROOT / "docs/feedback.md").read_text()
    examples = [json.loads(block.split("```")[0]) for block in text.split("```json\n")[1:]]
    for example in examples:
        jsonschema.validate(example, json_schema())
        decode(json.dumps(example).encode(), max_bytes=LIMIT)
    assert {example["type"] for example in examples} == set(EVENT_TYPES)
