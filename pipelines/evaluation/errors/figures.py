"""Pictures of an error analysis: who gained and lost, and what stands in the way of what is right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

GAIN, LOSS, PLAIN = "#0072B2", "#D55E00", "#767676"  # Okabe and Ito's palette, which colour-blind readers tell apart


def changes(by_query: Mapping[str, float], measure: str) -> Figure:
    """Change of every query that changed, the largest loss first."""
    moved = sorted(change for change in by_query.values() if change != 0.0)
    figure = Figure(figsize=(8.0, 3.2), layout="constrained", dpi=130)
    axes = figure.subplots()
    axes.bar(range(len(moved)), moved, width=1.0, color=[GAIN if change > 0 else LOSS for change in moved])
    axes.axhline(0.0, color="#4D4D4D", lw=1)
    axes.set(xlabel="queries that changed, in order of their change", ylabel=f"change of {measure}")
    gained, equal = sum(change > 0 for change in moved), len(by_query) - len(moved)
    axes.set_title(f"{gained} queries gain, {len(moved) - gained} lose, {equal} stay", loc="left")
    return figure


def reasons(counts_by_system: Mapping[str, Mapping[str, int]]) -> Figure:
    """How many answers of each system have each reason.

    Args:
        found: Count by reason, by name of the system.
    """
    names = sorted(
        {name for counts in counts_by_system.values() for name in counts},
        key=lambda name: -_most(counts_by_system, name),
    )
    figure = Figure(figsize=(8.0, 1.2 + 0.42 * len(names)), layout="constrained", dpi=130)
    axes = figure.subplots()
    height = 0.8 / max(1, len(counts_by_system))
    for place, (system, colour) in enumerate(zip(counts_by_system, _colours(len(counts_by_system)), strict=True)):
        rows = [row + height * place for row in range(len(names))]
        axes.barh(rows, [counts_by_system[system].get(name, 0) for name in names], height, color=colour, label=system)
    centre = height * (len(counts_by_system) - 1) / 2.0
    axes.set_yticks([row + centre for row in range(len(names))], [name.replace("_", " ") for name in names])
    axes.invert_yaxis()
    axes.set(xlabel="queries")
    axes.set_title("What the first result is ahead by, where it is not the right one", loc="left")
    axes.legend(frameon=False)
    return figure


def _most(counts_by_system: Mapping[str, Mapping[str, int]], name: str) -> int:
    return max(counts.get(name, 0) for counts in counts_by_system.values())


def _colours(count: int) -> Sequence[str]:
    return [(PLAIN, GAIN, LOSS)[place % 3] for place in range(count)]
