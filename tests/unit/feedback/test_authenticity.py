"""FBK-13: with a key, only the search service says what was shown, and only whom it answered speaks of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.support.feedback_events import (
    HASHES,
    NOON,
    RULES,
    accuracy,
    explicit,
    impression,
    one_of_each,
    records,
    rules,
    session,
    stamp,
)
from tests.support.feedback_publisher import MemoryPublisher
from weft.domain.errors import ConfigurationError, InvalidEventError
from weft.domain.events import AnyEvent, Impression
from weft.domain.ranking import Answer, AnswerToken, Query
from weft.domain.signatures import SigningKey
from weft.feedback.events.authenticity import Authenticity, signed, token_of
from weft.feedback.events.codec import decode_all, encode
from weft.feedback.events.producer import FeedbackProducer, impression_of
from weft.feedback.fold.batch import arrived
from weft.settings import load_settings

SECRET = "a key that only services and updaters share"
KEY = SigningKey(SECRET)
OTHER = SigningKey("a key that somebody else made up, as long")


def reasons(values: list[bytes | None], key: SigningKey = KEY) -> list[str]:
    """Why each record may not teach; empty where it may."""
    asked = Authenticity(key, lambda session: session == "s1")
    arrivals = arrived(records(values), max_bytes=RULES.limits.event_bytes, authenticity=asked)
    return [event.reason if isinstance(event, InvalidEventError) else "" for event in arrivals.events]


def a_producer(publisher: MemoryPublisher, key: SigningKey | None = None) -> FeedbackProducer:
    return FeedbackProducer(publisher, clock=lambda: NOON / 1000, key=key)


def an_answer(principal: str = "ada") -> Answer:
    query = Query(text="how", query_id="q1", session_id="s1", principal=principal)
    tokens = KEY.tokens_of(query)
    return Answer(
        query=query,
        results=(),
        generation="",  # type: ignore[arg-type]
        learned="",  # type: ignore[arg-type]
        fusion="",
        proof=tokens.query,
        session_token=tokens.session,
    )


def with_token(event: AnyEvent, key: SigningKey = KEY) -> bytes:
    return encode(type(event)(**{**fields(event), "token": token_of(event, key)}))


def fields(event: AnyEvent) -> dict[str, object]:
    return {name: getattr(event, name) for name in event.__struct_fields__}


def test_a_signed_impression_is_read_and_every_other_one_is_forged() -> None:
    """FBK-13: invented names forged 1,800 impressions; unsigned, or signed by another key, none counts."""
    shown = encode(impression())
    assert reasons([signed(shown, KEY), shown, signed(shown, OTHER)]) == ["", "forged", "forged"]


@given(place=st.integers(0, 10_000), byte=st.integers(0, 255))
def test_an_altered_impression_is_forged(place: int, byte: int) -> None:
    """FBK-13: whichever byte of what the service signed is another one, of results and signals, too."""
    value = bytearray(signed(encode(impression()), KEY))
    place %= len(value)
    altered = value[:place] + bytes([byte]) + value[place + 1 :]
    assert all(reasons([bytes(altered)])) == (altered != value)


def test_a_signature_covers_what_another_field_of_the_same_name_would_change() -> None:
    """FBK-13: of a field that an object has twice the last counts, and so do the bytes around it."""
    value = signed(encode(impression()), KEY)
    signature = json.loads(value)["signature"]
    more = value[:-1] + b',"principal":"mallory","signature":"' + signature.encode() + b'"}'
    spaced = value[:-1] + b" }"
    assert reasons([more, spaced]) == ["forged", "forged"]


def test_feedback_counts_with_the_token_of_its_bearer_alone() -> None:
    """FBK-13: a verdict on another's query, whether in one's own name or in the other's, is a dead letter."""
    mine = explicit(principal="ada")
    theirs = type(mine)(**{**fields(mine), "principal": "mallory", "token": token_of(mine, KEY)})
    values = [with_token(mine), encode(mine), encode(theirs), with_token(mine, OTHER)]
    assert reasons(values) == ["", *["unauthorised"] * 3]


def test_a_session_is_led_with_the_token_of_its_owner() -> None:
    """FBK-13: stating somebody's name unlearned their session, and a `start` before its owner's captured its id."""
    values = [encode(session(phase, principal=who)) for phase in ("start", "unlearn") for who in ("ada", "mallory")]
    assert reasons(values) == ["unauthorised"] * 4
    assert reasons([with_token(session("start")), with_token(session("unlearn"))]) == ["", ""]


def test_a_token_of_a_query_leads_no_session() -> None:
    """FBK-13: who may name a query, as a file of queries does, names it like another's session and captures nothing."""
    captured = session("start", session_id="s-41", principal="mallory")
    token = KEY.query_token("s-41", "mallory")
    assert reasons([encode(type(captured)(**{**fields(captured), "token": token}))]) == ["unauthorised"]


def test_what_is_reported_outright_needs_the_session_of_whom_it_names() -> None:
    """FBK-13: nobody uses up another's allowance by reports in that one's name."""
    report = accuracy(3.0, accurate=True)
    assert reasons([encode(report), with_token(report)]) == ["unauthorised", ""]


def test_a_copy_of_what_was_signed_counts_in_no_other_partition() -> None:
    """FBK-13: old topics replayed: repeats are recognised by their ids within one partition, and there alone."""
    assert reasons([signed(encode(impression(session_id="s2")), KEY)]) == ["forged"]


def test_without_a_key_everything_is_read_signed_or_not() -> None:
    """FBK-13: a store without a key goes on as before, also where services have one already."""
    values: list[bytes | None] = [encode(event) for event in one_of_each()]
    values += [signed(encode(impression()), KEY), with_token(explicit())]
    arrivals = arrived(records(values), max_bytes=RULES.limits.event_bytes)
    assert not [event for event in arrivals.events if isinstance(event, InvalidEventError)]


def test_a_service_with_the_key_signs_and_speaks_for_its_users() -> None:
    """FBK-13: also for another than who asked, as where an answer was shared in a channel."""
    publisher = MemoryPublisher()
    producer, answer = a_producer(publisher, KEY), an_answer()
    producer.impression(answer)
    producer.explicit(answer.query, 1.0, content_hash=HASHES[1])
    producer.explicit(answer.query, 1.0, content_hash=HASHES[1], principal="bob")
    producer.session("s1", "start", principal="ada")
    assert reasons(list(publisher.values)) == [""] * 4
    assert [event.principal for event in publisher.events] == ["ada", "ada", "bob", "ada"]


def test_a_producer_without_the_key_bears_the_tokens_of_an_answer() -> None:
    """FBK-13: the answer carries what its user proves itself by."""
    publisher, answer = MemoryPublisher(), an_answer()
    producer = a_producer(publisher)
    producer.bearing(answer.token).explicit(answer.query, 1.0, content_hash=HASHES[1])
    producer.bearing(answer.session_token).session("s1", "unlearn", principal="ada")
    producer.explicit(answer.query, 1.0, content_hash=HASHES[1])
    producer.bearing(answer.token).explicit(answer.query, 1.0, principal="bob")
    assert reasons(list(publisher.values)) == ["", "", "unauthorised", "unauthorised"]


def test_an_impression_ends_in_its_signature() -> None:
    """FBK-13: fields that join later stand before it, or nothing would cover them."""
    assert Impression.__struct_fields__[-1] == "signature"
    with pytest.raises(ValueError, match="without a signature"):
        signed(encode(explicit()), KEY)


def test_results_and_signal_values_are_under_the_signature() -> None:
    """FBK-13: query id, principal, session, results and signal values."""
    shown = impression_of(an_answer(), **stamp("shown"))
    assert reasons([signed(encode(shown), KEY)]) == [""]
    content = signed(encode(shown), KEY).rpartition(b',"signature"')[0]
    assert all(name in content for name in (b'"q1"', b'"ada"', b'"s1"', b'"results"'))


def test_refusals_leave_what_is_no_event_as_it_was() -> None:
    """FBK-3: a record that cannot be read says why it cannot be read, not that it has no signature."""
    values = [b"{", None, signed(encode(impression()), KEY)]
    events = Authenticity(KEY, lambda _: True).checked(decode_all(values, max_bytes=1_000_000), values)
    assert [getattr(event, "reason", "") for event in events] == ["undecodable", "tombstone", ""]


def test_ids_that_weft_makes_are_secrets() -> None:
    """FBK-13: drawn from the operating system, 122 bits of each: no seed of Python's repeats them."""
    import random

    made = []
    for _ in range(2):
        random.seed(1)
        publisher = MemoryPublisher()
        query = Query(text="how")
        FeedbackProducer(publisher).explicit(query, 1.0)
        made += [query.query_id, publisher.events[0].event_id, publisher.events[0].session_id]
    assert len(set(made)) == 4  # a query without a session is one of its own, under its query id
    assert all(len(each) == 32 for each in made)


def test_a_key_is_given_by_the_environment_and_shows_nowhere(tmp_path: Path) -> None:
    """FBK-13: never in a store, a message or a dump of settings; one that can be tried out is refused."""
    settings = load_settings(environment={"WEFT__FEEDBACK__SIGNING_KEY": SECRET})
    assert settings.feedback.key is not None
    assert settings.feedback.key.query_token("q", "p") == KEY.query_token("q", "p")
    shown = f"{settings!r} {settings.model_dump(mode='json')} {settings.feedback.key!r}"
    assert SECRET not in shown
    with pytest.raises(ConfigurationError, match=r"feedback\.signing_key: expected at least 32") as refusal:
        load_settings(environment={"WEFT__FEEDBACK__SIGNING_KEY": "hunter2hunter2"})
    assert "hunter2" not in str(refusal.value)


def test_a_query_of_half_a_character_has_a_token() -> None:
    """RET-21: no text of a query fails a search."""
    query = replace(an_answer().query, principal="\ud800")
    token = AnswerToken.of(query, KEY.tokens_of(query).query)
    assert AnswerToken.read(token.text) == token


def test_short_keys_are_refused_by_the_settings_themselves() -> None:
    """FBK-13: whoever builds settings in Python meets the same rule."""
    with pytest.raises(ValidationError, match="at least 32"):
        rules(signing_key="short")
