"""Evidence about agreement as arrays: what each day brought to each node, and how much of it counts (LRN-2, LRN-3).

Everything runs over columns of the evidence's keys, one pass per column, since a million leaves are read at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, repeat
from operator import itemgetter

import numpy as np

from weft.domain.arrays import Flags, Floats, Ints
from weft.domain.documents import Domain
from weft.domain.ranking import ANY, Signal
from weft.learning.evidence import MICRO, Evidence, EvidenceKey
from weft.learning.parameters import FOR, signal_parameter
from weft.learning.pooling.daily import DailyMasses, trusted_shares
from weft.learning.priors import RobustnessPrior
from weft.learning.recency import Discount

SIGNALS: tuple[Signal, ...] = tuple(Signal)
# Per signal two rates, after good and after bad outcomes: bad ones are far more frequent and would drown the others.
COLUMNS = {
    signal_parameter(signal, good=good): 2 * index + (not good)
    for index, signal in enumerate(SIGNALS)
    for good in (True, False)
}
_INT64_SAFE = 2.0**62
_DOMAINS = sorted(domain.value for domain in Domain)
Path = tuple[str, ...]
"""Names from the domain down: (domain,), (domain, model) or (domain, model, agent); or (domain, intent)."""


@dataclass(frozen=True, slots=True)
class AgreementTable:
    """What was observed at each node."""

    # The nodes, sorted, so that sums over siblings run in the same order however evidence was gathered
    paths: Sequence[Path]
    columns: Ints  # int64 (columns,), which of `COLUMNS` anything was observed of, ascending
    daily: DailyMasses  # By node and column as one number, node · columns + column
    share: Floats  # float64 (n,), the share of each day's mass that counts

    def observed(self, group: Ints, groups: int, discount: Discount | None) -> tuple[Floats, Floats]:
        """What counts today for and against, in observations: float64 (groups, columns) each.

        Masses are summed in whole micro-units; a negative balance counts as none.

        Args:
            group: int64 (paths,), the group that each node belongs to; −1 for none.
            groups: How many there are.
            discount: Recency; None counts every day alike.

        Raises:
            OverflowError: The sum of all masses leaves the range of int64.
        """
        hits, misses = (self._side(side, group, groups, discount) for side in (self.daily.hits, self.daily.misses))
        return hits, misses

    def _side(self, micro: Ints, group: Ints, groups: int, discount: Discount | None) -> Floats:
        # A float holds a micro-unit exactly up to 9·10⁹ observations.
        values = micro.astype(np.float64)
        counted = np.rint((values if discount is None else discount.of_days(values, self.daily.day)) * self.share)
        if np.abs(counted).sum() > _INT64_SAFE:
            raise OverflowError("evidence: expected the sum of all masses within int64")
        width = max(len(self.columns), 1)
        node, column = np.divmod(self.daily.place, width)
        within = np.flatnonzero(group[node] >= 0)
        summed = np.zeros(groups * width, dtype=np.int64)
        np.add.at(summed, group[node[within]] * width + column[within], counted[within].astype(np.int64))
        return np.asarray(np.maximum(summed.reshape(groups, width)[:, : len(self.columns)], 0) / MICRO)


def gathered(evidence: Evidence, robustness: RobustnessPrior) -> tuple[AgreementTable, AgreementTable]:
    """The evidence about agreement by node of the hierarchy, and by domain and intent."""
    masses = _Masses.of(evidence)
    domain = masses.coded("domain", {name: code for code, name in enumerate(_DOMAINS)})
    model, agent, intent = (masses.named(part) for part in ("model", "agent", "intent"))
    # An observation is made at the agent; without one at the model, without either at the domain.
    path = [
        domain,
        np.where(model.specified | agent.specified, model.codes, -1),
        np.where(agent.specified, agent.codes, -1),
    ]
    by_node = _Nodes.of(path, [_DOMAINS, model.names, agent.names])
    by_intent = _Nodes.of([domain, intent.codes], [_DOMAINS, intent.names])
    return by_node.gathered(masses, robustness), by_intent.gathered(masses, robustness)


def _part(name: str) -> Callable[[EvidenceKey], str]:
    return itemgetter(EvidenceKey._fields.index(name))


@dataclass(frozen=True, slots=True)
class _Named:
    """One column of names: its distinct names, sorted, and where each row's stands among them."""

    names: Sequence[str]
    codes: Ints
    specified: Flags


@dataclass(frozen=True, slots=True)
class _Masses:
    """The rows of evidence that are about agreement, in any order."""

    keys: Sequence[EvidenceKey]
    day: Ints
    column: Ints
    micro: Ints
    against: Flags

    @classmethod
    def of(cls, evidence: Evidence) -> _Masses:
        counts = evidence.counts
        column = _codes(map(_part("parameter"), counts), COLUMNS, len(counts))
        ours = (column >= 0) & (_codes(map(_part("domain"), counts), dict.fromkeys(_DOMAINS, 0), len(counts)) >= 0)
        keys = list(compress(counts, ours.tolist()))
        micro = np.fromiter(counts.values(), dtype=np.int64, count=len(counts))[ours]
        against = _codes(map(_part("bin"), keys), {FOR: 0}, len(keys)) < 0
        day = np.fromiter((key.day for key in keys), dtype=np.int64, count=len(keys))
        return cls(keys, day, column[ours], micro, against)

    def coded(self, part: str, codes: Mapping[str, int]) -> Ints:
        return _codes(map(_part(part), self.keys), codes, len(self.keys))

    def named(self, part: str) -> _Named:
        names = sorted(set(map(_part(part), self.keys)))
        places = {name: place for place, name in enumerate(names)}
        codes = self.coded(part, places)
        return _Named(names, codes, codes != places.get(ANY, -1))


@dataclass(frozen=True, slots=True)
class _Nodes:
    """The nodes that rows belong to: their paths, sorted, and the place of each row's."""

    paths: Sequence[Path]
    of_row: Ints

    @classmethod
    def of(cls, codes: Sequence[Ints], names: Sequence[Sequence[str]]) -> _Nodes:
        """From one code per part of the path, −1 where it has ended."""
        sizes = tuple(len(each) + 1 for each in names)
        distinct, of_row = np.unique(np.ravel_multi_index([each + 1 for each in codes], sizes), return_inverse=True)
        parts = np.unravel_index(distinct, sizes)
        depth = np.sum([part > 0 for part in parts], axis=0).tolist()
        whole = zip(*(map(["", *name].__getitem__, part) for name, part in zip(names, parts, strict=True)), strict=True)
        return cls([path[:deep] for path, deep in zip(whole, depth, strict=True)], of_row)

    def gathered(self, masses: _Masses, robustness: RobustnessPrior) -> AgreementTable:
        columns, column = np.unique(masses.column, return_inverse=True)
        place = self.of_row * max(len(columns), 1) + column
        daily = DailyMasses.of(place, masses.day, masses.micro, masses.against)
        return AgreementTable(
            self.paths, columns, daily, trusted_shares(daily, robustness, daily_cap=robustness.daily_cap)
        )


def _codes(names: Iterable[str], codes: Mapping[str, int], count: int) -> Ints:
    """The code of each name; −1 for one that has none."""
    return np.fromiter(map(codes.get, names, repeat(-1)), dtype=np.int64, count=count)


def node_path(key: EvidenceKey) -> Path:
    """The node that an observation was made at: without an agent at the model, without either at the domain."""
    if key.agent != ANY:
        return (key.domain, key.model, key.agent)
    return (key.domain, key.model) if key.model != ANY else (key.domain,)


def places_of(paths: Iterable[Path], among: Mapping[Path, int]) -> Ints:
    """Where each path stands among those of one level; −1 for one of another level."""
    return np.array([among.get(path, -1) for path in paths], dtype=np.int64)


def numbered(paths: Iterable[Path]) -> dict[Path, int]:
    """Each path once with its place among them, in their order."""
    return {path: place for place, path in enumerate(dict.fromkeys(paths))}
