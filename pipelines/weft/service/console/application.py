"""Mounts the console on a service's application: its pages, its files, and the way in (OPS-6, OPS-11).

Pages are of native HTML elements that NiceGUI's own script draws from values. No text of the store is ever HTML, and no
page needs `eval`: the policy that goes with each allows the scripts of this host alone, and inline ones by nonce.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path
from urllib.parse import parse_qs

from fastapi import FastAPI, Request
from jinja2 import DictLoader
from nicegui import app as nicegui_app
from nicegui import client as nicegui_client
from nicegui import ui
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Match, Mount
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Send
from starlette.types import Scope as Connection

from weft.runtime.pages import rendered
from weft.service.console.layout import FAVICON
from weft.service.console.pages import contents, generations, learned, lessons, search, sources
from weft.service.gate import COOKIE, cookie_of
from weft.service.sessions import AGE_S
from weft.service.state import Service, service_of

PAGES = (contents, generations, learned, lessons, search, sources)
"""Modules that registered a page each when they were imported."""

_OURS = re.compile(r"/|/(learned|generations|lessons|sources)|/contents/[^/]+|/_nicegui(_ws)?/.*")
_POLICY = (
    "default-src 'self'; script-src 'self' 'nonce-{nonce}'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)


def mount(application: FastAPI) -> None:
    """Serve the console of an application's service."""
    application.add_api_route("/login", _log_in, methods=["POST"], include_in_schema=False)
    application.add_api_route("/logout", _log_out, methods=["POST"], include_in_schema=False)
    application.mount("/console", StaticFiles(directory=Path(str(files(__package__) / "assets"))))
    application.router.routes.append(_Pages("/", app=_Served(application)))


@asynccontextmanager
async def running() -> AsyncIterator[None]:
    """Whatever pages need while an application runs."""
    async with nicegui_app.router.lifespan_context(nicegui_app):
        yield


class _Pages(Mount):
    """The console's own paths alone: what else is asked for is told as everywhere in the service."""

    def matches(self, scope: Connection) -> tuple[Match, Connection]:
        return super().matches(scope) if _OURS.fullmatch(scope["path"]) else (Match.NONE, {})


class _Served:
    """NiceGUI's application, told which service it is for, under a policy of content."""

    def __init__(self, application: FastAPI) -> None:
        self._application = application

    async def __call__(self, scope: Connection, receive: Receive, send: Send) -> None:
        inner: ASGIApp = nicegui_app
        if scope["type"] == "http":
            state, nonce = scope.setdefault("state", {}), secrets.token_urlsafe(16)
            state |= {"service": self._application.state.service, "nonce": nonce}
            policy = (b"content-security-policy", _POLICY.format(nonce=nonce).encode())

            async def under_policy(message: Message) -> None:
                if message["type"] == "http.response.start":
                    message["headers"] = [*message.get("headers", ()), policy]
                await send(message)

            if scope["path"] == "/" and state.get("caller") is None:
                inner = HTMLResponse(rendered(__package__, "login.html", refused=b"refused" in scope["query_string"]))
            await inner(scope, receive, under_policy)
        else:
            await inner(scope, receive, send)


async def _log_in(request: Request) -> Response:
    """Take a token once; the browser then holds a cookie in its place."""
    service: Service = service_of(request)
    stated = parse_qs((await request.body()).decode("utf-8", "replace"))
    caller = service.tokens.of("".join(stated.get("token", [])).strip())
    if caller is None:
        service.metrics.refused.labels("token").inc()
        return RedirectResponse("/?refused", 303)
    answer = RedirectResponse("/", 303)
    secure = request.url.scheme == "https"
    cookie = service.sessions.begin(caller)
    answer.set_cookie(COOKIE, cookie, max_age=AGE_S, httponly=True, samesite="strict", secure=secure)
    return answer


async def _log_out(request: Request) -> Response:
    """End the browser's session."""
    service_of(request).sessions.end(cookie_of(request.headers))
    answer = RedirectResponse("/", 303)
    answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return answer


def _with_nonces() -> None:
    """Have the scripts of NiceGUI's page carry the nonce: those of its template, never what is put into it."""
    environment = nicegui_client.templates.env
    assert environment.loader is not None
    source, _, _ = environment.loader.get_source(environment, "index.html")
    marked = source.replace("<script", '<script nonce="{{ request.state.nonce }}"')
    environment.loader = DictLoader({"index.html": marked})


_with_nonces()
# NiceGUI has one application in a process: it is set up once, on an application that nobody asks, and mounted by us.
ui.run_with(
    FastAPI(),
    title="weft",
    favicon=FAVICON,
    language="en-US",
    tailwind=False,
    binding_refresh_interval=None,
    message_history_length=100,
    gzip_middleware_factory=None,
    show_welcome_message=False,
)
