"""A content, and the graph around it: what `weft graph show` prints, drawn."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing

from fastapi import Request
from nicegui import ui

from weft.app.views.graph_view import Facts, GraphView
from weft.domain.ids import ContentHash
from weft.runtime.pages import number
from weft.service.console.layout import ERRORS, PATIENCE_S, el, show_error, visit
from weft.service.console.pictures import MOST_SPOKES, Spoke, star
from weft.service.state import Service

_MOST = 60
"""Edges that are listed."""


@ui.page("/contents/{content}", response_timeout=PATIENCE_S)
async def page(request: Request, content: str) -> None:
    """Of the live generation, by the content's hash or its first digits."""
    at = visit(request, "content")
    box = el("div")
    try:
        facts, text = await asyncio.to_thread(_read, at.service, content)
    except ERRORS as error:
        show_error(box, error)
        return
    with box:
        el("h1", facts["uris"][0])
        el("p", f"Content {facts['content_hash'][:16]} · stands in {', '.join(facts['uris'])}", "soft")
        spokes = list(_spokes(facts))
        el("h2", "What it has to do with")
        if not spokes:
            el("p", "Nothing links to it, and it links to nothing.", "soft")
        else:
            if len(spokes) > MOST_SPOKES:
                el("p", f"The strongest {MOST_SPOKES} of {len(spokes)}.", "soft")
            star(facts["uris"][0], spokes)
            _listed(facts)
        el("h2", "Text")
        el("pre", text, "text", tabindex="0", role="group", aria_label="The whole text")
        if any(facts["analytics"]):
            el("h2", "In the graph")
            with el("dl", None, "facts-grid"):
                for name, value in facts["analytics"][0].items():
                    if isinstance(value, int | float) and value >= 0:  # below it there is none
                        with el("div"):
                            el("dt", name.replace("_", " "))
                            el("dd", number(float(value)) if isinstance(value, float) else f"{value:,}")


def _read(service: Service, content: str) -> tuple[Facts, str]:
    with closing(GraphView.of(service.catalog, service.settings)) as view:
        facts = view.content_facts(content)
        row = view.generation.chunks.row_of(ContentHash(facts["content_hash"]))
        (whole,) = view.generation.chunks.contents([row or 0])
        return facts, whole.text


def _spokes(facts: Facts) -> Iterator[Spoke]:
    """Relations first, then other edges, the strongest first."""
    for each in facts["relations"]:
        outward = each["direction"] == "out"
        yield Spoke(each["target"] if outward else each["uri"], each["kind"], "", outward, 1.0)
    for each in sorted(facts["edges"], key=lambda edge: -edge["strength"]):
        href = f"/contents/{each['content_hash']}" if "content_hash" in each else ""
        yield Spoke(each["name"], each["kind"], href, each["direction"] == "out", each["strength"])


def _listed(facts: Facts) -> None:
    with el("ul", None, "facts"):
        for each in facts["relations"]:
            el("li", f"{each['says']} ({each['source']})")
        for each in sorted(facts["edges"], key=lambda edge: -edge["strength"])[:_MOST]:
            with el("li"):
                arrow = "→" if each["direction"] == "out" else "←"
                el("span", f"{arrow} {each['kind']} ({each['confidence']:.2f}, {each['source']}) ")
                if "content_hash" in each:
                    el("a", each["name"], href=f"/contents/{each['content_hash']}")
                else:
                    el("span", each["name"])
