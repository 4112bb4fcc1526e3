"""Evidence about agreement as arrays: what each day brought to each node, and how much of it counts (LRN-2, LRN-3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pipelines.domain.documents import Domain
from pipelines.domain.ranking import ANY, Signal
from pipelines.learning.evidence import MICRO, Evidence, EvidenceKey
from pipelines.learning.observations import FOR, signal_parameter
from pipelines.learning.priors import RobustnessPrior
from pipelines.learning.recency import Discount
from pipelines.learning.robustness import DailyMasses, trusted_shares

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SIGNALS: tuple[Signal, ...] = tuple(Signal)
# Per signal two rates, after good and after bad outcomes: bad ones are far more frequent and would drown the others.
COLUMNS = {
    signal_parameter(signal, good=good): 2 * index + (not good)
    for index, signal in enumerate(SIGNALS)
    for good in (True, False)
}
_INT64_SAFE = 2.0**62
_DOMAIN_NAMES = frozenset(domain.value for domain in Domain)

Path = tuple[str, ...]
"""Names from the domain down: (domain,), (domain, model) or (domain, model, agent); or (domain, intent)."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """What was observed at each node.

    Attributes:
        paths: The nodes, in the order of their first mass.
        daily: By node and parameter as one number, node · columns + column.
        share: float64 (n,), the share of each day's mass that counts.
    """

    paths: list[Path]
    daily: DailyMasses
    share: Floats

    def masses(self, discount: Discount) -> Ints:
        """What counts today, in whole micro-units, int64 (paths, 2 · columns), against in the second half.

        Raises:
            OverflowError: The sum of all masses leaves the range of int64.
        """
        return np.hstack([self._side(side, discount) for side in (self.daily.hits, self.daily.misses)])

    def _side(self, micro: Ints, discount: Discount) -> Ints:
        # A float holds a micro-unit exactly up to 9·10⁹ observations.
        counted = np.rint(discount.of_days(micro.astype(np.float64), self.daily.day) * self.share)
        if np.abs(counted).sum() > _INT64_SAFE:
            raise OverflowError("evidence: expected the sum of all masses within int64")
        summed = np.zeros(len(self.paths) * len(COLUMNS), dtype=np.int64)
        np.add.at(summed, self.daily.place, counted.astype(np.int64))
        return summed.reshape(-1, len(COLUMNS))


def gathered(evidence: Evidence, robustness: RobustnessPrior) -> tuple[Gathered, Gathered]:
    """The evidence about agreement by node of the hierarchy, and by domain and intent."""
    by_node, by_intent = _Rows(node_path), _Rows(lambda key: (key.domain, key.intent))
    for key, micro in evidence.counts.items():
        column = COLUMNS.get(key.parameter)
        if column is not None and key.domain in _DOMAIN_NAMES:
            by_node.add(key, column, micro)
            by_intent.add(key, column, micro)
    return by_node.gathered(robustness), by_intent.gathered(robustness)


class _Rows:
    """Masses under way, with the nodes that a function of their keys gives."""

    def __init__(self, path_of: Callable[[EvidenceKey], Path]) -> None:
        self._path_of = path_of
        self._paths: dict[Path, int] = {}
        self._entries: list[tuple[int, int, int, bool]] = []

    def add(self, key: EvidenceKey, column: int, micro: int) -> None:
        row = self._paths.setdefault(self._path_of(key), len(self._paths))
        self._entries.append((row * len(COLUMNS) + column, key.day, micro, key.bin != FOR))

    def gathered(self, robustness: RobustnessPrior) -> Gathered:
        table = np.array(self._entries, dtype=np.int64).reshape(-1, 4)
        daily = DailyMasses.of(table[:, 0], table[:, 1], table[:, 2], table[:, 3].astype(np.bool_))
        return Gathered(list(self._paths), daily, trusted_shares(daily, robustness))


def node_path(key: EvidenceKey) -> Path:
    """The node an observation was made at: without agent at the model, without either at the domain."""
    if key.agent != ANY:
        return (key.domain, key.model, key.agent)
    return (key.domain, key.model) if key.model != ANY else (key.domain,)


def numbered(paths: Iterable[Path]) -> dict[Path, int]:
    """Each path once with its place among them."""
    # Sorted, so that sums over siblings run in the same order however the evidence was gathered; as one string each,
    # which compares several times faster than a tuple.
    return {path: index for index, path in enumerate(sorted(set(paths), key="\0".join))}


def summed(masses: Ints, nodes: Sequence[int], size: int) -> Ints:
    """The masses of each of `size` nodes; rows whose node is −1 stand at another level."""
    places = np.array(nodes, dtype=np.int64)
    rows = np.flatnonzero(places >= 0)
    membership = sparse.csr_array((np.ones_like(rows), (places[rows], rows)), shape=(size, len(places)))
    return np.asarray(membership @ masses)


def observations(masses: Ints) -> tuple[Floats, Floats]:
    """Observations for and against, float64 (nodes, columns) each; a negative balance counts as none."""
    hits, misses = np.hsplit(np.maximum(masses, 0) / MICRO, 2)
    return hits, misses
