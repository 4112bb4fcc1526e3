"""Pictures of values as HTML and SVG elements: what a score is made of, intervals, lines over versions, graphs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from weft.app.views.learned_page import BeliefRow, DecayCurve
from weft.domain.ranking import Contribution, RankedResult
from weft.domain.reasons import CONTENT, OWN, QUESTION, STANDS_FIRST
from weft.learning.calibration.reliability import Band
from weft.learning.reading import Reading
from weft.runtime.pages import number
from weft.service.console.layout import el, scrolling

_MODELS = ("vector", "vector_2", "vector_3", "dense", "dense_2", "dense_3")
GROUPS: Mapping[str, tuple[str, frozenset[str]]] = {
    "people": ("what people said", frozenset({CONTENT, QUESTION, OWN, "answered", "session", "momentum"})),
    "meaning": (
        "meaning",
        frozenset((*_MODELS, "late_interaction", "cross_encoder", "pseudo_relevance")),
    ),
    "words": ("words", frozenset({"lexical", "sparse", "trigger", "triggers", "cross_validation", STANDS_FIRST})),
    "links": ("links", frozenset({"graph", "degree", "authority", "isolation"})),
    "itself": ("the text itself", frozenset()),  # whatever is in no other group
}
"""What contributions are drawn as, by the kind of what speaks; in the order of a bar."""

_SEEN = 0.0005  # of a score, below which a contribution is not told
_FULL = 100.0


def group_of(contribution: str) -> str:
    """The group that a contribution is drawn in."""
    return next((name for name, (_, held) in GROUPS.items() if contribution in held), "itself")


def legend() -> None:
    """What the colours of bars mean."""
    with el("p", None, "legend"):
        el("span", "A score is made of")
        for name, (says, _) in GROUPS.items():
            with el("span", None, "key"):
                el("i", None, f"swatch {name}", aria_hidden="true")
                el("span", says)


def score_bar(result: RankedResult, most: float) -> None:
    """What speaks for a result, group by group, on the scale of the best one."""
    sums = dict.fromkeys(GROUPS, 0.0)
    for each in result.contributions:
        sums[group_of(each.name)] += each.amount
    message = ", ".join(f"{GROUPS[name][0]} {amount:+.2f}" for name, amount in sums.items() if abs(amount) >= _SEEN)
    with el("div", None, "score-bar", role="img", aria_label=f"Score {result.score:.3f}: {message}"):
        for name, amount in sums.items():
            if amount >= _SEEN:
                el("i", None, f"segment {name}").style(f"width: {_FULL * amount / most:.2f}%")
        for name, amount in sums.items():
            if amount <= -_SEEN:
                el("i", None, f"segment against {name}").style(f"width: {-_FULL * amount / most:.2f}%")


def contributions(result: RankedResult) -> None:
    """Each addend of a score, the greatest first, with the interval of what its weight may be."""
    shown = sorted((each for each in result.contributions if abs(each.amount) >= _SEEN), key=lambda each: -each.amount)
    ends = [(each, *_bounds(each)) for each in shown]
    most = max((max(abs(each.amount), high) for each, _, high in ends), default=1.0)
    with scrolling("What the score is made of"), el("table", None, "made-of"):
        with el("thead"), el("tr"):
            for heading, kind in (("", ""), ("adds, with its 90 % interval", ""), ("value × weight", "number")):
                el("th", heading, kind, scope="col") if heading else el("td")
            el("th", "adds", "number", scope="col")
        with el("tbody"):
            for each, low, high in ends:
                with el("tr"):
                    with el("th", None, scope="row"):
                        el("i", None, f"swatch {group_of(each.name)}", aria_hidden="true")
                        el("span", each.name.replace("_", " "))
                    with el("td"), el("div", None, "addend", aria_hidden="true"):
                        sign = " against" if each.amount < 0.0 else ""
                        width = _FULL * abs(each.amount) / most
                        el("i", None, f"segment {group_of(each.name)}{sign}").style(f"width: {width:.2f}%")
                        if high > low:
                            left, wide = _FULL * low / most, _FULL * (high - low) / most
                            el("i", None, "whisker").style(f"left: {left:.2f}%; width: {wide:.2f}%")
                    el("td", f"{each.value:.3f} × {each.weight:.3f}", "number")
                    el("td", f"{each.amount:+.3f}", "number")
        with el("tfoot"), el("tr"):
            el("th", "score", scope="row")
            el("td")
            el("td")
            el("td", f"{result.score:.3f}", "number")


def _bounds(contribution: Contribution) -> tuple[float, float]:
    """Between which amounts it adds by its weight's interval; the same twice where none is a share of the score."""
    belief = contribution.belief
    if belief is None or contribution.weight <= 0.0 or contribution.amount <= 0.0 or belief.low < 0.0:
        return 0.0, 0.0
    scale = contribution.amount / contribution.weight
    return scale * belief.low, scale * belief.high


def belief_bar(row: BeliefRow) -> None:
    """A belief: the dot is now, the bar its interval, the tick what was believed before."""
    label = f"{row.name}: {row.now}, was {row.was}"
    with el("svg", None, "belief", viewBox="0 0 100 10", preserveAspectRatio="none", role="img", aria_label=label):
        el("line", None, "axis", x1=0, y1=5, x2=100, y2=5)
        if row.low is not None:
            el("line", None, "interval", x1=row.low, y1=5, x2=row.high, y2=5)
        if row.was_at is not None:
            el("line", None, "was", x1=row.was_at, y1=0, x2=row.was_at, y2=10)
        if row.at is not None:
            el("ellipse", None, "now", cx=row.at, cy=5, rx=0.8, ry=4)


def decay(curve: DecayCurve) -> None:
    """How much of a domain still holds, from an hour to three years."""
    with el("figure"):
        with el("svg", None, "chart", viewBox="0 0 100 48", role="img", aria_label=f"How long {curve.domain} holds"):
            el("line", None, "axis", x1=0, y1=40, x2=100, y2=40)
            for name, x in (("day", 31.2), ("month", 64.7), ("year", 89.2)):
                el("line", None, "axis", x1=x, y1=0, x2=x, y2=40)
                el("text", name, x=x, y=46)
            el("polyline", None, "was", points=curve.was)
            el("polyline", None, "now", points=curve.now)
        el("figcaption", curve.domain)


def over_versions(name: str, points: Sequence[tuple[str, Reading]]) -> None:
    """A belief in each learned version, with its interval, and now."""
    top = max((each.high or each.mean or 0.0 for _, each in points), default=0.0) or 1.0
    step = 100.0 / max(1, len(points) - 1)

    def place(at: int, value: float | None) -> str:
        return f"{at * step:.1f},{34.0 - 32.0 * min(1.0, max(0.0, (value or 0.0) / top)):.1f}"

    highs = [place(at, each.high if each.high is not None else each.mean) for at, (_, each) in enumerate(points)]
    lows = [place(at, each.low if each.low is not None else each.mean) for at, (_, each) in enumerate(points)]
    means = [place(at, each.mean) for at, (_, each) in enumerate(points)]
    first, last = points[0][1].mean, points[-1][1].mean
    with el("figure"):
        label = f"{name} over {len(points)} versions: {number(first)} at first, {number(last)} now"
        with el("svg", None, "chart", viewBox="-2 0 104 36", role="img", aria_label=label):
            el("line", None, "axis", x1=0, y1=34, x2=100, y2=34)
            el("polygon", None, "band", points=" ".join([*highs, *reversed(lows)]))
            el("polyline", None, "now", points=" ".join(means))
            x, _, y = means[-1].partition(",")
            el("circle", None, "now", cx=x, cy=y, r=1.6)
        with el("figcaption"):
            el("span", name)
            el("span", f"{number(first)} → {number(last)}")


def reliability(diagram: Sequence[Band]) -> None:
    """Predicted against observed share of good results: on the diagonal a confidence means what it says."""
    label = f"Predicted against observed in {len(diagram)} bands"
    with el("svg", None, "chart square", viewBox="-20 -4 130 120", role="img", aria_label=label):
        el("line", None, "axis", x1=0, y1=100, x2=100, y2=0)
        for share in (0, 50, 100):
            el("text", f"{share} %", x=share, y=110)
            el("text", f"{share} %", "left", x=-2, y=102 - share)
        for band in diagram:
            x = _FULL * band.predicted
            el("line", None, "interval", x1=x, x2=x, y1=_FULL * (1.0 - band.low), y2=_FULL * (1.0 - band.high))
            size = 1.6 + min(3.4, math.log10(1.0 + band.observations))
            el("circle", None, "now", cx=x, cy=_FULL * (1.0 - band.observed), r=f"{size:.1f}")


class Spoke(NamedTuple):
    """Something that the middle of a graph has to do with."""

    name: str
    kind: str
    href: str  # empty where it has no page
    outward: bool
    strength: float  # from 0 to 1


MOST_SPOKES = 16
_FEW = 4  # that need no more height than a line of text or two


def star(middle: str, spokes: Iterable[Spoke]) -> None:
    """What something has to do with others: itself in the middle, kinds of edges beside one another."""
    drawn = sorted(list(spokes)[:MOST_SPOKES], key=lambda each: each.kind)
    label = f"{middle} and {len(drawn)} that it has to do with; the lists below say the same"
    tall = 165.0 if len(drawn) > _FEW else 60.0
    box = f"0 {200.0 - tall - 35.0:.0f} 720 {2.0 * tall + 70.0:.0f}"
    with el("svg", None, "star", viewBox=box, role="img", aria_label=label):
        for at, each in enumerate(drawn):
            angle = 2.0 * math.pi * (at + 0.3) / len(drawn)  # the first to the right, none above another's name
            x, y = 360.0 + 215.0 * math.cos(angle), 200.0 + tall * math.sin(angle)
            el("line", None, f"edge {each.kind}", x1=360, y1=200, x2=f"{x:.0f}", y2=f"{y:.0f}").style(
                f"stroke-width: {1.0 + 2.5 * min(1.0, each.strength):.1f}"
            )
            el("circle", None, "node", cx=f"{x:.0f}", cy=f"{y:.0f}", r=5)
            side = "end" if x < 360.0 else "start"
            arrow = "→" if each.outward else "←"
            for line, (text, kind) in enumerate(((_short(each.name), "name"), (f"{arrow} {each.kind}", "kind"))):
                at_x, at_y = x + (10 if side == "start" else -10), y + 4 + 15 * line - 6
                el("text", text, kind, x=f"{at_x:.0f}", y=f"{at_y:.0f}").style(f"text-anchor: {side}")
        el("circle", None, "node middle", cx=360, cy=200, r=9)
        el("text", _short(middle), "name middle", x=360, y=228)


def _short(name: str) -> str:
    """The end of a place, or the beginning of a text, in as many signs as there is room for."""
    place, _, _ = name.partition("  ")
    return place if len(place) <= 26 else f"…{place[-25:]}"
