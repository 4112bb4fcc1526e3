"""The gate: whoever asks is known, asks no more than it may, and sends no more than is read (OPS-5, OPS-11).

It stands before routes read anything: a request without a token costs a look at its headers.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Send
from starlette.types import Scope as Connection

from weft.runtime.traces import request_span
from weft.service.metrics import Metrics
from weft.service.problems import problem
from weft.service.sessions import BrowserSessions
from weft.service.tokens import ANYBODY, Caller, TokenScope, TokenSet

log = logging.getLogger("weft.service.requests")

BODY_BYTES = 1_048_576
"""Of a request: a batch of queries, or of documents to rerank."""

BODY_S = 10.0
"""Within which a whole body has come; who sends slower is refused."""

PUBLIC = frozenset({"/", "/healthz", "/readyz", "/login", "/logout"})
ASSETS = ("/_nicegui/", "/console/")
"""Paths that need no token: they say nothing of what is stored, `/` to whoever has none. What begins with the latter
is read alone; `/_nicegui_ws/`, by which pages talk, is none of them.
"""

ADMIN_METHODS = frozenset({"DELETE", "PATCH", "PUT"})
COOKIE = "weft_session"
_LOCAL = {"localhost", "127.0.0.1", "::1"}
_OUR_OWN = "/v1/answers/"  # ids in paths: one route each in metrics


def scope_needed(method: str, path: str) -> TokenScope | None:
    """What a token must be good for; None where none is needed."""
    reads = method in {"GET", "HEAD"}
    if path in PUBLIC or (reads and path.startswith(ASSETS)):
        return None
    if method in ADMIN_METHODS or path.startswith("/v1/principals"):
        return TokenScope.ADMIN
    if method == "POST" and path.startswith(("/v1/generations", "/v1/learned")):
        return TokenScope.ADMIN
    if method == "POST" and path.startswith(("/v1/feedback", "/v1/lessons")) and path != "/v1/lessons/prompt":
        return TokenScope.FEEDBACK
    return TokenScope.SEARCH


class Buckets:
    """How many requests each caller may still make: a bucket that fills by `per_s`, and holds a second's worth."""

    MOST = 10_000

    def __init__(self, per_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_s = per_s
        self._clock = clock
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, caller: str) -> bool:
        """Whether one more may be made now; it then counts."""
        now = self._clock()
        left, at = self._left.get(caller, (max(self._per_s, 1.0), now))
        left = min(max(self._per_s, 1.0), left + (now - at) * self._per_s)
        if len(self._left) >= self.MOST:
            self._left.clear()
        self._left[caller] = (left - 1.0 if left >= 1.0 else left, now)
        return left >= 1.0


class RequestGate:
    """An ASGI application before another one."""

    def __init__(
        self,
        application: ASGIApp,
        *,
        tokens: TokenSet,
        metrics: Metrics,
        per_s: float,
        sessions: BrowserSessions,
    ) -> None:
        self._application = application
        self._tokens = tokens
        self._metrics = metrics
        self._buckets = Buckets(per_s)
        self._sessions = sessions

    async def __call__(self, scope: Connection, receive: Receive, send: Send) -> None:
        """Serve a request, or refuse it."""
        if scope["type"] not in {"http", "websocket"}:
            await self._application(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if scope["type"] == "websocket":
            if refusal is not None:
                await receive()
                await send({"type": "websocket.close", "code": 1008, "reason": "not allowed"})
                return
            await self._application(scope, receive, send)
            return
        await self._timed(scope, receive, send, refusal)

    async def _timed(self, scope: Connection, receive: Receive, send: Send, refusal: Response | None) -> None:
        began, status = time.perf_counter(), 500
        self._metrics.in_flight.inc()

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                assets = scope["path"].startswith(ASSETS)  # of one version, by their address
                message["headers"] = [*message.get("headers", ()), *_SAFE, *(() if assets else _UNKEPT)]
            await send(message)

        try:
            with request_span(lambda: f"{scope['method']} {route_of(scope)}", Headers(scope=scope)):
                if refusal is not None:
                    await refusal(scope, receive, sent)
                else:
                    await self._served(scope, receive, sent)
        finally:
            self._metrics.in_flight.dec()
            took, route = time.perf_counter() - began, route_of(scope)
            self._metrics.requests.labels(
                route, scope["method"] if scope["method"] in _METHODS else "other", status
            ).inc()
            self._metrics.seconds.labels(route).observe(took)
            if log.isEnabledFor(logging.INFO):
                caller = scope.get("state", {}).get("caller") or _NOBODY
                facts = {"method": scope["method"], "route": route, "status": status, "ms": round(took * 1000.0, 1)}
                log.info("request", extra={"facts": {**facts, "caller": caller.name}})

    async def _served(self, scope: Connection, receive: Receive, send: Send) -> None:
        """Read the body, no more of it than is allowed, then have the application answer."""
        body = bytearray()
        more = scope["method"] not in {"GET", "HEAD"}
        try:
            async with asyncio.timeout(BODY_S):
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return
                    body += message.get("body", b"")
                    more = message.get("more_body", False)
                    if len(body) > BODY_BYTES:
                        await self._refused("body", HTTPStatus.REQUEST_ENTITY_TOO_LARGE, _TOO_LARGE)(
                            scope, receive, send
                        )
                        return
        except TimeoutError:
            slow = f"expected a body within {BODY_S:g} s, found {len(body):,} bytes of it"
            await self._refused("slow", HTTPStatus.REQUEST_TIMEOUT, slow)(scope, receive, send)
            return
        delivered = False

        async def again() -> Message:
            nonlocal delivered
            if delivered or scope["method"] in {"GET", "HEAD"}:
                return await receive()
            delivered = True
            return {"type": "http.request", "body": bytes(body), "more_body": False}

        await self._application(scope, again, send)

    def _refusal(self, scope: Connection) -> Response | None:
        """Why a request is not served, by its headers alone."""
        headers = Headers(scope=scope)
        method, path = scope.get("method", "GET"), scope["path"]
        host = headers.get("host", "")
        if not self._tokens and _name_of(host) not in _LOCAL:
            # A page of another site that has its name resolve to this machine would else read what is stored.
            return self._refused(
                "host", HTTPStatus.FORBIDDEN, f"expected a name of this machine as host, found {host[:100]!r}"
            )
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != host:
            return self._refused("origin", HTTPStatus.FORBIDDEN, "expected a request of this service's own pages")
        caller = self._caller(headers)
        if (needed := scope_needed(method, path)) is not None and (refused := self._unallowed(caller, needed)):
            if caller is None and method == "GET" and "text/html" in headers.get("accept", ""):
                return RedirectResponse("/", HTTPStatus.SEE_OTHER)  # a browser: it is asked for a token there
            return refused
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) > BODY_BYTES:
            return self._refused("body", HTTPStatus.REQUEST_ENTITY_TOO_LARGE, _TOO_LARGE)
        scope.setdefault("state", {})["caller"] = caller
        return None

    def _unallowed(self, caller: Caller | None, needed: TokenScope) -> Response | None:
        """Why a caller may not do what needs a scope, or not so often."""
        if caller is None:
            return self._refused(
                "token",
                HTTPStatus.UNAUTHORIZED,
                f"expected a token with scope {needed}, found none that is known: send Authorization: Bearer TOKEN",
                headers={"WWW-Authenticate": "Bearer"},
            )
        if needed not in caller.scopes:
            has = "+".join(sorted(caller.scopes))
            return self._refused("scope", HTTPStatus.FORBIDDEN, f"expected a token with scope {needed}, found {has}")
        if not self._buckets.take(caller.name):
            return self._refused(
                "rate", HTTPStatus.TOO_MANY_REQUESTS, "expected fewer requests a second by this token, found more"
            )
        return None

    def _caller(self, headers: Headers) -> Caller | None:
        if not self._tokens:
            return ANYBODY
        if (stated := headers.get("authorization")) is not None:
            return self._tokens.bearer(stated)
        return self._sessions.get(cookie_of(headers))

    def _refused(self, reason: str, status: HTTPStatus, detail: str, headers: dict[str, str] | None = None) -> Response:
        self._metrics.refused.labels(reason).inc()
        return problem(status, detail, headers=headers)


def cookie_of(headers: Headers) -> str:
    """What a browser holds of its session; empty where it has none."""
    cookies = (each.strip().partition("=") for each in headers.get("cookie", "").split(";"))
    return next((value for name, _, value in cookies if name == COOKIE), "")


def route_of(scope: Connection) -> str:
    """The route of a request for metrics: paths that hold ids are one."""
    if (route := scope.get("route")) is not None and getattr(route, "path", None):
        return str(route.path)
    path = scope["path"]
    return path if path in {"/", "/mcp", "/metrics", "/login"} else "other"


_NOBODY = Caller("nobody", frozenset())
_TOO_LARGE = f"expected a body of at most {BODY_BYTES:,} bytes, found a larger one: send it in parts"
_METHODS = {"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"}
_SAFE = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
]
_UNKEPT = [(b"cache-control", b"no-store")]
"""Headers of every answer: what is stored stays where it was asked for."""


def _name_of(host: str) -> str:
    """The name in a `Host` header, without the port."""
    return (urlsplit(f"//{host}").hostname or "") if "/" not in host and "@" not in host else ""


def current(state: Any) -> Caller:
    """Who sent the request that is being served."""
    caller: Caller = getattr(state, "caller", None) or ANYBODY
    return caller
