"""Arithmetic over groups of lines, and sums rounded once."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from weft.domain.arrays import Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Lines 0 … n − 1 in groups, none of them empty, one after the other."""

    owners: Ints  # whose each group is, ascending, (groups,)
    starts: Ints  # first line of each group, (groups,)
    counts: Ints  # lines of each group, (groups,)

    @classmethod
    def of(cls, owner: Ints) -> Groups:
        """Lines by whose they are, ascending, (n,)."""
        if not len(owner):
            return cls.one(0)
        if owner[0] == owner[-1]:
            return cls(owner[:1], np.zeros(1, dtype=np.int64), np.array([len(owner)]))
        starts = np.concatenate([[0], (owner[1:] != owner[:-1]).nonzero()[0] + 1])
        return cls(owner[starts], starts, np.diff(starts, append=len(owner)))

    @classmethod
    def one(cls, n: int) -> Groups:
        """All lines in one group; without any lines no group."""
        return cls(*(np.array([value] if n else [], dtype=np.int64) for value in (0, 0, n)))

    def __iter__(self) -> Iterator[tuple[int, slice]]:
        """Whose each group is, and its lines."""
        ends = (self.starts + self.counts).tolist()
        return zip(
            self.owners.tolist(),
            (slice(*bounds) for bounds in zip(self.starts.tolist(), ends, strict=True)),
            strict=True,
        )

    def spread(self, values: Floats) -> Floats:
        """A value per group, as one per line."""
        return np.repeat(values, self.counts)

    def least(self, values: Floats) -> Floats:
        """For each line the least value known in its group; NaN where none is."""
        return self.spread(np.fmin.reduceat(values, self.starts)) if len(values) else values

    def most(self, values: Floats) -> Floats:
        """For each line the greatest value known in its group; NaN where none is."""
        return self.spread(np.fmax.reduceat(values, self.starts)) if len(values) else values

    def places(self) -> Ints:
        """Place of each line within its group, from 0."""
        return np.arange(int(self.counts.sum())) - np.repeat(self.starts, self.counts)


_WIDE = np.longdouble
_ERROR = float(np.finfo(_WIDE).eps)


def exact_sums(amounts: Floats) -> Floats:
    """The sum of each line, (n, parts), as `math.fsum` gives it; NaN adds nothing.

    Lines are summed in the widest precision at hand. Where its rounding cannot have moved the result, that is the
    answer; else, which is rare, and everywhere on machines without a wider one, the line is summed by `math.fsum`.
    """
    values = np.where(np.isnan(amounts), 0.0, amounts)
    wide = np.add.reduce(values, axis=1, dtype=_WIDE)
    slack = values.shape[1] * _ERROR * np.add.reduce(np.abs(values), axis=1)  # twice what all its roundings come to
    # Rounding keeps order: where both ends of what the sum may be become one number, so does the sum.
    rounded: Floats = (wide - slack).astype(np.float64)
    for line in (rounded != (wide + slack).astype(np.float64)).nonzero()[0].tolist():
        rounded[line] = math.fsum(values[line].tolist())
    return rounded
