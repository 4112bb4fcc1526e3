"""The pictures of a night (CON-10): one style, labelled axes, colours that colour-blind readers can tell apart."""

from __future__ import annotations

import io
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, PercentFormatter

from weft.consolidation.improvement import Improvement
from weft.consolidation.steps.gate import WeightMove, Weights
from weft.consolidation.steps.recalibrate import Measured
from weft.domain.documents import Domain
from weft.domain.ranking import Signal, WeightBelief
from weft.learning.reading import Reading
from weft.runtime.mlflow.runs import RecordedRun

NOW = "#0072B2"  # blue and vermilion of Okabe and Ito's palette; the past is grey and hollow
ALERT = "#D55E00"
PAST = "#767676"
BY_DOMAIN = {
    Domain.CODE: "#0072B2",
    Domain.ACADEMIC: "#009E73",
    Domain.HISTORY: "#CC79A7",
    Domain.GENERAL: "#E69F00",
}

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
_AGES = {1: "1 h", 24: "1 day", 24 * 7: "1 week", 24 * 30: "1 month", 24 * 365: "1 year", 24 * 3650: "10 years"}


@dataclass(frozen=True, slots=True)
class Curve:
    """How a domain is believed to age."""

    age_hours: Sequence[float]  # ascending, the first is 0
    freshness: Sequence[float]  # posterior mean of e^(−λ·age), from 1 downwards
    half_life_hours: float  # the age at which it is one half; infinity where no age shown reaches it


def as_svg(figure: Figure) -> str:
    """A picture as SVG: with letters as shapes, for no reader need have the font; equal pictures give equal texts."""
    written = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "path", "svg.hashsalt": "weft"}):
        figure.savefig(written, format="svg", metadata={"Date": None})
    return written.getvalue()


def weights(after: Weights, before: Weights) -> Figure:
    """One panel per domain: every signal's weight with its 90 % interval, and where it stood before."""
    rows = max((len(beliefs) for beliefs in after.values()), default=0)
    with panels(len(after), height=1.0 + 0.19 * rows, sharex=True) as (figure, shown):
        for axes, (domain, beliefs) in zip(shown, after.items(), strict=False):
            _weights_panel(axes, domain, beliefs, before.get(domain, {}))
        furthest = max(belief.high for beliefs in after.values() for belief in beliefs.values())
        shown[0].set_xlim(-0.015, 1.06 * furthest)  # shared: room for a marker at 0 and for the widest interval
        _legend(figure, shown[0])
        figure.suptitle("Learned weights, by domain", x=0.012, ha="left", fontsize=14, fontweight="bold")
    return figure


def _weights_panel(
    axes: Axes, domain: Domain, now: Mapping[Signal, WeightBelief], past: Mapping[Signal, WeightBelief]
) -> None:
    signals = sorted(now, key=list(Signal).index, reverse=True)
    rows = range(len(signals))
    means = [now[signal].mean for signal in signals]
    spans = [[now[s].mean - now[s].low for s in signals], [now[s].high - now[s].mean for s in signals]]
    axes.errorbar(means, rows, xerr=spans, fmt="o", ms=7, color=NOW, capsize=3, lw=1.6, label="now, 90 % interval")
    earlier = [(row, past[signal].mean) for row, signal in enumerate(signals) if signal in past]
    if earlier:
        axes.scatter(
            [mean for _, mean in earlier],
            [row for row, _ in earlier],
            s=70,
            facecolors="none",
            edgecolors=PAST,
            linewidths=1.4,
            zorder=3,
            label="live version",
        )
    axes.set_yticks(rows, [signal.value.replace("_", " ") for signal in signals])
    axes.set_ylim(-0.6, len(signals) - 0.4)
    axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.set_xlabel("share of the score")
    axes.set_title(f"{domain.value} · {max((b.n_effective for b in now.values()), default=0.0):,.0f} observations")
    axes.grid(visible=False, axis="y")


def movers(moved: Sequence[WeightMove]) -> Figure:
    """The weights that moved most since the live version, in percentage points of the score."""
    with panels(1, height=max(2.6, 0.36 * len(moved) + 1.5), width=8.0) as (figure, (axes,)):
        names = [f"{move.domain.value} · {move.signal.value.replace('_', ' ')}" for move in reversed(moved)]
        points = [100.0 * move.change for move in reversed(moved)]
        bars = axes.barh(
            range(len(names)), points, color=[NOW if point >= 0 else ALERT for point in points], height=0.6
        )
        axes.bar_label(bars, fmt=lambda point: f"{point:+.1f}", padding=4)
        axes.set_yticks(range(len(names)), names)
        axes.axvline(0.0, color="#4D4D4D", lw=1)
        axes.margins(x=0.15)
        axes.set_xlabel("change of the weight, percentage points")
        axes.set_title("What moved most since the live version")
        axes.grid(visible=False, axis="y")
        if not moved:
            axes.text(0.5, 0.5, "nothing to compare with yet", transform=axes.transAxes, ha="center", color=PAST)
    return figure


def ageing(curves: Mapping[Domain, Curve]) -> Figure:
    """How fast each domain is believed to go stale: freshness against age on a logarithmic axis."""
    with panels(1, height=4.4, width=8.0) as (figure, (axes,)):
        for domain, curve in curves.items():
            label = f"{domain.value} · half after {duration(curve.half_life_hours)}"
            axes.plot(curve.age_hours, curve.freshness, color=BY_DOMAIN[domain], lw=2.2, label=label)
        axes.set_xscale("log")
        axes.set_xticks(list(_AGES), list(_AGES.values()))
        axes.set_xlim(min(_AGES), max(_AGES))
        axes.minorticks_off()
        axes.set_ylim(0.0, 1.02)
        axes.axhline(0.5, color=PAST, lw=1, ls=":")
        axes.set_xlabel("age of the document (logarithmic)")
        axes.set_ylabel("freshness: belief that it is still accurate")
        axes.set_title("How knowledge ages, by domain")
        axes.legend(loc="lower left")
    return figure


def duration(hours: float) -> str:
    """A span of time in the unit that reads best.

    Examples:
        >>> duration(30.0), duration(24.0 * 400)
        ('30 h', '1.1 years')
    """
    if hours == math.inf:
        return "more than ten years"
    for unit, size in (("years", 24 * 365), ("months", 24 * 30), ("days", 48)):
        if hours >= size:
            return f"{hours / (24 if unit == 'days' else size):.1f} {unit}"
    return f"{hours:.0f} h"


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


def nights(runs: Sequence[RecordedRun]) -> Figure:
    """Retrieval and the error of calibration over nights, the oldest first."""
    with panels(2, height=3.1) as (figure, (left, right)):
        names = [time.strftime("%m-%d", time.gmtime(one.started)) for one in runs]
        _over_nights(left, runs, "ndcg_at_10/after", "nDCG@10 after, 95 % interval")
        _over_nights(right, runs, "calibration/ece/after", "error of calibration (ECE)")
        for axes in (left, right):
            axes.set_xticks(range(len(runs)), names, rotation=45 if len(runs) > 7 else 0)
            axes.set_xlim(-0.5, len(runs) - 0.5)
            axes.set_ylim(bottom=0.0)
    return figure


def _over_nights(axes: Axes, runs: Sequence[RecordedRun], name: str, title: str) -> None:
    places = [at for at, one in enumerate(runs) if name in one.metrics]
    means = [runs[at].metrics[name] for at in places]
    axes.plot(places, means, color=NOW, lw=2, marker="o", ms=5)
    low, high = (
        [runs[at].metrics.get(f"{name}_{end}", mean) for at, mean in zip(places, means, strict=True)]
        for end in ("low", "high")
    )
    axes.fill_between(places, low, high, color=NOW, alpha=0.15, lw=0)
    axes.set_title(title)
    if not places:
        axes.text(0.5, 0.5, "not measured yet", transform=axes.transAxes, ha="center", color=PAST)


@contextmanager
def panels(
    count: int, *, height: float, width: float = 10.0, sharex: bool = False
) -> Iterator[tuple[Figure, list[Axes]]]:
    """A figure in the style of all, with so many panels, one or two to a row; sizes in inches, height per row."""
    columns = 1 if count == 1 else 2
    rows = max(1, math.ceil(count / columns))
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(width, height * rows + (0.5 if rows > 1 else 0.0)), layout="constrained", dpi=130)
        drawn = list(figure.subplots(rows, columns, sharex=sharex, squeeze=False).flat)
        for spare in drawn[max(count, 1) :]:
            spare.set_visible(False)
        yield figure, drawn[: max(count, 1)]


def _legend(figure: Figure, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=len(labels))


def intervals(readings: Sequence[Reading], title: str) -> Figure:
    """One line per belief, the mean on its credible interval; hollow where no observation stands behind it yet.

    Raises:
        ValueError: There is nothing to show.
    """
    drawn = [(reading, reading.mean) for reading in readings if reading.mean is not None]
    if not drawn:
        raise ValueError(f"{title}: expected beliefs with means, found none")
    with panels(1, height=1.2 + 0.24 * len(drawn), width=8.0) as (figure, (axes,)):
        for place, (reading, mean) in enumerate(reversed(drawn)):
            colour = NOW if reading.observations > 0.0 else PAST
            if reading.low is not None and reading.high is not None:
                axes.plot(
                    [reading.low, reading.high], [place, place], color=colour, linewidth=2, solid_capstyle="round"
                )
            filled = colour if reading.observations > 0.0 else "white"
            axes.plot([mean], [place], "o", color=colour, markerfacecolor=filled, markersize=6)
        labels = [f"{reading.scope} · {reading.parameter}" for reading, _ in reversed(drawn)]
        axes.set_yticks(range(len(drawn)), labels)
        axes.set_ylim(-0.7, len(drawn) - 0.3)
        axes.set_title(title)
        axes.grid(visible=False, axis="y")
    return figure
