"""The pictures of a night (CON-10): one style, labelled axes, colours that colour-blind readers can tell apart."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, PercentFormatter

from weft.consolidation.improvement import Improvement
from weft.consolidation.steps.recalibrate import Measured
from weft.learning.reading import Reading

NOW = "#0072B2"  # blue and vermilion of Okabe and Ito's palette; the past is grey and hollow
ALERT = "#D55E00"
PAST = "#767676"

_STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#4D4D4D",
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#E3E3E3",
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
}


def as_svg(figure: Figure) -> str:
    """A picture as SVG: with letters as shapes, for no reader need have the font; equal pictures give equal texts."""
    written = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "path", "svg.hashsalt": "weft"}):
        figure.savefig(written, format="svg", metadata={"Date": None})
    return written.getvalue()


def reliability(before: Measured, after: Measured) -> Figure:
    """Predicted probability against observed share of good results, before and after; below, how many of each."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(6.6, 7.2), layout="constrained", dpi=130)
        axes, histogram = figure.subplots(2, 1, sharex=True, gridspec_kw={"height_ratios": [4, 1]})
        axes.plot([0, 1], [0, 1], color="#4D4D4D", lw=1, ls="--", label="perfect calibration")
        _reliability_points(axes, before, color=PAST, hollow=True, label=f"before · ECE {before.measures.ece:.3f}")
        _reliability_points(axes, after, color=NOW, hollow=False, label=f"after · ECE {after.measures.ece:.3f}")
        axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), ylabel="observed share of good results")
        axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes.set_title("Does a confidence mean what it says? (held-out observations)")
        axes.legend(loc="upper left")
        masses = [band.observations for band in after.diagram]
        histogram.bar([band.predicted for band in after.diagram], masses, width=0.025, color=NOW)
        histogram.set(xlabel="predicted probability of being good", ylabel="observations")
        histogram.yaxis.set_major_formatter(FuncFormatter(lambda mass, _: f"{mass:,.0f}"))
    return figure


def _reliability_points(axes: Axes, measured: Measured, *, color: str, hollow: bool, label: str) -> None:
    bins = measured.diagram
    most = max(b.observations for b in bins)
    # An interval around a share of 0 or 1 may exclude it.
    spans = [[max(b.observed - b.low, 0.0) for b in bins], [max(b.high - b.observed, 0.0) for b in bins]]
    x, y = [b.predicted for b in bins], [b.observed for b in bins]
    axes.errorbar(x, y, yerr=spans, fmt="none", ecolor=color, elinewidth=1.2, capsize=2, alpha=0.7)
    sizes = [30 + 120 * math.sqrt(b.observations / most) for b in bins]
    face = "white" if hollow else color
    axes.scatter(x, y, s=sizes, facecolors=face, edgecolors=color, linewidths=1.4, zorder=3, label=label)


def retrieval(improvements: Sequence[Improvement]) -> Figure:
    """Retrieval before and after with intervals, a line from one to the other."""
    with panels(1, height=0.5 * len(improvements) + 1.8, width=9.0) as (figure, (axes,)):
        for row, one in enumerate(reversed(improvements)):
            before, after = one.before, one.after
            color = NOW if after.mean >= before.mean else ALERT
            axes.plot([before.mean, after.mean], [row, row], color=color, lw=2, zorder=1)
            for place, interval, shade in ((row - 0.12, before, PAST), (row + 0.12, after, color)):
                axes.plot([interval.low, interval.high], [place, place], color=shade, lw=1, zorder=1)
            axes.scatter(before.mean, row, s=70, facecolors="white", edgecolors=PAST, linewidths=1.4, zorder=2)
            axes.scatter(after.mean, row, s=70, color=color, zorder=3)
            label = f"{before.mean:.3f} → {after.mean:.3f}"
            right = max(before.high, after.high)
            axes.annotate(label, (right, row), (10, 0), textcoords="offset points", va="center")
        labels = [
            f"{one.measure.replace('_at_', '@')} · {one.questions} {one.source}" for one in reversed(improvements)
        ]
        axes.set_yticks(range(len(labels)), labels)
        axes.set(xlim=(0.0, 1.2), ylim=(-0.6, len(labels) - 0.4), xlabel="metric (hollow: before, filled: after)")
        axes.set_xticks([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
        axes.set_title("Retrieval before and after, 95 % intervals")
        axes.grid(visible=False, axis="y")
    return figure


@contextmanager
def panels(count: int, *, height: float, width: float = 10.0) -> Iterator[tuple[Figure, list[Axes]]]:
    """A figure in the style of all, with so many panels, one or two to a row; sizes in inches, height per row."""
    columns = 1 if count == 1 else 2
    rows = max(1, math.ceil(count / columns))
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(width, height * rows + (0.5 if rows > 1 else 0.0)), layout="constrained", dpi=130)
        drawn = list(figure.subplots(rows, columns, squeeze=False).flat)
        for spare in drawn[max(count, 1) :]:
            spare.set_visible(False)
        yield figure, drawn[: max(count, 1)]


def intervals(
    readings: Sequence[Reading], title: str, before: Sequence[Reading] = (), *, logarithmic: bool = False
) -> Figure:
    """Beliefs as means on credible intervals, hollow without observations; the same beliefs before as grey rings.

    Each scope has a panel of its own, unless all say something about one parameter.

    Raises:
        ValueError: There is nothing to show.
    """
    drawn = [reading for reading in readings if reading.mean is not None]
    if not drawn:
        raise ValueError(f"{title}: expected beliefs with means, found none")
    together = len({reading.parameter for reading in drawn}) == 1
    by_panel = [("", drawn)] if together else [(scope, list(own)) for scope, own in groupby(drawn, lambda r: r.scope)]
    past = {reading.key: reading.mean for reading in before if reading.mean is not None}
    rows = max(len(own) for _, own in by_panel)
    with panels(len(by_panel), height=1.2 + 0.24 * rows) as (figure, shown):
        for axes, (scope, own) in zip(shown, by_panel, strict=False):
            for row, reading in enumerate(reversed(own)):
                _draw_belief(axes, row, reading, past.get(reading.key))
            labels = [r.scope if together else r.parameter.replace("_", " ") for r in reversed(own)]
            axes.set_yticks(range(len(own)), labels)
            axes.set_ylim(-0.7, len(own) - 0.3)
            axes.set_xscale("log" if logarithmic else "linear")
            axes.set_title(scope)
            axes.grid(visible=False, axis="y")
        figure.suptitle(title, x=0.012, ha="left", fontsize=14, fontweight="bold")
    return figure


def _draw_belief(axes: Axes, row: int, reading: Reading, past: float | None) -> None:
    colour = NOW if reading.observations > 0.0 else PAST
    if reading.low is not None and reading.high is not None:
        axes.plot([reading.low, reading.high], [row, row], color=colour, linewidth=2, solid_capstyle="round")
    filled = colour if reading.observations > 0.0 else "white"
    mean = math.nan if reading.mean is None else reading.mean
    axes.plot([mean], [row], "o", color=colour, markerfacecolor=filled, markersize=6)
    if past is not None:
        axes.plot([past], [row], "o", color=PAST, markerfacecolor="none", markersize=10)
