"""What all pages share: the frame, who looks at it, and elements whose text is never HTML (OPS-6, OPS-11)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from fastapi import Request
from jinja2 import Environment
from nicegui import ui
from nicegui.element import Element
from nicegui.elements.mixins.text_element import TextElement

from weft.domain.errors import WeftError
from weft.runtime.process import speaker_of
from weft.service.gate import cookie_of
from weft.service.problems import RefusedError
from weft.service.state import WITHOUT_BROKER, Service
from weft.service.tokens import ANYBODY, Caller, TokenScope

FAVICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32" fill="none" stroke-width="5" stroke-linecap="round">'
    '<path d="M4 10h24M4 22h24" stroke="#8296ad"/><path d="M10 4v24M22 4v24" stroke="#d9730d"/></svg>'
)

PLACES = {
    "/": "Search",
    "/learned": "Learned",
    "/lessons": "Lessons",
    "/sources": "Health",
    "/generations": "Generations",
}
"""Pages that the header leads to, by their paths."""

PATIENCE_S = 30.0
"""That a page may take to be made: a large store is read."""

_FRAME = Environment(autoescape=True, trim_blocks=True).from_string(
    files(__package__).joinpath("frame.html").read_text(encoding="utf-8")
)
_HEAD = (
    '<link rel="stylesheet" href="/console/style.css"><script src="/console/console.js"></script>'
    '<meta name="description" content="Retrieval that learns: see why, say what was good, watch it move.">'
)


@dataclass(frozen=True, slots=True)
class Visit:
    """Somebody at a page: the service, and what they may do."""

    service: Service
    cookie: str
    bearer: Caller | None  # who came without a cookie: with a token in a header, or to a service without tokens

    def may(self, scope: TokenScope) -> bool:
        """Whether they may do what needs a scope, now: a session may have ended since the page was made."""
        caller = self.bearer or self.service.sessions.get(self.cookie)
        return caller is not None and scope in caller.scopes

    @property
    def principal(self) -> str:
        """Whose word is given: whoever holds the token, or without tokens whoever runs the service."""
        caller = self.bearer or self.service.sessions.get(self.cookie) or ANYBODY
        return speaker_of(None) if caller is ANYBODY else f"token-{caller.name}"

    def why_silent(self, needed: TokenScope = TokenScope.FEEDBACK) -> str:
        """Why nothing can be said here, and what helps; empty where it can."""
        if not self.may(TokenScope.SEARCH):
            return "Your session has ended: open the page anew to log in."
        if not self.may(needed):
            return f"Your token does not allow this: it needs the scope {needed}. Log out, and in with one that has it."
        if needed is TokenScope.FEEDBACK and self.service.events is None:
            return f"Nobody would hear a verdict: no broker is named. To enable this, {WITHOUT_BROKER}."
        return ""


def visit(request: Request, title: str) -> Visit:
    """Begin a page: its frame, and whoever asked for it."""
    service: Service = request.state.service
    caller: Caller | None = request.state.caller
    cookie = cookie_of(request.headers)
    with_cookie = bool(service.tokens) and service.sessions.get(cookie) is not None
    ui.page_title(f"weft · {title}")
    ui.add_head_html(_HEAD)
    path = request.url.path
    asked = request.query_params.get("q", "") if path == "/" else ""
    ui.add_body_html(_FRAME.render(places=PLACES, here=path, asked=asked, mark=FAVICON, leaves=with_cookie))
    return Visit(service, cookie, None if with_cookie else caller)


def el(tag: str, text: str | None = None, classes: str = "", **attributes: Any) -> Element:
    """An element of HTML or SVG. Its text and its attributes are values: nothing in them is ever markup."""
    made = Element(tag) if text is None else TextElement(tag=tag, text=text)
    if classes:
        made.classes(classes)
    for name, value in attributes.items():
        made.props[name.rstrip("_").replace("_", "-")] = value
    return made


def button(text: str, do: Callable[[], Any], classes: str = "", *, why_not: str = "", **attributes: Any) -> Element:
    """A button, disabled where there is a reason why it does nothing."""
    made = el("button", text, classes, type="button", **attributes)
    if why_not:
        made.props["disabled"] = True
        made.props["title"] = why_not
    else:
        made.on("click", lambda _: do(), args=[])
    return made


def confirmed(name: str, asks: str, do: Callable[[], Any], *, what: str, why_not: str = "") -> None:
    """A button that asks before it does something; the browser's own popover, which Escape closes."""
    if why_not:
        button(what, do, "quiet", why_not=why_not)
        return
    el("button", what, "quiet", type="button", popovertarget=name)
    with el("div", None, "dialog", id=name, popover="auto", role="alertdialog", aria_labelledby=f"{name}-asks"):
        el("p", asks, id=f"{name}-asks")
        with el("div", None, "actions"):
            button(what, do, "primary", popovertarget=name)
            el("button", "Cancel", type="button", popovertarget=name)


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: frozenset[int] = frozenset()) -> None:
    """A table of texts that scrolls by itself where it is wider than the screen."""
    with scrolling(", ".join(headings)), el("table"):
        with el("thead"), el("tr"):
            for at, heading in enumerate(headings):
                el("th", heading, "number" if at in numbers else "", scope="col")
        with el("tbody"):
            for row in rows:
                with el("tr"):
                    for at, cell in enumerate(row):
                        el("td", cell, "number" if at in numbers else "")


def scrolling(label: str) -> Element:
    """A box that scrolls by itself, by keys too."""
    return el("div", None, "scroll", tabindex="0", role="group", aria_label=label)


def show_error(place: Element, error: Exception) -> None:
    """Say what went wrong, in a box of the page."""
    place.clear()
    with place:
        el("p", " ".join(str(error).split()), "problem", role="alert")


ERRORS = (WeftError, RefusedError, ValueError, OSError)
"""What a page tells instead of failing."""
