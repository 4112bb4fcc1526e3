"""FBK-2, FBK-3: what is an event, and why the rest is none."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.support.feedback_events import HASHES, NOON, explicit, one_of_each
from weft.domain.errors import InvalidEventError
from weft.domain.events import Explicit, Impression
from weft.feedback.events.codec import EVENT_TYPES, decode, encode, json_schema

ROOT = Path(__file__).resolve().parents[3]
RECORDED = ROOT / "tests/support/recorded"
LIMIT = 10_000
EVENTS = one_of_each()
SCHEMA = jsonschema.Draft202012Validator(json_schema())
FACTS: dict[str, Any] = {
    "type": "explicit",
    "event_id": "e1",
    "ts": NOON,
    "session_id": "s1",
    "principal": "ada",
    "query_id": "q1",
    "signal": 1.0,
}


LESSON = {"section": "api", "content": "Run the migrations first"}


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
    "a reference to nothing": (value(type="reference"), "invalid"),
    "a retrieval of nothing": (value(type="retrieval", content_hashes=[]), "invalid"),
    "an inclusion of what is no content": (value(type="inclusion", content_hashes=["a.md"]), "invalid"),
    "a correction of no question": (value(type="correction", uri="a.md", query_id=None), "invalid"),
    "a correction of two questions": (value(type="correction", uri="a.md", question="how?"), "invalid"),
    "a correction of no content": (value(type="correction"), "invalid"),
    "a correction of two contents": (value(type="correction", uri="a.md", content_hash=HASHES[0]), "invalid"),
    "a correction of nowhere": (value(type="correction", uri=""), "invalid"),
    "a correction in words": (value(type="correction", uri="a.md", right="yes"), "invalid"),
    "a review of no domain": (value(type="review", confidence=0.5, good=True), "invalid"),
    "a confidence in percent": (value(type="review", domain="code", confidence=72, good=True), "invalid"),
    "an age below zero": (value(type="accuracy", domain="code", age_hours=-1.0, accurate=True), "invalid"),
    "an age without end": (value(type="accuracy", domain="code", age_hours=1e300, accurate=True), "invalid"),
    "a quality of no model": (value(type="model_quality", turn=1, quality=0.5), "invalid"),
    "a turn before the first": (value(type="model_quality", model="m", turn=0, quality=0.5), "invalid"),
    "a verification in words": (value(type="trust", source="blog", verified="yes"), "invalid"),
    "an outcome of no lesson": (value(type="lesson_outcome", outcome="success"), "invalid"),
    "a lesson without a text": (value(type="lesson", op="add"), "invalid"),
    "a lesson of a section with blanks": (
        value(type="lesson", op="add", lesson=LESSON | {"section": "a b"}),
        "invalid",
    ),
    "a lesson that says nothing": (value(type="lesson", op="add", lesson=LESSON | {"content": " "}), "invalid"),
    "a lesson of an unknown kind": (value(type="lesson", op="add", lesson=LESSON | {"kind": "rule"}), "invalid"),
    "a revision of no lesson": (value(type="lesson", op="revise", lesson=LESSON), "invalid"),
    "a link to nothing": (value(type="lesson", op="alias", lesson_id="a-1"), "invalid"),
    "an injection of nothing": (value(type="injection", injection_id="i", lessons=[]), "invalid"),
    "an outcome that nobody told": (
        value(type="lesson_outcome", lesson_id="a", outcome="success", origin="x"),
        "invalid",
    ),
    "an unknown outcome": (value(type="lesson_outcome", lesson_id="a-1", outcome="fine"), "invalid"),
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


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_what_is_encoded_is_decoded_the_same(event: Any) -> None:
    """FBK-1: every type of event travels unchanged."""
    assert decode(encode(event), max_bytes=LIMIT) == event


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("\ud800", "\ufffd"),
        ("a\udc00\ud83db", "a\ufffd\ufffdb"),
        ("\U0001f600\ud83d", "\U0001f600\ufffd"),
        ("\\ud800", "\\ud800"),
    ],
)
def test_half_of_a_surrogate_pair_is_read_as_the_replacement(written: str, read: str) -> None:
    """FBK-2: the schema calls it text; a backslash before the letters is no escape."""
    event = decode(value(event_id=written), max_bytes=LIMIT)
    assert event.event_id == read
    assert decode(encode(event), max_bytes=LIMIT) == event


def test_the_producer_side_refuses_what_the_updater_would() -> None:
    """FBK-2: an invalid event fails where it is made, not in the dead letters."""
    for wrong in (explicit(signal=2.0), explicit(signal=float("nan")), explicit(event_id="\ud800")):
        with pytest.raises(InvalidEventError):
            encode(wrong)


def test_every_event_type_has_its_name() -> None:
    """FBK-1: the names on the topic are those of the specification."""
    asked = """impression retrieval inclusion reference success explicit selection correction review accuracy
        model_quality trust session lesson injection lesson_outcome trigger_removal"""
    assert set(EVENT_TYPES) == set(asked.split()) == {json.loads(encode(event))["type"] for event in EVENTS}


def test_events_of_the_first_schema_are_read_as_ever() -> None:
    """FBK-2: bytes as weft wrote them under schema 1; what they say is unchanged, what they lack is neutral."""
    recorded = (RECORDED / "events_schema_1.jsonl").read_bytes().splitlines()
    events = [decode(line, max_bytes=LIMIT) for line in recorded]
    for line, event in zip(recorded, events, strict=True):
        said, read = json.loads(line), json.loads(encode(event))
        assert said["schema"] == 1
        assert {key: read[key] for key in said if key != "results"} == {k: v for k, v in said.items() if k != "results"}
    shown = next(event for event in events if isinstance(event, Impression)).results
    assert [(each.rank, each.score, each.included, each.examination) for each in shown] == [
        (1, 0.5, True, 1.0),
        (2, 0.5, False, 1.0),
    ]


def test_events_of_the_second_schema_are_read_as_ever() -> None:
    """FBK-2: one of every type as weft wrote it under schema 2; no question is known of it, and no precedent."""
    recorded = (RECORDED / "events_schema_2.jsonl").read_bytes().splitlines()
    for line in recorded:
        said, read = json.loads(line), json.loads(encode(decode(line, max_bytes=LIMIT)))
        assert said["schema"] == 2
        assert {key: read[key] for key in said if key != "results"} == {k: v for k, v in said.items() if k != "results"}
    shown = next(event for event in (decode(line, max_bytes=LIMIT) for line in recorded) if type(event) is Impression)
    assert shown.question is None
    assert {result.precedent for result in shown.results} == {None}


def test_an_event_that_names_no_schema_is_of_the_newest() -> None:
    """FBK-2: and one that was written for the first may be of a type that came later."""
    assert decode(value(), max_bytes=LIMIT).schema == 3
    assert decode(value(type="success", schema=1), max_bytes=LIMIT).schema == 1


def test_the_published_schema_is_the_one_in_force() -> None:
    """FBK-2: `make schema` was run after the last change of an event."""
    published = json.loads((ROOT / "infra/kafka/feedback.schema.json").read_text())
    assert published == json_schema()
    jsonschema.Draft202012Validator.check_schema(published)


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_the_schema_accepts_what_weft_sends(event: Any) -> None:
    """FBK-2: encoded events validate against the published schema."""
    SCHEMA.validate(json.loads(encode(event)))


@pytest.mark.parametrize("name", [name for name, (_, reason) in WRONG.items() if reason in {"unknown_type", "invalid"}])
def test_the_schema_refuses_what_weft_refuses(name: str) -> None:
    """FBK-2: a producer that checks against the schema sends nothing that becomes a dead letter as invalid."""
    data, _ = WRONG[name]
    assert data is not None
    assert not SCHEMA.is_valid(json.loads(data))


def test_every_example_in_the_documentation_is_valid() -> None:
    """FBK-2: each JSON example of docs/feedback.md validates, and there is one of every type."""
    text = (ROOT / "docs/feedback.md").read_text()
    examples = [json.loads(block.split("```")[0]) for block in text.split("```json\n")[1:]]
    for example in examples:
        SCHEMA.validate(example)
        decode(json.dumps(example).encode(), max_bytes=LIMIT)
    assert {example["type"] for example in examples} == set(EVENT_TYPES)
