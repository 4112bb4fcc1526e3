"""FBK-13: one field of an answer is all that whoever reports what became of it needs."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import pytest
from msgspec import structs

from tests.support.feedback_events import HASHES, NOON, RULES, SETTINGS, impression, records, shown
from tests.support.feedback_publisher import MemoryPublisher
from weft.domain.errors import InvalidEventError
from weft.domain.events import AnyEvent, Selection
from weft.domain.ranking import AnswerToken, Query
from weft.domain.signatures import SigningKey
from weft.feedback.events.authenticity import Authenticity
from weft.feedback.events.producer import FeedbackProducer
from weft.feedback.fold.batch import arrived
from weft.feedback.fold.credit import chosen_place, learned_terms

KEY = SigningKey("a key that only services and updaters share")
QUERY = Query(text="where is the checkpoint flushed", query_id="q1", session_id="s1", principal="ada", agent="coder")
PLAIN, SIGNED = AnswerToken.of(QUERY).text, AnswerToken.of(QUERY, KEY.tokens_of(QUERY).query).text


def said(about: Query | str, key: SigningKey | None = None, **names: Any) -> tuple[MemoryPublisher, list[AnyEvent]]:
    """Everything that can be said of an answer, and where it went."""
    publisher, found = MemoryPublisher(), HASHES[1]
    rules = SETTINGS.feedback.triggers
    producer = FeedbackProducer(publisher, clock=lambda: NOON / 1000, new_id=lambda: "id", key=key, triggers=rules)
    producer.explicit(about, 1.0, content_hash=found, **names)
    producer.selection(about, found, **names)
    producer.retrieval(about, [found], **names)
    producer.inclusion(about, [found], **names)
    producer.reference(about, content_hashes=[found], **names)
    producer.success(about, **names)
    producer.correction(about, right=True, content_hash=found, **names)
    return publisher, publisher.events


def refusals(publisher: MemoryPublisher) -> list[str]:
    """Why updaters with the key read each event not; empty where they do."""
    asked = Authenticity(KEY, lambda session: session == "s1")
    arrivals = arrived(records(list(publisher.values)), max_bytes=RULES.limits.event_bytes, authenticity=asked)
    return [event.reason if isinstance(event, InvalidEventError) else "" for event in arrivals.events]


def test_a_token_says_what_its_query_says() -> None:
    """FBK-13: every event but the correction, which names the query where it has no text, is the same by either."""
    by_token, by_query = said(PLAIN), said(QUERY)
    assert by_token[0].keys == by_query[0].keys == [b"s1"] * 7
    assert by_token[1][:-1] == by_query[1][:-1]
    *_, correction = by_token[1]
    assert (correction.query_id, correction.question) == ("q1", None)  # type: ignore[union-attr]


def test_a_signed_token_is_all_that_a_producer_without_the_key_needs() -> None:
    """FBK-13: a click handler far from the searcher proves by the token alone whom it speaks for; not for another."""
    assert refusals(said(SIGNED)[0]) == [""] * 7
    assert refusals(said(PLAIN)[0]) == refusals(said(SIGNED, principal="bob")[0]) == ["unauthorised"] * 7


def test_a_producer_with_the_key_signs_for_no_token_that_it_did_not_give() -> None:
    """FBK-13: tokens come back from browsers: one that is made up, or altered, gets no signature."""
    assert refusals(said(SIGNED, KEY)[0]) == refusals(said(SIGNED, KEY, principal="bob")[0]) == [""] * 7
    altered = AnswerToken.read(SIGNED)._replace(principal="boss").text
    for token, found in ((PLAIN, "a plain one for 'ada'"), (altered, "another one for 'boss'")):
        publisher = MemoryPublisher()
        with pytest.raises(InvalidEventError, match=f"expected a token signed .*, found {found}: give "):
            FeedbackProducer(publisher, key=KEY).selection(token, HASHES[1])
        assert publisher.values == []


def test_events_of_other_clients_carry_the_whole_token_or_what_it_holds() -> None:
    """FBK-13: base64url of a JSON object with fields of events, which any language reads."""
    fields = json.loads(base64.urlsafe_b64decode(SIGNED + "=" * (-len(SIGNED) % 4)))
    event = {"type": "selection", "event_id": "e", "ts": NOON, "content_hash": HASHES[1], **fields}
    publisher = MemoryPublisher()
    for token in (fields["token"], SIGNED):
        publisher.send(b"s1", json.dumps({**event, "token": token}).encode())
    assert refusals(publisher) == ["", ""]
    assert re.fullmatch(r"[\w-]+", SIGNED)


@pytest.mark.parametrize(
    "text", ["", "q-7", "why", PLAIN[:-9], f"{PLAIN}!", base64.b64encode(b'{"a":1}').decode(), "é"]
)
def test_what_is_no_token_is_refused_with_what_to_do(text: str) -> None:
    """OPS-15: expected, found, and one thing that helps; nothing is sent."""
    publisher = MemoryPublisher()
    with pytest.raises(InvalidEventError, match=r"expected the token of an answer, .*, found '.*': pass it on whole"):
        FeedbackProducer(publisher).selection(text, HASHES[1])
    assert publisher.values == []


def test_a_selection_by_token_teaches_the_words_of_the_question() -> None:
    """RET-17: where neither rank nor words are said, the updater has both; a private question teaches none."""
    by_token = said(PLAIN)[1][1]
    assert isinstance(by_token, Selection)
    assert (by_token.rank, by_token.terms) == (None, None)
    far = [shown(rank) for rank in range(1, 6)]
    clicked = structs.replace(by_token, content_hash=HASHES[5])

    def taught(question: str | None, picked: Selection = clicked) -> set[str]:
        page = structs.replace(impression(results=far), question=question)
        chosen = page.results[chosen_place(picked, page)]
        return set(learned_terms(picked, chosen, page, SETTINGS.feedback.triggers))

    assert taught(QUERY.text) == {"checkpoint", "flushed"}
    assert taught(None) == taught(QUERY.text, by_token) == set()


def test_a_producer_that_sends_no_words_has_none_taken() -> None:
    """RET-17: without triggers in its settings, its selections teach no words, told by token or not."""
    publisher = MemoryPublisher()
    FeedbackProducer(publisher).selection(PLAIN, HASHES[5])
    (event,) = publisher.events
    assert isinstance(event, Selection)
    assert event.terms == ()
