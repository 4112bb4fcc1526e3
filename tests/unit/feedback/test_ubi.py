"""FBK-2: OpenSearch User Behavior Insights 1.3 as events, with a reason for what cannot be one."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.feedback_events import HASHES, NOON, RULES, records
from tests.support.feedback_source import FakeLog, FakeSource
from weft.domain.documents import Domain
from weft.domain.events import AnyEvent, Explicit, Impression, Selection
from weft.domain.ids import ContentHash, question_of
from weft.feedback.events.ubi import Mapped, UbiObject, content_hashes_only, from_ubi
from weft.feedback.run.updater import Updater
from weft.feedback.settings import UbiSettings
from weft.feedback.store.tables import evidence_in

ACTIONS = UbiSettings(selections=("click",), verdicts={"purchase": 1.0, "thumbs_down": -1.0})
NOON_ISO = "2026-09-21T12:00:00Z"


def query(**changes: Any) -> dict[str, Any]:
    """A document of `ubi_queries`."""
    facts = {
        "application": "docs",
        "query_id": "q1",
        "client_id": "browser",
        "user_query": "how to retry",
        "query_attributes": {"page": 1},
        "timestamp": NOON_ISO,
        "query_response_id": "r1",
        "query_response_hit_ids": HASHES[1:4],
    }
    return {**facts, **changes}


def event(action: str = "click", rank: int = 2, **changes: Any) -> dict[str, Any]:
    """A document of `ubi_events`."""
    facts = {
        "application": "docs",
        "action_name": action,
        "query_id": "q1",
        "session_id": "visit",
        "client_id": "browser",
        "user_id": "ada",
        "timestamp": NOON_ISO,
        "message_type": "CLICK",
        "event_attributes": {
            "object": {"object_id": HASHES[rank], "object_id_field": "content_hash"},
            "position": {"ordinal": rank},
        },
    }
    return {**facts, **changes}


def mapped(*documents: object, rules: UbiSettings = ACTIONS) -> Mapped:
    return from_ubi(documents, rules, content_hashes_only(Domain.CODE))


def only(*documents: object) -> AnyEvent:
    found = mapped(*documents)
    assert not found.refused
    return found.events[-1]


def test_a_query_is_an_impression_without_signals() -> None:
    """FBK-2: ranks as they were returned; no score, so that calibration learns nothing from another engine."""
    shown = only(query())
    assert isinstance(shown, Impression)
    assert (shown.query_id, shown.ts, shown.principal) == ("q1", NOON, "browser")
    assert shown.query_hash == hashlib.sha256(b"how to retry").hexdigest()
    assert [(each.content_hash, each.rank, each.domain, each.score, each.signals) for each in shown.results] == [
        (HASHES[rank], rank, Domain.CODE, None, {}) for rank in (1, 2, 3)
    ]


def test_a_click_is_a_selection() -> None:
    """FBK-2: by the user where one is known."""
    chosen = only(event(rank=2))
    assert isinstance(chosen, Selection)
    assert (chosen.content_hash, chosen.rank, chosen.principal, chosen.ts) == (HASHES[2], 2, "ada", NOON)


@pytest.mark.parametrize(("action", "signal"), [("purchase", 1.0), ("thumbs_down", -1.0)])
def test_an_action_may_be_a_verdict(action: str, signal: float) -> None:
    """FBK-2: as the settings say."""
    verdict = only(event(action))
    assert isinstance(verdict, Explicit)
    assert (verdict.content_hash, verdict.signal) == (HASHES[2], signal)


def test_events_are_of_the_session_of_their_query() -> None:
    """FBK-1: they meet in one partition, in whichever order the documents come, and whether the query names one."""
    for documents in ([query(), event()], [event(), query()]):
        assert {each.session_id for each in mapped(*documents).events} == {"q1"}
    assert {each.session_id for each in mapped(query(session_id="s1"), event()).events} == {"s1"}
    assert only(event()).session_id == "visit"
    assert only(event(session_id=None)).session_id == "q1"


def test_documents_read_again_are_repeats() -> None:
    """FBK-5: the same ids, from the hit where there is one, and apart for documents that differ."""
    once, again = mapped(query(), event()), mapped(query(), event())
    assert once.events == again.events
    assert len({each.event_id for each in mapped(query(), event(), event(rank=3)).events}) == 3
    hit = {"_index": "ubi_events", "_id": "b7", "_source": event()}
    assert only(hit).event_id == "ubi-b7"


@pytest.mark.parametrize(
    "timestamp",
    [
        *("2026-09-21T12:00:00+00:00", "2026-09-21T14:00:00+02:00", "2026-09-21T12:00:00", " 2026-09-21t12:00:00z "),
        *(NOON, float(NOON), str(NOON)),
        *(NOON // 1000, NOON / 1000, str(NOON // 1000), f"{NOON // 1000}.0"),
        *(NOON * 1000, str(NOON * 1000), NOON * 1_000_000, float(NOON) * 1e6, str(NOON * 1_000_000)),
    ],
)
def test_times_are_read_as_ubi_writes_them(timestamp: object) -> None:
    """FBK-2: with a zone, in UTC without one, and in each unit that epochs are counted in."""
    assert only(event(timestamp=timestamp)).ts == NOON


@pytest.mark.parametrize(
    "timestamp",
    [None, "", "yesterday", True, 0, -1, 20260921, NOON * 10**9, "1970-01-01T00:00:00Z", float("nan"), 10**400, [NOON]],
)
def test_what_is_no_time_in_any_unit_is_refused(timestamp: object) -> None:
    """FBK-2: with what was expected, before anything is sent."""
    (refused,) = mapped(event(timestamp=timestamp)).refused
    assert refused.reason == "no_time"
    assert "ISO 8601 or in seconds to nanoseconds" in refused.detail


@pytest.mark.parametrize("asked", [None, "", "  ", "absent"])
def test_a_query_without_a_text_is_of_no_question(asked: str | None, tmp_path: Path) -> None:
    """FBK-2: what comes of its results counts, and is a precedent of nothing."""
    shown = query(user_query=asked)
    if asked == "absent":
        del shown["user_query"]
    usage = learned(tmp_path, shown, event("purchase", rank=2))
    assert {(key.content_hash, key.bin, key.question) for key in usage} == {(HASHES[2], "verdict:good:43200000:-", "")}
    asked_for = learned(tmp_path / "asked", query(), event("purchase", rank=2))
    assert {key.question for key in asked_for} == {question_of("how to retry")}
    assert list(usage.values()) == list(asked_for.values())


def learned(folder: Path, *documents: object) -> dict[Any, int]:
    """What became of contents, once an updater has read the events of documents."""
    updater = Updater.open(FakeSource(FakeLog.of(records(mapped(*documents).events))), folder, [0], RULES)
    updater.step(0.0)
    evidence = updater._states[0].read(evidence_in)
    updater.close()
    return dict(evidence.usage)


def test_ids_are_texts_or_integers() -> None:
    """FBK-2: null and the empty text are as if absent; an integer is its digits."""
    assert only(query(user_id=None, client_id=7)).principal == "7"
    assert only(query(user_id="", client_id=7.0)).principal == "7"
    assert only(query(user_id=None, client_id=None)).principal == "anonymous"
    shown, chosen = mapped(query(query_id=7, session_id=None), event(query_id=7, session_id=41)).events
    assert {shown.session_id, chosen.session_id} == {"7"}
    assert only({"_id": 12, "_source": event()}).event_id == "ubi-12"
    assert len(only({"_id": None, "_source": event()}).event_id) == len("ubi-") + 32
    about = {"object": {"object_id": None, "internal_id": HASHES[2]}}
    assert isinstance(chosen := only(event(event_attributes=about)), Selection)
    assert chosen.content_hash == HASHES[2]


LOOSE = [({"ordinal": ordinal}, rank) for ordinal, rank in [("3", 3), (3.0, 3), (None, 1), (True, 1), ("top", 1)]]


def test_older_positions_are_read() -> None:
    """FBK-2: schema 1.0 has the ordinal in an object; coordinates say no rank."""
    about = {"object_id": HASHES[2]}
    for position, rank in (({"ordinal": {"index": 3}}, 3), ({"xy": {"x": 1, "y": 2}}, 1), ({"ordinal": 0}, 1), *LOOSE):
        chosen = only(event(event_attributes={"object": about, "position": position}))
        assert isinstance(chosen, Selection)
        assert chosen.rank == rank


def test_objects_may_have_ids_of_their_own() -> None:
    """FBK-2: a resolver says which content they stand for; hits that are none of weft's keep their ranks free."""
    known = {"7": UbiObject(ContentHash(HASHES[1]), Domain.ACADEMIC)}
    shown, chosen = from_ubi(
        [
            query(query_response_hit_ids=["6", "7", "7"]),
            event(event_attributes={"object": {"object_id": 7}, "position": {"ordinal": 2}}),
        ],
        ACTIONS,
        known.get,
    ).events
    assert isinstance(shown, Impression)
    assert isinstance(chosen, Selection)
    assert [(each.rank, each.content_hash, each.domain) for each in shown.results] == [(2, HASHES[1], Domain.ACADEMIC)]
    assert chosen.content_hash == HASHES[1]


WRONG = {
    "a string": ("click", "not_an_object"),
    "null": (None, "not_an_object"),
    "nothing of UBI": ({"colour": "blue"}, "unknown_document"),
    "an event at no time": (event(timestamp=None), "no_time"),
    "an event at a bad time": (event(timestamp="yesterday"), "no_time"),
    "a time that is true": (event(timestamp=True), "no_time"),
    "an event on no query": (event(query_id=None), "no_query"),
    "a query without id": (query(query_id=""), "no_query"),
    "a query without results": (query(query_response_hit_ids=None), "no_results"),
    "a query of strangers": (query(query_response_hit_ids=["a", "b"]), "unknown_object"),
    "an event without attributes": (event(event_attributes=None), "no_object"),
    "an event on no object": (event(event_attributes={"position": {"ordinal": 1}}), "no_object"),
    "an object that is a list": (event(event_attributes={"object": {"object_id": [1]}}), "no_object"),
    "an object of others": (event(event_attributes={"object": {"object_id": "isbn"}}), "unknown_object"),
    "an action nobody knows": (event("hover"), "unmapped_action"),
    "an action that is a number": (event(7), "unmapped_action"),  # type: ignore[arg-type]
    "a question that is an object": (query(user_query={"q": "x"}), "no_question"),
    "a question that is a number": (query(user_query=42), "no_question"),
    "a query id that is true": (query(query_id=True), "no_query"),
    "a query of nulls": (query(query_response_hit_ids=[None, True]), "unknown_object"),
    "an object that is true": (event(event_attributes={"object": {"object_id": True}}), "no_object"),
    "a user that is an object": (event(user_id={"id": 1}), "invalid"),
    "a client that is not finite": (event(user_id=None, client_id=float("nan")), "invalid"),
    "a session that is true": (event(query_id="q9", session_id=True), "invalid"),
    "a hit of a strange id": ({"_id": [1], "_source": event()}, "invalid"),
    "a rank beyond all": (
        event(event_attributes={"object": {"object_id": HASHES[1]}, "position": {"ordinal": 10**9}}),
        "invalid",
    ),
    "an endless client": (event(user_id="u" * 200), "invalid"),
}


@pytest.mark.parametrize(("document", "reason"), WRONG.values(), ids=WRONG.keys())
def test_what_cannot_be_read_is_reported_and_stops_nothing(document: object, reason: str) -> None:
    """FBK-2, FBK-3: with its place, a stable reason and what was found."""
    found = mapped(query(query_id="q0"), document, event(query_id="q0"))
    assert len(found.events) == 2
    (refused,) = found.refused
    assert (refused.number, refused.reason) == (1, reason)
    assert refused.detail


STRANGE = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3), st.sampled_from([HASHES[1], NOON])
    ),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["object", "object_id", "position", "ordinal", "index"]), inner)
    ),
    max_leaves=4,
)
FIELDS = ["_id", *query(), *event(), "user_query"]


@given(
    st.sampled_from([query(), event(), event("purchase")]),
    st.dictionaries(st.sampled_from(FIELDS), STRANGE, max_size=3),
)
def test_no_value_of_a_field_becomes_the_name_of_a_value(document: dict[str, Any], changes: dict[str, Any]) -> None:
    """FBK-2: null, true and NaN are neither ids nor questions, and every document is an event or refused."""
    found = mapped({**document, **changes})
    assert len(found.events) + len(found.refused) == 1
    for made in found.events:
        said = {made.session_id, made.principal, made.event_id.removeprefix("ubi-"), getattr(made, "query_id", "")}
        written = {text for text in changes.values() if isinstance(text, str)}
        assert not (said - written) & {"None", "True", "False", "nan", "inf", "[]", "{}"}
        assert getattr(made, "query_hash", None) not in {
            hashed(word) for word in ("None", "True", "False", "nan", "", "{}")
        }


def hashed(text: str) -> str:
    return hashlib.sha256(text.casefold().encode()).hexdigest()


def test_a_log_of_ubi_becomes_evidence_of_its_contents(tmp_path: Path) -> None:
    """FBK-2: through an updater: the chosen one good, the one passed over bad, and nothing about scores."""
    log = FakeLog.of(records(mapped(query(), event(rank=2), event(rank=2)).events))
    updater = Updater.open(FakeSource(log), tmp_path, [0], RULES)
    updater.step(0.0)
    (standing,) = updater.progress()
    evidence = updater._states[0].read(evidence_in)
    updater.close()
    assert (standing.report.applied, standing.report.duplicate) == (2, 1)
    assert {(key.content_hash, key.bin) for key in evidence.usage} == {(HASHES[2], "positive"), (HASHES[1], "negative")}
    assert "relevance" not in {key.parameter for key in evidence.counts}
