"""Generations: what is searched, and going back to what was."""

from __future__ import annotations

import asyncio
from functools import partial

from fastapi import Request
from nicegui import ui
from nicegui.element import Element

from weft.domain.ids import GenerationId
from weft.runtime.clock import stamp
from weft.service.console.layout import ERRORS, PATIENCE_S, Visit, confirmed, el, show_error, visit
from weft.service.routes.versions import generations_of
from weft.service.tokens import TokenScope

_COUNTED = ("documents", "chunks", "contents")


@ui.page("/generations", response_timeout=PATIENCE_S)
async def page(request: Request) -> None:
    """The newest first."""
    at = visit(request, "generations")
    box = el("div")
    with box:
        await _fill(at, box)


async def _fill(at: Visit, box: Element) -> None:
    try:
        made = await asyncio.to_thread(generations_of, at.service.catalog)
    except ERRORS as error:
        show_error(box, error)
        return

    async def back_to(name: str) -> None:
        if at.why_silent(TokenScope.ADMIN):
            return
        try:
            await asyncio.to_thread(at.service.catalog.rollback, GenerationId(name))
        except ERRORS as error:
            show_error(box, error)
            return
        await _fill(at, box)

    box.clear()
    with box:
        el("h1", "Generations")
        about = "Each is a complete set of indexes that never changes; exactly one is searched. `weft index` makes one."
        el("p", about, "soft")
        if not made:
            el("p", "None yet.", "soft")
        with el("ul", None, "rows"):
            for one in reversed(made):
                with el("li"):
                    with el("div", None, "names"):
                        el("strong", one["id"])
                        if one["live"]:
                            el("span", "live", "badge sure")
                        counts = ", ".join(f"{one['counts'].get(name, 0):,} {name}" for name in _COUNTED)
                        el("span", f"made {stamp(one['created_at'])} · {counts}", "soft")
                        models = ", ".join(f"{what} {name}" for what, name in one["models"].items())
                        el("span", models, "soft")
                    if not one["live"]:
                        asks = f"{one['id']} is searched from then on. It is verified first; no search fails."
                        silent, do = at.why_silent(TokenScope.ADMIN), partial(back_to, one["id"])
                        confirmed(f"back-{one['id']}", asks, do, what="Make it live", why_not=silent)
