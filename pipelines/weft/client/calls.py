"""What is asked of a service: one value per request, for clients that wait and for clients that do not."""

from __future__ import annotations

import hashlib
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import httpx
import msgspec

from weft.domain.errors import ServiceError
from weft.domain.events import AnyEvent
from weft.domain.ranking import MOST_RESULTS, Answer, AnswerToken, Query, principal_of, session_of

PACKED = "application/vnd.weft.answers+msgpack"
"""Answers as values, which a client of the same version reads whole."""

OTHER_VERSION = (
    "expected the same version of weft here and in the service, found answers of another form: install the same on "
    "both sides, or start the service anew"
)

T = TypeVar("T")

Event = AnyEvent | Mapping[str, Any]
"""An event, or its fields as `POST /v1/feedback` takes them: with `answer`, the token of an answer, few are needed."""


class PackedAnswers(msgspec.Struct, frozen=True):
    """What a service packs: answers, each as it is encoded already."""

    answers: Sequence[msgspec.Raw]
    depth: int  # results that each channel finds at most


class UnpackedAnswers(msgspec.Struct, frozen=True):
    """The same, read."""

    answers: tuple[Answer, ...]
    depth: int


@dataclass(frozen=True, slots=True)
class RerankedText:
    """A text at its place."""

    index: int  # where it stood in the request, from 0
    relevance: float  # how well it answers the query, in [0, 1]


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """A request, how its response is read, and whether it may be sent twice."""

    method: str
    path: str
    read: Callable[[httpx.Response], T]
    json: Any = None
    params: Mapping[str, Any] = field(default_factory=dict)
    accept: str = "application/json"
    repeatable: bool = True  # sent twice, it does what it does once


_unpack = msgspec.msgpack.Decoder(UnpackedAnswers)
_DEFAULTS = {each.name: each.default for each in fields(Query)}


@lru_cache(maxsize=1)
def packed_form() -> str:
    """Names what packed answers look like: two versions that differ in it cannot read each other's."""
    return hashlib.sha256(msgspec.json.encode(msgspec.json.schema(UnpackedAnswers))).hexdigest()[:12]


def packed_type() -> str:
    """The media type of packed answers, as this version makes them."""
    return f"{PACKED}; form={packed_form()}"


def form_of(media_type: str) -> str | None:
    """The form that a media type of packed answers names; None where it is of other things.

    Examples:
        >>> form_of("application/vnd.weft.answers+msgpack; form=0123456789ab")
        '0123456789ab'
    """
    kind, _, rest = media_type.partition(";")
    return rest.strip().removeprefix("form=") if kind.strip().lower() == PACKED else None


def fields_of(query: Query) -> dict[str, Any]:
    """A query as requests state it. What its session remembers stays out: the service remembers that itself.

    Of an adaptive query for as many results as there may be, the service knows how many the router gives at most.
    """
    open_ended = query.adaptive and query.k == MOST_RESULTS
    always = {"text", "query_id"} | (set() if open_ended else {"k"})
    left_out = {"memory", "filters"} | ({"k"} if open_ended else set())
    stated = {name: getattr(query, name) for name in _DEFAULTS if name not in left_out}
    fields = {name: value for name, value in stated.items() if name in always or value != _DEFAULTS[name]}
    return {**fields, "filters": dict(query.filters)} if query.filters else fields


def answers(queries: Sequence[Query], *, record: bool = True) -> Call[UnpackedAnswers]:
    """Answers to queries, all from one snapshot."""
    stated = [fields_of(each) | ({} if record else {"record": False}) for each in queries]
    return Call("POST", "/v1/search", _read_answers, {"queries": stated}, accept=packed_type())


def page(query: Mapping[str, Any]) -> Call[dict[str, Any]]:
    """An answer as a page of results shows it."""
    return Call("POST", "/v1/search", _json, dict(query))


def _read_answers(response: httpx.Response) -> UnpackedAnswers:
    form = form_of(response.headers.get("content-type", ""))
    if form != packed_form():
        raise ServiceError(OTHER_VERSION)
    try:
        return _unpack.decode(response.content)
    except msgspec.MsgspecError as error:
        raise ServiceError(f"{OTHER_VERSION} ({error})") from error


def explanation(query_id: str) -> Call[dict[str, Any]]:
    """What every score of an answer was made of."""
    return Call("GET", f"/v1/answers/{quote(query_id, safe='')}", _json)


def feedback(events: Sequence[Event]) -> Call[list[str]]:
    """Events for the topic. Each gets its id here: sent twice, it counts once."""
    now = round(time.time() * 1000.0)
    stated = [{"event_id": uuid.uuid4().hex, "ts": now, **_fields(each)} for each in events]
    return Call("POST", "/v1/feedback", lambda response: list(_json(response)["event_ids"]), stated)


def _fields(event: Event) -> dict[str, Any]:
    return dict(event) if isinstance(event, Mapping) else msgspec.to_builtins(event)


def verdict(token: str, signal: float, content_hash: str | None, *, asked: bool) -> Mapping[str, Any]:
    """What somebody thinks of a result, or of the whole answer."""
    facts = {"type": "explicit", "answer": token, "signal": signal, "asked": asked}
    return facts if content_hash is None else {**facts, "content_hash": content_hash}


def selection(token: str, content_hash: str) -> Mapping[str, Any]:
    """A result was opened."""
    return {"type": "selection", "answer": token, "content_hash": content_hash}


def correction(about: Answer | Query, uri: str, *, right: bool) -> Mapping[str, Any]:
    """A document, or a part of one, is right for what was asked, or wrong, shown or not (LRN-23)."""
    query, proof = (about.query, about.session_token) if isinstance(about, Answer) else (about, "")
    facts = {"type": "correction", "question": query.text, "uri": uri, "right": right}
    facts |= {"session_id": session_of(query), "principal": principal_of(query)}
    return {**facts, "token": proof} if proof else facts


def token_of(answer: Answer | str) -> str:
    """The token of an answer, checked: what is none is said before anything is sent."""
    token = answer.token if isinstance(answer, Answer) else answer
    AnswerToken.read(token)
    return token


def reranked(query: str, documents: Sequence[str], top_n: int | None) -> Call[list[RerankedText]]:
    """Texts in order."""
    body = {"query": query, "documents": list(documents), **({} if top_n is None else {"top_n": top_n})}

    def read(response: httpx.Response) -> list[RerankedText]:
        return [RerankedText(each["index"], each["relevance_score"]) for each in _json(response)["results"]]

    return Call("POST", "/v1/rerank", read, body)


def place(name: str) -> Call[str]:
    """The URI of a place that somebody names."""
    return Call("GET", "/v1/places", lambda response: str(_json(response)["uri"]), params={"name": name})


def content(content_hash: str) -> Call[dict[str, Any]]:
    """A content by its hash."""
    return Call("GET", f"/v1/contents/{quote(content_hash, safe='')}", _json)


def status() -> Call[dict[str, Any]]:
    """What is live, its age, lag, last night, alarms, disk."""
    return Call("GET", "/v1/status", _json)


def lessons(stated: Mapping[str, Any]) -> Call[tuple[list[dict[str, Any]], int]]:
    """Lessons, the surest first, and how many there are over all."""

    def read(response: httpx.Response) -> tuple[list[dict[str, Any]], int]:
        listed = list(_json(response))
        return listed, int(response.headers.get(TOTAL, len(listed)))

    return Call("GET", "/v1/lessons", read, params=_stated(stated))


MOST_LISTED, MOST_REVIEWED = 10_000, 1_000
"""Lessons, and those to review, that one request may ask for."""


def review(limit: int) -> Call[dict[str, Any]]:
    """Lessons and pairs of them that a person could decide on."""

    def read(response: httpx.Response) -> dict[str, Any]:
        records, total = list(_json(response)), int(response.headers[TOTAL])
        pairs = [each for each in records if "other" in each]
        listed = [each for each in records if "other" not in each]
        return {"lessons": listed, "pairs": pairs, "open": total, "open_pairs": int(response.headers[TOTAL_PAIRS])}

    return Call("GET", "/v1/lessons/review", read, params={"limit": limit, "pairs": "true"})


def lesson(lesson_id: str) -> Call[dict[str, Any]]:
    """A lesson, what is believed of it and why, and its history."""
    return Call("GET", f"/v1/lessons/{quote(lesson_id, safe='')}", _json)


def lesson_prompt(stated: Mapping[str, Any]) -> Call[dict[str, Any]]:
    """What an agent is told before it uses a tool."""
    return Call("POST", "/v1/lessons/prompt", _json, _stated(stated), repeatable=not stated.get("record"))


def lesson_operations(operations: Sequence[Mapping[str, Any]], stated: Mapping[str, Any]) -> Call[dict[str, Any]]:
    """What is said of lessons."""
    body = {"operations": [dict(each) for each in operations], **_stated(stated)}
    return Call("POST", "/v1/lessons", _json, body, repeatable=False)


def readiness() -> Call[dict[str, Any]]:
    """Whether searches are answered."""
    return Call("GET", "/readyz", _json)


TOTAL, TOTAL_PAIRS = "x-total-count", "x-total-pairs"
"""Headers that say how many there are of what is sent in part."""


def _stated(stated: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in stated.items() if value is not None}


def _json(response: httpx.Response) -> Any:
    try:
        return response.json()
    except ValueError as error:
        raise ServiceError(f"expected JSON of {response.url.path}, found {response.text[:80]!r}") from error
