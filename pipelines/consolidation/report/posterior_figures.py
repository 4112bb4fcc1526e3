"""Pictures of single families of beliefs: what is expected, and how far it may be from that."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from pipelines.consolidation.report.figures import NOW, PAST, panels
from pipelines.learning.reading import Reading


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
