"""What stands around a unit's own text in its chunk, within budgets in tokens (ING-11, ING-12)."""

from __future__ import annotations

from bisect import bisect_right

from pipelines.chunking.units.splitting import Meter

_PATH_SEPARATOR = " > "
"""Between the headings of a path in one line of context."""


def leading(context: str, budget: int, meter: Meter) -> str:
    """As much of a leading context as fits into `budget` tokens: what is nearest to the unit goes last.

    Outer lines go first, then outer headings of a path in one line; of a single name or signature that is too long
    its beginning stays.
    """
    if _fits(context, budget, meter):
        return context
    lines = context.split("\n")
    for kept in range(1, len(lines)):
        if _fits(inner := "\n".join(lines[kept:]), budget, meter):
            return inner
    names = lines[-1].split(_PATH_SEPARATOR)
    for kept in range(1, len(names)):
        if _fits(inner := _PATH_SEPARATOR.join(names[kept:]), budget, meter):
            return inner
    return _beginning(names[-1], budget, meter)


def trailing(following: str, budget: int, meter: Meter) -> str:
    """The first line of what follows, where it fits into `budget` tokens whole; part of a line would mislead."""
    line = following.lstrip().partition("\n")[0].rstrip()
    return line if _fits(line, budget, meter) else ""


def _beginning(text: str, budget: int, meter: Meter) -> str:
    words = text.split(" ")
    # Indentation is a run of empty words: without a word after it nothing is said.
    best = bisect_right(range(len(words)), budget, key=lambda count: meter.of_context(" ".join(words[:count]))) - 1
    return " ".join(words[: max(best, 0)]).rstrip()


def _fits(context: str, budget: int, meter: Meter) -> bool:
    # A token stands for at least one byte; one more for the line end.
    return len(context.encode("utf-8", "replace")) < budget or meter.of_context(context) <= budget
