"""FBK-2: the decoder takes what the published schema calls valid, and nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.feedback_events import HASHES, explicit, impression, one_of_each, selection, shown
from weft.domain.chunks import MadeBy, Overflow
from weft.domain.errors import InvalidEventError
from weft.domain.events import AnyEvent, Attribution
from weft.domain.matching import MatchFeatures
from weft.feedback.events.codec import decode, encode

PUBLISHED = json.loads((Path(__file__).resolve().parents[2] / "infra/kafka/feedback.schema.json").read_text())
SCHEMA = jsonschema.Draft202012Validator(PUBLISHED)
MOST = 100_000

FULL = impression(
    results=[
        shown(
            1, made=MadeBy(tokens=9, target=8, overflow=Overflow.SENTENCE), match=MatchFeatures(dense=0.5, lexical=0.25)
        ),
        shown(2, included=False, propensity=0.5, examination=0.5, asked=0.1),
    ],
    tenant="t",
)
SHARED = explicit(0.5, None, attribution=Attribution(method="semantic", shares={HASHES[1]: 0.5}))
VALID = [json.loads(encode(event)) for event in (*one_of_each(), FULL, SHARED, selection(2))]

AGAIN = "<again>"  # after a key: the key itself a second time
TOKEN = "<token>"  # before a text: this very JSON token, which Python would not write
STRANGE: list[Any] = [
    *(None, True, False, 0, 1, 2, 3, -1, 10_001, 10**30, 10**400, 1_790_000_000_000),
    *(1.0, 2.0, 3.0, -0.0, 0.5, 1.5, 1.795e12, 1e300),
    *(f"{TOKEN}1e400", f"{TOKEN}-1e400", f"{TOKEN}1.795e12", f"{TOKEN}-0", f"{TOKEN}1e-400", f"{TOKEN}20e-1"),
    *(f"{TOKEN}NaN", f"{TOKEN}Infinity"),
    *("", " ", "1", "1.0", "true", "null", "x" * 65, "x" * 129, "😀" * 64, "a\x00b", "\ud800", "code", "explicit"),
    *(HASHES[1], HASHES[1].upper(), HASHES[1] + "\n", HASHES[1][1:], "٣" * 64),
    *([], {}, [None], [HASHES[1]], [[HASHES[1]]], {"": None}, {"a": 0.5}, {"a": 1}, {HASHES[1]: 1.0}),
]


def containers(value: object) -> Iterator[dict[str, Any] | list[Any]]:
    """Every object and array in a value, itself first."""
    if isinstance(value, dict | list):
        yield value
        for each in value.values() if isinstance(value, dict) else value:
            yield from containers(each)


def written(value: object) -> str:
    text = json.dumps(value).replace(AGAIN, "")
    return re.sub(rf'"{TOKEN}([^"]*)"', r"\1", text)


@st.composite
def changed_events(draw: st.DrawFn) -> str:
    """The JSON of an event in which up to three places were changed."""
    value = deepcopy(draw(st.sampled_from(VALID)))
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.sampled_from(list(containers(value))))
        if isinstance(place, list):
            place.append(deepcopy(draw(st.sampled_from([*STRANGE, *place]))))
        else:
            change(draw, place)
    return written(value)


def change(draw: st.DrawFn, place: dict[str, Any]) -> None:
    """One key is set, set a second time, spelled as another kind, or left out."""
    optional = ["schema", "domain", "model", "agent", "tenant", "asked", "terms", "attribution", "score", "unknown"]
    key = draw(st.sampled_from([*place, *optional]))
    other = deepcopy(draw(st.sampled_from(STRANGE)))
    now = place.get(key)
    match draw(st.sampled_from(["set", "again", "before", "float", "text", "nested", "absent"])):
        case "again":
            place[key + AGAIN] = other
        case "before":
            place.pop(key, None)
            place.update({key: other, key + AGAIN: now})
        case "float" if isinstance(now, int) and abs(now) < 2**53:
            place[key] = float(now)
        case "text":
            place[key] = str(now)
        case "nested":
            place[key] = [now]
        case "absent":
            place.pop(key, None)
        case _:
            place[key] = other


BEYOND_A_SCHEMA = {
    "non_finite: no JSON, and taken by most parsers all the same": re.compile(r"NaN|Infinity"),
}
"""Why text that a validator may call valid is refused. Size, depth and digits have a test of their own."""


@given(changed_events())
@example(written({**VALID[0], "ts": 1795560954000.0}))
@example(written({**VALID[0], "schema": 2.0}))
@example(written({**VALID[0], "schema": 3}))
@example(written({**VALID[0], "schema": True}))
@example(written({**VALID[0], "schema": None, "domain": None, "model": None, "agent": None}))
@example(written({**VALID[0], "unknown": f"{TOKEN}1e400", "model": None}))
@example(written({"type": "review", **{("type" + AGAIN if key == "type" else key): VALID[0][key] for key in VALID[0]}}))
def test_what_the_schema_calls_valid_is_decoded_and_nothing_else(text: str) -> None:
    """FBK-2: over mutations of every type of event, but for what no schema can say."""
    beyond = [reason for reason, pattern in BEYOND_A_SCHEMA.items() if pattern.search(text)]
    refused: str | None = None
    try:
        decode(text.encode(), max_bytes=MOST)
    except InvalidEventError as error:
        refused = error.reason
    if not beyond:
        assert (refused is None) == SCHEMA.is_valid(json.loads(text)), refused
    elif refused is None or SCHEMA.is_valid(json.loads(text)):
        assert refused in {reason.split(":")[0] for reason in beyond}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"x" * (MOST + 1), "oversized"),
        (b'{"x":' * 1_500 + b"1" + b"}" * 1_500, "undecodable"),
        (json.dumps({**VALID[0], "ts": 1}).replace('"ts": 1', '"ts": 1' + "0" * 5_000).encode(), "undecodable"),
        (json.dumps({**VALID[0], "x": "é"}, ensure_ascii=False).encode("latin-1"), "undecodable"),
    ],
    ids=["size", "depth", "digits", "bytes that are no UTF-8"],
)
def test_what_is_no_value_of_a_schema_has_a_reason(value: bytes, reason: str) -> None:
    """FBK-3: no schema speaks of bytes, nor of what a parser refuses."""
    with pytest.raises(InvalidEventError) as caught:
        decode(value, max_bytes=MOST)
    assert caught.value.reason == reason


def as_others_write(value: Any, definition: dict[str, Any]) -> Any:
    """A value with a fraction for every integer, and null for every absent optional field."""
    for alternative in definition.get("anyOf", ()):
        if alternative.get("$ref") or "items" in alternative:
            definition = alternative
    definition = PUBLISHED["$defs"][definition["$ref"].split("/")[-1]] if "$ref" in definition else definition
    if isinstance(value, dict) and "properties" in definition:
        properties = definition["properties"]
        given_ = {key: as_others_write(each, properties[key]) for key, each in value.items()}
        return {**{key: None for key in properties if key not in definition["required"]}, **given_}
    if isinstance(value, list):
        return [as_others_write(each, definition.get("items", {})) for each in value]
    return float(value) if type(value) is int else value


@pytest.mark.parametrize("event", [*one_of_each(), FULL, SHARED], ids=lambda event: type(event).__name__)
def test_whole_floats_and_nulls_mean_what_integers_and_absent_fields_mean(event: AnyEvent) -> None:
    """FBK-2: the same event, in every field, as serialisers of Java and .NET write it."""
    value = {key: each for key, each in json.loads(encode(event)).items() if each is not None}
    (definition,) = (each for each in PUBLISHED["$defs"].values() if each["title"] == type(event).__name__)
    other = json.dumps(as_others_write(value, definition))
    assert "null" in other
    assert f'"ts": {float(event.ts)}' in other
    assert SCHEMA.is_valid(json.loads(other))
    assert decode(other.encode(), max_bytes=MOST) == event
