"""Clients over `httpx`: one that waits, and one for an event loop. Both send the same calls, and try again alike."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Self, TypeVar

import httpx

from weft.client import calls
from weft.client.calls import Call, Event, RerankedText, UnpackedAnswers
from weft.domain import errors
from weft.domain.errors import InvalidEventError, InvalidLessonError, ServiceError, ServiceUnreachableError, WeftError
from weft.domain.ranking import Answer, Query

TIMEOUT_S = 30.0
"""For one attempt: longer than a service takes until it says that it cannot answer in time."""

CONNECT_S = 3.0
RETRIES = 3
"""Attempts after the first one."""

LONGEST_WAIT_S = 5.0
"""Between attempts; who is told to wait longer raises instead."""

_FIRST_WAIT_S = 0.1
_BUSY = {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE}  # nothing was done: all may be sent again
_UNSENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)  # likewise

T = TypeVar("T")


class _Attempts:
    """Of one call: whether to try again after what came of the last attempt, and how long to wait before."""

    def __init__(self, call: Call[Any], retries: int, chance: Callable[[], float] = random.random) -> None:
        self._call = call
        self._left = retries
        self._wait_s = _FIRST_WAIT_S
        self._chance = chance

    def after_response(self, response: httpx.Response) -> float | None:
        """Seconds to wait; None where the response stands."""
        if response.status_code not in _BUSY:
            return None
        return self._again(_seconds(response.headers.get("retry-after")))

    def after_error(self, error: httpx.TransportError) -> float | None:
        """Seconds to wait; None where it is not tried again."""
        safe = self._call.repeatable or isinstance(error, _UNSENT)
        return self._again(None) if safe else None

    def _again(self, retry_after_s: float | None) -> float | None:
        # Half of the wait is drawn: clients that were refused together do not come again together.
        wait_s = self._wait_s * (0.5 + self._chance() / 2.0) if retry_after_s is None else retry_after_s
        if self._left == 0 or wait_s > LONGEST_WAIT_S:
            return None
        self._left -= 1
        self._wait_s *= 2.0
        return wait_s


def _seconds(header: str | None) -> float | None:
    try:
        return max(0.0, float(header or ""))
    except ValueError:
        return None


def _read(call: Call[T], response: httpx.Response) -> T:
    if response.is_success:
        return call.read(response)
    raise _error_of(response)


def _error_of(response: httpx.Response) -> WeftError:
    """What a service says went wrong, as the error that it was there."""
    status = response.status_code
    try:
        problem = response.json()
        detail, name = str(problem["detail"]), str(problem.get("kind"))
    except (ValueError, KeyError, TypeError, AttributeError):
        detail, name = f"expected a service of weft, found status {status}: {response.text[:80]!r}", ""
    kind = getattr(errors, name, None)
    if kind is InvalidEventError:
        reason, _, rest = detail.partition(": ")
        return InvalidEventError(reason, rest)
    if kind is InvalidLessonError:
        return InvalidLessonError([detail])
    if isinstance(kind, type) and issubclass(kind, WeftError):
        return kind(detail)
    busy = status in {*_BUSY, HTTPStatus.BAD_GATEWAY, HTTPStatus.GATEWAY_TIMEOUT}
    return (ServiceUnreachableError if busy else ServiceError)(detail)


def _unreached(url: httpx.URL, error: httpx.TransportError) -> ServiceUnreachableError:
    reason = str(error) or type(error).__name__
    return ServiceUnreachableError(f"expected a service at {url}, found {reason}: `weft serve` starts one")


def _options(url: str, token: str | None, timeout_s: float) -> dict[str, Any]:
    headers = {"User-Agent": "weft"} | ({} if token is None else {"Authorization": f"Bearer {token}"})
    return {
        "base_url": url,
        "headers": headers,
        "timeout": httpx.Timeout(timeout_s, connect=CONNECT_S),
        "verify": not url.startswith(
            "http://"
        ),  # of what is not encrypted there is nothing to verify, and .03 s to save
        "trust_env": False,  # a proxy, or a password in ~/.netrc, is not meant for it
    }


def _request(http: httpx.Client | httpx.AsyncClient, call: Call[Any]) -> httpx.Request:
    return http.build_request(
        call.method, call.path, json=call.json, params=call.params or None, headers={"Accept": call.accept}
    )


class Client:
    """Asks a running service; threads may share one.

    A service that is busy is asked again after the time that it names, and one that cannot be reached after a moment,
    three times; what might then be done twice is not sent again. Every method raises `ServiceUnreachableError` where no
    answer can be had now, `ServiceError` where the service refuses, and the errors that a store or an event raises here
    as well.

    Examples:
        >>> with Client("http://127.0.0.1:8080") as client:  # doctest: +SKIP
        ...     answer = client.search(Query(text="how is a lock released"))
        ...     client.tell(answer.token, 1.0, content_hash=answer.results[0].content_hash)
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        timeout_s: float = TIMEOUT_S,
        retries: int = RETRIES,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """Make a client; it connects when it is first asked.

        Args:
            url: Of the service, such as "http://127.0.0.1:8080".
            token: One of the service's, with the scopes that are needed.
            timeout_s: Seconds for one attempt.
            retries: Attempts after the first one.
            transport: How requests travel, where that is not over the network.
        """
        self._http = httpx.Client(transport=transport, **_options(url, token, timeout_s))
        self._retries = retries
        self._stated = (url, token, timeout_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the connections."""
        self._http.close()

    def asynchronous(self) -> AsyncClient:
        """The same client for an event loop."""
        url, token, timeout_s = self._stated
        return AsyncClient(url, token, timeout_s=timeout_s, retries=self._retries)

    def send(self, call: Call[T], *, retries: int | None = None) -> T:
        """What comes of a call of `weft.client.calls`."""
        attempts = _Attempts(call, self._retries if retries is None else retries)
        while True:
            try:
                response = self._http.send(_request(self._http, call))
            except httpx.TransportError as error:
                if (wait_s := attempts.after_error(error)) is None:
                    raise _unreached(self._http.base_url, error) from error
            else:
                if (wait_s := attempts.after_response(response)) is None:
                    return _read(call, response)
            time.sleep(wait_s)

    def search(self, query: Query) -> Answer:
        """The answer to a query, as a searcher gives it; the service keeps its log, and tells what was shown.

        What a session remembers stays with the service: `Query.memory` is not sent.
        """
        return self.search_many([query])[0]

    async def asearch(self, query: Query) -> Answer:
        """The same in a thread, while the event loop goes on; `AsyncClient` needs none."""
        return await asyncio.to_thread(self.search, query)

    def search_many(self, queries: Sequence[Query]) -> list[Answer]:
        """The answers to at most 100 queries, all from one snapshot."""
        return list(self.answers(queries).answers)

    def answers(self, queries: Sequence[Query], *, record: bool = True) -> UnpackedAnswers:
        """The same, with what the service says of them: `depth`, the results that each channel finds at most.

        Args:
            queries: At most 100. An adaptive one for 1,000 results leaves it to the service how many that may be.
            record: Whether the query log and the topic are told.
        """
        return self.send(calls.answers(queries, record=record))

    def tell(
        self, token: Answer | str, signal: float = 1.0, *, content_hash: str | None = None, asked: bool = False
    ) -> str:
        """Say what an answer, or one of its results, is worth; the id of the event.

        Args:
            token: `Answer.token`, or the answer.
            signal: From -1, wrong, to 1, right.
            content_hash: Of the result that is meant; None means the answer as a whole.
            asked: Whether the answer asked for it (`Result.asked`).
        """
        return self.feedback([calls.verdict(calls.token_of(token), signal, content_hash, asked=asked)])[0]

    def select(self, token: Answer | str, content_hash: str) -> str:
        """Say that a result was opened or chosen; the id of the event."""
        return self.feedback([calls.selection(calls.token_of(token), content_hash)])[0]

    def correct(self, about: Answer | Query, uri: str, *, right: bool = True) -> str:
        """Say that a place is right for what was asked, or wrong, shown or not; the id of the event."""
        return self.feedback([calls.correction(about, uri, right=right)])[0]

    def feedback(self, events: Sequence[Event]) -> list[str]:
        """Send events, all of them or none; their ids."""
        return self.send(calls.feedback(events))

    def explain(self, query_id: str) -> dict[str, Any]:
        """What every score of an answer was made of: what `weft search --json` prints."""
        return self.send(calls.explanation(query_id))

    def rerank(self, query: str, documents: Sequence[str], *, top_n: int | None = None) -> list[RerankedText]:
        """Texts by how well they answer a query, best first."""
        return self.send(calls.reranked(query, documents, top_n))

    def place(self, name: str) -> str:
        """The URI of a place that somebody names, such as "README.md#Start"; `StoreError` where there is none."""
        return self.send(calls.place(name))

    def content(self, content_hash: str) -> dict[str, Any]:
        """A content by its hash: its text, and where it stands; `StoreError` where there is none."""
        return self.send(calls.content(content_hash))

    def lessons(
        self, *, status: str | None = None, section: str | None = None, limit: int = 100
    ) -> list[dict[str, Any]]:
        """Lessons that have a text, the surest first, as `weft lessons list --json` prints them."""
        return self.send(calls.lessons({"status": status, "section": section, "limit": limit}))[0]

    def lesson(self, lesson_id: str) -> dict[str, Any]:
        """A lesson, what is believed of it and why, and its history; the first digits of its id are enough."""
        return self.send(calls.lesson(lesson_id))

    def lesson_prompt(self, *, tool: str = "", context: str = "", files: Sequence[str] = (), **more: Any) -> str:
        """What an agent is told before it uses a tool; empty where nothing fits.

        Args:
            tool: That is about to be used.
            context: What is done, and why.
            files: That it touches.
            more: `budget`, in tokens; `record`, to tell the topic; `principal` and `session_id`, for whom.
        """
        stated = {"tool": tool, "context": context, "files": list(files), **more}
        return str(self.send(calls.lesson_prompt(stated))["text"])

    def lesson_operations(self, operations: Sequence[Mapping[str, Any]], **more: Any) -> dict[str, Any]:
        """Add, revise, judge, merge or retire lessons: what was accepted, and what is wrong with the rest.

        Args:
            operations: Each with a `kind` and what it needs, as `weft lessons apply` takes them.
            more: `principal` and `session_id`, by whom and where it is said; `dry_run`, to send nothing.
        """
        return self.send(calls.lesson_operations(operations, more))

    def ready(self) -> dict[str, Any]:
        """Whether it answers, from which `generation`, and whether it takes `feedback`; it is asked once."""
        return self.send(calls.readiness(), retries=0)

    def status(self) -> dict[str, Any]:
        """What is live, its age, lag, last night, alarms, disk: what `weft status --json` prints."""
        return self.send(calls.status())


class AsyncClient:
    """The same for an event loop: what `Client` does, awaited."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        timeout_s: float = TIMEOUT_S,
        retries: int = RETRIES,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """Make a client, as `Client` is made."""
        self._http = httpx.AsyncClient(transport=transport, **_options(url, token, timeout_s))
        self._retries = retries

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Release the connections."""
        await self._http.aclose()

    async def send(self, call: Call[T], *, token: str | None = None) -> T:
        """What comes of a call of `weft.client.calls`; with a token, in the name of whoever holds it."""
        attempts = _Attempts(call, self._retries)
        while True:
            request = _request(self._http, call)
            if token is not None:
                request.headers["Authorization"] = f"Bearer {token}"
            try:
                response = await self._http.send(request)
            except httpx.TransportError as error:
                if (wait_s := attempts.after_error(error)) is None:
                    raise _unreached(self._http.base_url, error) from error
            else:
                if (wait_s := attempts.after_response(response)) is None:
                    return _read(call, response)
            await asyncio.sleep(wait_s)

    async def search(self, query: Query) -> Answer:
        """As `Client.search`."""
        return (await self.search_many([query]))[0]

    async def asearch(self, query: Query) -> Answer:
        """As `search`: a searcher's name for it."""
        return await self.search(query)

    async def search_many(self, queries: Sequence[Query]) -> list[Answer]:
        """As `Client.search_many`."""
        return list((await self.answers(queries)).answers)

    async def answers(self, queries: Sequence[Query], *, record: bool = True) -> UnpackedAnswers:
        """As `Client.answers`."""
        return await self.send(calls.answers(queries, record=record))

    async def tell(
        self, token: Answer | str, signal: float = 1.0, *, content_hash: str | None = None, asked: bool = False
    ) -> str:
        """As `Client.tell`."""
        return (await self.feedback([calls.verdict(calls.token_of(token), signal, content_hash, asked=asked)]))[0]

    async def select(self, token: Answer | str, content_hash: str) -> str:
        """As `Client.select`."""
        return (await self.feedback([calls.selection(calls.token_of(token), content_hash)]))[0]

    async def correct(self, about: Answer | Query, uri: str, *, right: bool = True) -> str:
        """As `Client.correct`."""
        return (await self.feedback([calls.correction(about, uri, right=right)]))[0]

    async def feedback(self, events: Sequence[Event]) -> list[str]:
        """As `Client.feedback`."""
        return await self.send(calls.feedback(events))

    async def explain(self, query_id: str) -> dict[str, Any]:
        """As `Client.explain`."""
        return await self.send(calls.explanation(query_id))

    async def rerank(self, query: str, documents: Sequence[str], *, top_n: int | None = None) -> list[RerankedText]:
        """As `Client.rerank`."""
        return await self.send(calls.reranked(query, documents, top_n))

    async def place(self, name: str) -> str:
        """As `Client.place`."""
        return await self.send(calls.place(name))

    async def content(self, content_hash: str) -> dict[str, Any]:
        """As `Client.content`."""
        return await self.send(calls.content(content_hash))

    async def lessons(
        self, *, status: str | None = None, section: str | None = None, limit: int = 100
    ) -> list[dict[str, Any]]:
        """As `Client.lessons`."""
        return (await self.send(calls.lessons({"status": status, "section": section, "limit": limit})))[0]

    async def lesson(self, lesson_id: str) -> dict[str, Any]:
        """As `Client.lesson`."""
        return await self.send(calls.lesson(lesson_id))

    async def lesson_prompt(self, *, tool: str = "", context: str = "", files: Sequence[str] = (), **more: Any) -> str:
        """As `Client.lesson_prompt`."""
        stated = {"tool": tool, "context": context, "files": list(files), **more}
        return str((await self.send(calls.lesson_prompt(stated)))["text"])

    async def lesson_operations(self, operations: Sequence[Mapping[str, Any]], **more: Any) -> dict[str, Any]:
        """As `Client.lesson_operations`."""
        return await self.send(calls.lesson_operations(operations, more))

    async def status(self) -> dict[str, Any]:
        """As `Client.status`."""
        return await self.send(calls.status())
