"""Lessons: what agents are told, and those that a person could decide on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

from fastapi import Request
from nicegui import ui
from nicegui.element import Element

from weft.app.lessons.view import lesson_document, live_lessons, to_review, with_texts
from weft.domain.lesson import lesson_session
from weft.learning.lessons.beliefs import LessonBeliefs
from weft.service.console.layout import ERRORS, PATIENCE_S, Visit, button, el, show_error, visit
from weft.service.routes.feedback import taken
from weft.service.state import Service

MOST = 50
"""Lessons that are shown at a time."""

_EFFECT_S, _LOOK_S = 5.0, 0.25
_SAYS = {
    "Validate": {"type": "lesson_outcome", "outcome": "confirmation", "origin": "person"},
    "Contradict": {"type": "lesson_outcome", "outcome": "contradiction", "origin": "person"},
    "Retire": {"type": "lesson", "op": "retire"},
}
"""What each button says of a lesson: the events of `weft lessons validate`, `contradict` and `retire`."""

Rows = Sequence[dict[str, Any]]


@ui.page("/lessons", response_timeout=PATIENCE_S)
async def page(request: Request, words: str = "") -> None:
    """Those to review first; then the others, or all that have some words."""
    at = visit(request, "lessons")
    box = el("div")
    with box:
        await _fill(at, box, words.strip())


async def _fill(at: Visit, box: Element, words: str, message: str = "") -> None:
    try:
        open_, every = await asyncio.to_thread(_read, at.service, words)
    except ERRORS as error:
        show_error(box, error)
        return
    box.clear()
    with box:
        el("h1", "Lessons")
        el("p", "What agents are told before they use a tool, and how sure each is.", "soft")
        with el("div", None, "status", role="status", aria_live="polite"):
            if text := message or (at.why_silent() if open_ or every else ""):
                el("p", text, "said")
        el("h2", "To review")
        if not open_:
            el("p", "No lesson waits for a person.", "soft")
        _listed(at, box, open_, words)
        el("h2", "The others" if not words else "Found")
        with el("form", None, "find", action="/lessons", method="get"):
            el("label", "With the words", for_="words")
            el("input", id="words", name="words", value=words, maxlength="200")
            el("button", "Find", type="submit")
        if not every:
            el("p", "None." if words or open_ else "None yet: `weft lessons add` says one.", "soft")
        _listed(at, box, every, words)


def _read(service: Service, words: str) -> tuple[Rows, Rows]:
    beliefs: LessonBeliefs = live_lessons(service.catalog, service.settings)
    wanted = words.casefold().split()
    rows = [row for row in with_texts(beliefs) if all(word in row[1].content.casefold() for word in wanted)]
    rows.sort(key=lambda row: (-row[0].p_good, row[0].id))
    open_ = to_review(beliefs)
    rest = rows if words else [row for row in rows if row not in open_]
    first, second = ([lesson_document(*row) for row in some[:MOST]] for some in (open_, rest))
    return first, second


def _listed(at: Visit, box: Element, rows: Rows, words: str) -> None:
    silent = at.why_silent()
    with el("ul", None, "rows"):
        for one in rows:
            with el("li"):
                with el("div", None, "names"):
                    el("strong", one["content"])
                    low, high = one["interval"]
                    sure = f"P(good) {one['p_good']:.2f} ({low:.2f} to {high:.2f})"
                    el("span", f"{one['status'].replace('_', ' ')}: {one['reason']} · {sure}", "soft")
                    came = ", ".join(f"{count} {result}" for result, count in one["outcomes"].items() if count)
                    el("span", f"{one['section']} · said {one['said']}× · {came or 'nothing came of it'}", "soft")
                with el("div", None, "actions"):
                    for text in _SAYS:
                        do = partial(_say, at, box, one["id"], text, words)
                        label = f"{text}: {one['content'][:60]}"
                        button(text, do, "quiet", why_not=silent, aria_label=label)


async def _say(at: Visit, box: Element, lesson: str, what: str, words: str) -> None:
    """Say one thing of a lesson, and show what that changes once the updaters have read it."""
    if at.why_silent():
        return
    stated = {"lesson_id": lesson, "principal": at.principal, "session_id": lesson_session(lesson)}
    try:
        before = await asyncio.to_thread(_belief, at.service, lesson)
        await taken(at.service, [{**_SAYS[what], **stated}])
        times = int(_EFFECT_S / _LOOK_S)
        for _ in range(times):
            await asyncio.sleep(_LOOK_S)
            after = await asyncio.to_thread(_belief, at.service, lesson)
            if after != before:
                break
    except ERRORS as error:
        show_error(box, error)
        return
    stated_now = f"Said: {what.lower()} {lesson}."
    unheard = f"{stated_now} Nothing changed within {_EFFECT_S:g} s: Health says whether updaters run."
    await _fill(at, box, words, stated_now if after != before else unheard)


def _belief(service: Service, lesson: str) -> object:
    return live_lessons(service.catalog, service.settings).of(lesson)
