"""What one outcome of a chunk says about the sizes that made it, as masses of the evidence table (LRN-9).

| parameter              | is evidence at                              | from |
| ---------------------- | ------------------------------------------- | ---- |
| `size.target.<o>`      | the chunk's own length                      | every chunk |
| `size.minimum.good`    | its own length                              | useful chunks below the minimum in force |
| `size.minimum.bad`     | the minimum in force                        | unused chunks below it |
| `size.before.good`     | the budget for leading context in force     | useful chunks that have such context |
| `size.after.good`      | the budget for trailing context in force    | useful chunks that have such context |
| `size.overflow.<o>`    | one per strategy                            | parts of units above the hard limit |

Good and bad outcomes are kept apart: what an unused chunk counts against a useful one is decided on read.

Chunks come out shorter than the target that they are filled up to, so that their lengths alone would pull every target
down. The bin "shortfall" of the target keeps Σw·(target in force / length) beside the statistics of the lengths.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from pipelines.domain.sizing import MadeBy, Overflow
from pipelines.learning.evidence import MICRO
from pipelines.learning.families.gamma import GammaEvidence

TARGET, MINIMUM, BEFORE, AFTER, OVERFLOW = "target", "minimum", "before", "after", "overflow"
STATISTICS = ("weight", "inverse", "log")
"""Bins of a Gamma: Σw, Σw·1000/x, Σw·ln x."""

SHORTFALL = "shortfall"


def size_parameter(size: str, *, good: bool) -> str:
    """The parameter that evidence about one kind of size is kept under."""
    return f"size.{size}.{'good' if good else 'bad'}"


def _cells() -> Iterator[tuple[str, str]]:
    for good in (True, False):
        for size in (TARGET, MINIMUM, BEFORE, AFTER):
            yield from ((size_parameter(size, good=good), bin_) for bin_ in STATISTICS)
        yield size_parameter(TARGET, good=good), SHORTFALL
        yield from ((size_parameter(OVERFLOW, good=good), strategy.value) for strategy in Overflow)


CELLS: tuple[tuple[str, str], ...] = tuple(_cells())
"""Parameter and bin of every mass that sizes have, in the order a leaf keeps them in."""

_PLACES: Mapping[tuple[str, str], int] = {cell: place for place, cell in enumerate(CELLS)}
_FIRST = {
    (size, good): _PLACES[size_parameter(size, good=good), STATISTICS[0]]
    for size in (TARGET, MINIMUM, BEFORE, AFTER)
    for good in (True, False)
}
_SHORTFALL = {good: _PLACES[size_parameter(TARGET, good=good), SHORTFALL] for good in (True, False)}
_STRATEGY = {
    (strategy, good): _PLACES[size_parameter(OVERFLOW, good=good), strategy.value]
    for strategy in Overflow
    for good in (True, False)
}


def observe_sizes(masses: list[int], made: MadeBy, *, good: bool, weight: float) -> None:
    """Add one outcome of a chunk to the masses of a leaf, in the order of `CELLS`.

    Args:
        made: Length of the chunk and the sizes behind it.
        weight: |satisfaction| times the confidence of attribution, >= 0.
    """
    _add(masses, _FIRST[TARGET, good], made.tokens, weight)
    longer = (made.target or made.tokens) / made.tokens
    masses[_SHORTFALL[good]] += round(weight * longer * MICRO)
    if made.minimum is not None and made.tokens < made.minimum:
        _add(masses, _FIRST[MINIMUM, good], made.tokens if good else made.minimum, weight)
    if good and made.before is not None:
        _add(masses, _FIRST[BEFORE, good], made.before, weight)
    if good and made.after is not None:
        _add(masses, _FIRST[AFTER, good], made.after, weight)
    if made.overflow is not None:
        masses[_STRATEGY[made.overflow, good]] += round(weight * MICRO)


_of = lru_cache(maxsize=1 << 16)(GammaEvidence.of)  # the same few sizes and weights come again and again


def _add(masses: list[int], first: int, size: int, weight: float) -> None:
    seen = _of(size, weight)
    masses[first] += seen.weight
    masses[first + 1] += seen.inverse
    masses[first + 2] += seen.log
