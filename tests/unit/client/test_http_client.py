"""OPS-5b: when a client asks again, and what it makes of what a service says went wrong."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import httpx
import pytest

from weft.client.calls import PACKED, Call
from weft.client.http import AsyncClient, Client
from weft.domain.documents import Domain
from weft.domain.errors import InvalidEventError, ServiceError, ServiceUnreachableError, StoreError
from weft.domain.ranking import MOST_RESULTS, Query, Repeats

BUSY = httpx.Response(503, json={"detail": "expected room, found none"}, headers={"Retry-After": "0"})
GOOD = httpx.Response(200, json={"generation": "g-1"})


class Answers(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """Gives responses, or raises errors, one after the other, and keeps what was asked."""

    def __init__(self, answers: Sequence[httpx.Response | Exception]) -> None:
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return self.handle_request(request)


def client_of(*answers: httpx.Response | Exception) -> tuple[Client, Answers]:
    transport = Answers(answers)
    return Client("http://weft", "t" * 20, transport=transport), transport


def problem(status: int, detail: str, kind: str | None = None) -> httpx.Response:
    return httpx.Response(status, json={"detail": detail, "kind": kind})


def test_a_busy_service_is_asked_again_and_a_request_that_never_left_as_well() -> None:
    """OPS-5b: 503 and 429 with Retry-After, and connections that were refused."""
    refused = httpx.ConnectError("refused")
    client, transport = client_of(BUSY, httpx.Response(429, headers={"Retry-After": "0"}), refused, GOOD)
    assert client.status() == {"generation": "g-1"}
    assert len(transport.requests) == 4
    assert {each.headers["authorization"] for each in transport.requests} == {f"Bearer {'t' * 20}"}
    waiting = AsyncClient("http://weft", transport=Answers([BUSY, GOOD]))
    assert asyncio.run(waiting.status()) == {"generation": "g-1"}


def test_what_might_be_done_twice_is_not_sent_again() -> None:
    """OPS-5b: operations on lessons get their ids in the service; an event has its own, and counts once."""
    cut = httpx.ReadError("cut off")
    client, transport = client_of(cut)
    with pytest.raises(ServiceUnreachableError, match="cut off"):
        client.lesson_operations([{"kind": "add"}])
    assert len(transport.requests) == 1
    client, transport = client_of(cut, httpx.Response(202, json={"event_ids": ["e-1"]}))
    assert client.feedback([{"type": "session", "session_id": "s-1", "phase": "complete"}]) == ["e-1"]
    first, second = (json.loads(each.content)[0] for each in transport.requests)
    assert first == second
    assert first["event_id"]


def test_whoever_is_told_to_wait_for_long_does_not_wait() -> None:
    """OPS-5b: and after three attempts more it is enough."""
    client, transport = client_of(httpx.Response(503, json={"detail": "away"}, headers={"Retry-After": "60"}))
    with pytest.raises(ServiceUnreachableError, match="away"):
        client.status()
    assert len(transport.requests) == 1
    client, transport = client_of(*[BUSY] * 9)
    with pytest.raises(ServiceUnreachableError, match="expected room"):
        client.status()
    assert len(transport.requests) == 4


@pytest.mark.parametrize(
    ("response", "kind", "says"),
    [
        (problem(404, "no such place", "StoreError"), StoreError, "no such place"),
        (problem(422, "invalid_token: expected a token", "InvalidEventError"), InvalidEventError, "invalid_token: exp"),
        (problem(403, "expected a token with scope feedback"), ServiceError, "scope feedback"),
        (httpx.Response(200, text="<html>"), ServiceError, "expected JSON"),
        (httpx.Response(502, text="<html>Bad Gateway"), ServiceUnreachableError, "status 502"),
    ],
)
def test_what_went_wrong_is_the_error_that_it_was_there(
    response: httpx.Response, kind: type[Exception], says: str
) -> None:
    """OPS-5b: problem+json names the class; what is no problem+json is told as it is."""
    with pytest.raises(kind, match=says):
        client_of(response)[0].status()


def test_a_service_of_another_version_is_told_plainly() -> None:
    """OPS-5b: answers of another form are not read as if they were this version's."""
    for response in (
        httpx.Response(200, headers={"content-type": f"{PACKED}; form=000000000000"}, content=b"\x80"),
        httpx.Response(200, json={"answers": []}),
    ):
        with pytest.raises(ServiceError, match="expected the same version of weft here and in the service"):
            client_of(response)[0].search(Query(text="q"))


def test_a_token_that_is_none_is_refused_before_anything_is_sent() -> None:
    """OPS-5b: whoever mixed up a token and an id learns it at once."""
    client, transport = client_of()
    with pytest.raises(InvalidEventError, match="expected the token of an answer"):
        client.tell("q-1", 1.0)
    assert transport.requests == []


def test_a_query_is_stated_by_what_it_says_beyond_the_defaults() -> None:
    """OPS-5b: the service fills in the rest; how many results an open query is worth is its to say."""
    client, transport = client_of(*[httpx.Response(404, json={"detail": "-"})] * 2)
    full: dict[str, Any] = {"domain": Domain.CODE, "filters": {"lang": "en"}, "repeats": Repeats.LOWER, "turn": 2}
    for query in (
        Query(text="a", query_id="q-1", k=10, session_id="s", **full),
        Query(text="b", query_id="q-2", k=MOST_RESULTS, adaptive=True),
    ):
        with pytest.raises(ServiceError):
            client.search(query)
    stated = [json.loads(each.content)["queries"][0] for each in transport.requests]
    given = {"domain": "code", "filters": {"lang": "en"}, "repeats": "lower", "turn": 2, "session_id": "s"}
    assert stated == [
        {"text": "a", "query_id": "q-1", "k": 10, **given},
        {"text": "b", "query_id": "q-2", "adaptive": True},
    ]


def test_a_call_may_be_sent_by_hand() -> None:
    """OPS-5b: a route without a method of its own is a call away."""
    client, _ = client_of(GOOD)
    assert client.send(Call("GET", "/v1/learned", lambda response: response.status_code)) == 200
