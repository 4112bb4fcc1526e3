"""What was learned: beliefs by scope, how they came about, what confidences are worth, and which version is live."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from fastapi import Request
from nicegui import ui
from nicegui.element import Element

from weft.app.views.beliefs import LIVE, beliefs_of, weights_by_version
from weft.app.views.confidences import reliability_of
from weft.app.views.learned_page import BeliefGroup, LearnedPage, Listed, version_page
from weft.consolidation.steps.recalibrate import Measured
from weft.domain.ids import PRIORS_VERSION
from weft.learning.reading import Reading
from weft.runtime.clock import stamp
from weft.service.console.layout import ERRORS, PATIENCE_S, Visit, confirmed, el, scrolling, show_error, table, visit
from weft.service.console.pictures import belief_bar, decay, over_versions, reliability
from weft.service.routes.versions import moved, refused, versions_of
from weft.service.state import Service
from weft.service.tokens import TokenScope

_LINES = 9
"""Weights that are drawn over time: those that moved most."""

_SENTENCES = 4  # of what changed, that are not folded away

History = Mapping[str, Sequence[tuple[str, Reading]]]


@dataclass(frozen=True, slots=True)
class _Values:
    """All that the page shows."""

    page: LearnedPage
    versions: Sequence[Mapping[str, Any]]
    weights: Mapping[str, History]  # by scope, of each signal
    confidences: Measured | None


@ui.page("/learned", response_timeout=PATIENCE_S)
async def page(request: Request, scope: str = "") -> None:
    """Of one scope, where the address names one."""
    at = visit(request, "learned")
    box = el("div")
    with box:
        await _fill(at, box, scope)


async def _fill(at: Visit, box: Element, scope: str) -> None:
    try:
        values = await asyncio.to_thread(_read, at.service)
    except ERRORS as error:
        show_error(box, error)
        return
    box.clear()
    with box:
        el("h1", "What was learned")
        _in_short(values.page)
        _words(values.page.lists[:1])
        _weights(values.weights, scope)
        with el("div", None, "columns"):
            with el("section"):
                _confidences(values.confidences)
            with el("section"):
                _decays(values.page)
        _versions(at, box, values.versions, scope)
        _words(values.page.lists[1:])
        _beliefs(values.page)


def _read(service: Service) -> _Values:
    catalog, priors = service.catalog, service.settings.priors
    weights: dict[str, dict[str, list[tuple[str, Reading]]]] = defaultdict(lambda: defaultdict(list))
    live = beliefs_of(catalog, priors, LIVE)
    for version, reading in weights_by_version(catalog, priors, live[0], service.weights):
        weights[reading.scope][reading.parameter].append((version, reading))
    confidences = reliability_of(catalog, priors, live[1])
    return _Values(version_page(catalog, priors, live), versions_of(catalog), weights, confidences)


def _in_short(page: LearnedPage) -> None:
    if not page.moves:
        el("p", "Nothing yet: every belief is its prior. Say what results are worth on the search page.", "soft")
        return
    for tag, sentences in (("div", page.moves[:_SENTENCES]), ("details", page.moves[_SENTENCES:])):
        if sentences:
            with el(tag):
                if tag == "details":
                    el("summary", f"{len(sentences)} more")
                with el("ul", None, "short"):
                    for sentence in sentences:
                        el("li", sentence)


def _weights(weights: Mapping[str, History], scope: str) -> None:
    el("h2", "What a score goes by, over learned versions")
    if not weights:
        el("p", "No weight was observed yet.", "soft")
        return
    chosen = scope if scope in weights else max(weights, key=lambda each: _mass(weights[each]))
    with el("nav", None, "scopes", aria_label="Scopes"):
        for name in sorted(weights):
            link = el("a", name, href=f"/learned?scope={name}")
            if name == chosen:
                link.props["aria-current"] = "true"
    el("p", "A line is the expected share of the score, the band its interval; the last point is now.", "soft")
    lines = sorted(weights[chosen].items(), key=lambda row: (-_travel(row[1]), row[0]))
    with el("div", None, "charts"):
        for name, points in lines[:_LINES]:
            over_versions(name.replace("_", " "), points)


def _mass(history: History) -> float:
    return sum(rows[-1][1].observations for rows in history.values())


def _travel(points: Sequence[tuple[str, Reading]]) -> float:
    """How far a belief came, and where it stood still how much it counts."""
    means = [each.mean or 0.0 for _, each in points]
    return max(means) - min(means) + 0.001 * means[-1]


def _confidences(measured: Measured | None) -> None:
    el("h2", "What confidences are worth")
    if measured is None or not measured.diagram:
        el("p", "No outcome is known yet to hold a confidence against.", "soft")
        return
    many = f"{measured.measures.observations:,.0f} outcomes; they are off by {measured.measures.ece:.3f} on average"
    el("p", f"Predicted P(good), and the share that was good: on the line, a confidence means what it says. {many}.")
    reliability(measured.diagram)


def _decays(page: LearnedPage) -> None:
    el("h2", "How long things hold")
    if not page.curves:
        el("p", "Nobody said yet that something is out of date.", "soft")
        return
    el("p", "The chance that a text is still accurate by its age: now, and dashed what was believed before.", "soft")
    for curve in page.curves:
        decay(curve)


def _versions(at: Visit, box: Element, versions: Sequence[Mapping[str, Any]], scope: str) -> None:
    el("h2", "Versions")
    silent = at.why_silent(TokenScope.ADMIN)

    async def decide(what: Any, version: str) -> None:
        if at.why_silent(TokenScope.ADMIN):
            return
        try:
            await asyncio.to_thread(what, at.service, version, at.principal, "in the console")
        except ERRORS as error:
            show_error(box, error)
            return
        await _fill(at, box, scope)

    with el("ul", None, "rows"):
        live = next((at_ for at_, one in enumerate(versions) if one["live"]), 0)
        for place, one in reversed(list(enumerate(versions))):
            name = str(one["version"])
            with el("li"):
                with el("div", None, "names"):
                    el("strong", name)
                    if one["live"]:
                        el("span", LIVE, "badge sure")
                    made = "the priors alone" if name == PRIORS_VERSION else f"made {stamp(one['created_at'])}"
                    el("span", made, "soft")
                if one["live"]:
                    continue
                later = place > live
                asks = f"{name} goes live in place of {versions[live]['version']}. Searches follow within a second."
                what = "Promote" if later else "Roll back to it"
                confirmed(f"promote-{name}", asks, partial(decide, moved, name), what=what, why_not=silent)
                if later:
                    asks = f"{name} will not go live, and nothing of it counts."
                    confirmed(f"refuse-{name}", asks, partial(decide, refused, name), what="Refuse", why_not=silent)


def _words(lists: Sequence[Listed]) -> None:
    for listed in lists:
        if listed.rows:
            el("h2", listed.name)
            el("p", listed.about, "soft")
            table(listed.columns, listed.rows, numbers=_numbers(listed.rows))


def _numbers(rows: Sequence[Sequence[str]]) -> frozenset[int]:
    """Columns of numbers alone."""
    plain = str.maketrans("", "", ",.-–e+")
    return frozenset(
        at for at in range(len(rows[0])) if all(row[at].translate(plain).isdecimal() for row in rows if row[at])
    )


def _beliefs(page: LearnedPage) -> None:
    if not page.groups:
        return
    el("h2", "Every belief that feedback spoke of")
    about = f"The dot is what is believed now, the bar its {page.level} interval, the tick what was believed before."
    el("p", about, "soft")
    for group in page.groups:
        if not group.aside:
            el("h3", group.name)
            _group(group)
    aside = [group for group in page.groups if group.aside]
    if aside:
        with el("details"):
            el("summary", "Believed much as before, and what intents change")
            for group in aside:
                el("h3", group.name)
                _group(group)


def _group(group: BeliefGroup) -> None:
    with scrolling(group.name), el("table", None, "beliefs"):
        with el("thead"), el("tr"):
            for heading, kind in ((group.what, ""), (group.scale, "wide"), ("before", "number"), ("now", "number")):
                el("th", heading, kind, scope="col")
            el("th", "observations", "number", scope="col")
        with el("tbody"):
            for row in group.rows:
                with el("tr"):
                    el("th", row.name, scope="row")
                    with el("td", None, "wide"):
                        belief_bar(row)
                    for text in (row.was, row.now, row.observations):
                        el("td", text, "number")
