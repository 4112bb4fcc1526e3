"""OpenSearch User Behavior Insights, schema 1.3, as events: documents of `ubi_queries` and `ubi_events` (FBK-2).

| UBI                                                         | weft                                                   |
| ----------------------------------------------------------- | ------------------------------------------------------ |
| a query with its `query_response_hit_ids`                   | an impression of those that are weft's contents: ranks |
|                                                             | are known, signals and scores are not; without a text, |
|                                                             | what comes of it is kept under no question             |
| an event with an `action_name` that the settings know       | a selection of its object, or a verdict on it          |
| `user_id`, else `client_id`                                 | the principal                                          |
| the `session_id` of the query, else of the event            | the session; a query without one is its own            |

Older spellings are read too: `position.ordinal.index` of 1.0, seconds to nanoseconds since the epoch, and hits as a
search returns them, with the document under `_source`. What cannot be read is reported with a reason and stops nothing:

    not_an_object     no JSON object
    unknown_document  neither a query nor an event of UBI
    no_time           `timestamp` is missing, or is no time
    no_question       `user_query` is neither a text nor null
    no_query          nothing can be joined without a `query_id`
    no_results        the query does not say what was returned
    no_object         the event is about no object
    unknown_object    the id of an object stands for no content, or no id that the query returned does
    unmapped_action   the settings say nothing about this action
    invalid           the event that it makes is none: an id is too long, for one, or is neither text nor integer
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from weft.domain.documents import Domain
from weft.domain.errors import InvalidEventError
from weft.domain.events import AnyEvent, Explicit, Impression, Selection, ShownResult
from weft.domain.ids import ContentHash, question_hash
from weft.domain.ranking import ANONYMOUS
from weft.feedback.events.codec import encode
from weft.feedback.events.json_values import whole
from weft.feedback.settings import MS, UbiSettings

_HASH = re.compile(r"[0-9a-f]{64}")
_MOST_RESULTS = 200


class UbiObject(NamedTuple):
    """What an object of UBI is to weft."""

    content_hash: ContentHash
    domain: Domain


Resolve = Callable[[str], UbiObject | None]
"""Which content an object's id stands for; None where it is none of weft's."""


class RejectedDocument(NamedTuple):
    """A document that became no event, by its place among the documents, from 0."""

    number: int
    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class Mapped:
    """What documents came to; each is in one of the two."""

    events: list[AnyEvent] = field(default_factory=list)
    refused: list[RejectedDocument] = field(default_factory=list)


def content_hashes_only(domain: Domain) -> Resolve:
    """Objects whose ids are content hashes, as weft's own searches return them, all of one domain."""

    def resolve(object_id: str) -> UbiObject | None:
        return UbiObject(ContentHash(object_id), domain) if _HASH.fullmatch(object_id) else None

    return resolve


def from_ubi(documents: Sequence[object], rules: UbiSettings, resolve: Resolve) -> Mapped:
    """The events of documents, in their order.

    An event is of the session that its query is of, where both are among the documents; so they meet, whether or not
    the query says its session. Documents make the same events with the same ids whenever they are read: read again,
    they are recognised as repeats.

    Examples:
        >>> from weft.settings import load_settings
        >>> click = {"action_name": "click", "query_id": "q", "timestamp": "2026-09-21T12:00:00Z", "client_id": "c",
        ...          "event_attributes": {"object": {"object_id": "ab" * 32}, "position": {"ordinal": 3}}}
        >>> rules = load_settings(environment={}).feedback.ubi
        >>> mapped = from_ubi([click, {"q": 1}], rules, content_hashes_only(Domain.CODE))
        >>> [(type(event).__name__, event.principal, event.rank) for event in mapped.events]
        [('Selection', 'c', 3)]
        >>> [(each.number, each.reason) for each in mapped.refused]
        [(1, 'unknown_document')]
    """
    mapped = Mapped()
    unwrapped = [_unwrapped(document) for document in documents]
    mapper = _Mapper(rules, resolve, _sessions(unwrapped))
    for index, document in enumerate(unwrapped):
        try:
            event = mapper.event(document)
            encode(event)
        except InvalidEventError as error:
            mapped.refused.append(RejectedDocument(index, error.reason, str(error).removeprefix(f"{error.reason}: ")))
        else:
            mapped.events.append(event)
    return mapped


def _unwrapped(document: object) -> object:
    """A document as it is kept, with the id of its hit where it came as one."""
    if isinstance(document, dict) and isinstance(source := document.get("_source"), dict):
        return {**source, "_id": document.get("_id")}
    return document


def _is_query(document: Mapping[str, Any]) -> bool:
    return "action_name" not in document and ("user_query" in document or "query_response_hit_ids" in document)


def _sessions(documents: Sequence[object]) -> dict[str, str]:
    """The session of each query; a query without one is its own."""
    queries = [document for document in documents if isinstance(document, dict) and _is_query(document)]
    ids = [(id_of(query.get("query_id")), id_of(query.get("session_id"))) for query in queries]
    return {query_id: session_id or query_id for query_id, session_id in ids if query_id is not None}


class _Mapper:
    """One pass over documents whose queries are known."""

    def __init__(self, rules: UbiSettings, resolve: Resolve, sessions: Mapping[str, str]) -> None:
        self._rules = rules
        self._resolve = resolve
        self._sessions = sessions

    def event(self, document: object) -> AnyEvent:
        if not isinstance(document, dict):
            raise InvalidEventError("not_an_object", f"expected a JSON object, found {type(document).__name__}")
        if "action_name" in document:
            return self._action(document)
        if _is_query(document):
            return self._query(document)
        expected = "expected `action_name`, `user_query` or `query_response_hit_ids`"
        raise InvalidEventError("unknown_document", f"{expected}, found {sorted(document)!r:.64}")

    def _query(self, document: Mapping[str, Any]) -> Impression:
        hits = document.get("query_response_hit_ids")
        if not isinstance(hits, list):
            raise InvalidEventError("no_results", "expected `query_response_hit_ids`, a list")
        asked = question_of_user(document)
        return Impression(
            **self._stamp(document),
            query_hash=None if asked is None else question_hash(asked),
            results=self._results(hits[:_MOST_RESULTS]),
        )

    def _results(self, hits: Sequence[object]) -> list[ShownResult]:
        """Those of the hits that are weft's, at the ranks they had; all of them strange is a mistake."""
        shown_by_hash: dict[ContentHash, ShownResult] = {}
        for rank, hit in enumerate(hits, start=1):
            if (object_id := id_of(hit)) is not None and (content := self._resolve(object_id)):
                shown = ShownResult(content_hash=content.content_hash, rank=rank, domain=content.domain, signals={})
                shown_by_hash.setdefault(content.content_hash, shown)
        if hits and not shown_by_hash:
            raise InvalidEventError("unknown_object", f"expected ids of contents, found {hits[0]!r:.64}")
        return list(shown_by_hash.values())

    def _action(self, document: Mapping[str, Any]) -> Selection | Explicit:
        action = document["action_name"]
        signal = self._rules.verdicts.get(action) if isinstance(action, str) else None
        if signal is None and action not in self._rules.selections:
            expected = sorted([*self._rules.selections, *self._rules.verdicts])
            raise InvalidEventError("unmapped_action", f"expected one of {expected}, found {action!r}")
        attributes = _part(document, "event_attributes")
        about = _part(attributes, "object")
        content = self._content(about)
        stamp = self._stamp(document)
        if signal is not None:
            return Explicit(**stamp, signal=signal, content_hash=content.content_hash)
        return Selection(**stamp, content_hash=content.content_hash, rank=rank_of(_part(attributes, "position")))

    def _content(self, about: Mapping[str, Any]) -> UbiObject:
        object_id = first_id(about, "object_id", "internal_id", reason="no_object")
        if object_id is None:
            raise InvalidEventError("no_object", "expected the id of an object, found none")
        content = self._resolve(object_id)
        if content is None:
            raise InvalidEventError("unknown_object", f"expected the id of a content, found {object_id[:64]!r}")
        return content

    def _stamp(self, document: Mapping[str, Any]) -> dict[str, Any]:
        query_id = first_id(document, "query_id", reason="no_query")
        if query_id is None:
            raise InvalidEventError("no_query", f"expected `query_id`, found {document.get('query_id')!r}")
        session_id = first_id(document, "session_id")
        return {
            "event_id": _event_id(document),
            "ts": milliseconds(document.get("timestamp")),
            "session_id": self._sessions.get(query_id) or session_id or query_id,
            "principal": first_id(document, "user_id", "client_id") or ANONYMOUS,
            "query_id": query_id,
        }


def _event_id(document: Mapping[str, Any]) -> str:
    """The hit's own id, or a digest of what the document says."""
    if own := first_id(document, "_id"):
        return f"ubi-{own}"
    stated = json.dumps(document, sort_keys=True, default=str).encode("utf-8", "replace")
    return f"ubi-{hashlib.blake2b(stated, digest_size=16).hexdigest()}"


def _part(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = document.get(name)
    return part if isinstance(part, dict) else {}


_NUMBER = re.compile(r"[+-]?[0-9]{1,20}(\.[0-9]{1,20})?")
_PER_SECOND = (1, 10**3, 10**6, 10**9)
_FIRST_S, _END_S = 10**8, 10**11  # 1973 to 5138: the span in which no time has two units
_BEYOND = 10**20  # nanoseconds of the year 5138
_EXPECTED_TIME = "expected a time after 1973, in ISO 8601 or in seconds to nanoseconds since the epoch"


def id_of(value: object) -> str | None:
    """An id as text; None where there is none. UBI has texts and integers."""
    value = whole(value)
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    text = str(value)
    return text if text.strip() else None


def first_id(document: Mapping[str, Any], *names: str, reason: str = "invalid") -> str | None:
    """The first of these fields that holds an id; null and the empty text are as if absent."""
    for name in names:
        value = document.get(name)
        if (text := id_of(value)) is not None:
            return text
        if value is not None and not isinstance(value, str):
            raise InvalidEventError(reason, f"expected `{name}`, a text or an integer, found {_shown(value)}")
    return None


def question_of_user(document: Mapping[str, Any]) -> str | None:
    """What was asked; None where the query has no text: null, absent, empty or blanks."""
    asked = document.get("user_query")
    if asked is not None and not isinstance(asked, str):
        raise InvalidEventError("no_question", f"expected `user_query`, a text or null, found {_shown(asked)}")
    return asked if asked and asked.strip() else None


def milliseconds(timestamp: object) -> int:
    """Milliseconds since the epoch of a time."""
    number = _number(timestamp)
    seconds = _iso_seconds(timestamp) if number is None else number
    units = _PER_SECOND if number is not None else (1,)
    for per_second in units:
        if seconds is not None and _FIRST_S <= seconds / per_second < _END_S:
            return round(seconds * MS / per_second)
    raise InvalidEventError("no_time", f"{_EXPECTED_TIME}, found {_shown(timestamp)}")


def rank_of(position: Mapping[str, Any]) -> int:
    """The claimed rank, from 1; 1 where there is none. The updater goes by what the impression says."""
    ordinal = position.get("ordinal")
    number = _number(ordinal.get("index") if isinstance(ordinal, dict) else ordinal)
    return max(int(number), 1) if number is not None else 1


def _number(value: object) -> int | float | None:
    """A number, also as text; None for what is none, or is beyond any time and rank."""
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        value = float(value) if "." in value else int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _BEYOND:
        return None
    return value


def _iso_seconds(text: object) -> float | None:
    try:
        parsed = datetime.fromisoformat(text.strip().upper() if isinstance(text, str) else "")
    except ValueError:
        return None
    return (parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)).timestamp()


def _shown(value: object) -> str:
    return f"{value!r:.64}"
