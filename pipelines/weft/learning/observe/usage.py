"""What became of each content: one wide table by content hash, quick to forget (FBK-6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import NamedTuple

import numpy as np

from weft.domain.arrays import Floats, Ints
from weft.domain.ids import ContentHash
from weft.learning.aliases import NO_ALIASES, ContentAliases
from weft.learning.evidence import MICRO, Evidence
from weft.learning.observe.verdicts import is_good
from weft.learning.parameters import INCLUSION, NEGATIVE, POSITIVE, REFERENCE, RETRIEVAL
from weft.learning.priors import UsagePrior
from weft.learning.recency import Discount, capped_share, recency
from weft.learning.uses import DictionaryColumn, Uses, numbered

NEVER = -1
"""The day of the last feedback on a content without any."""

_BINS: Mapping[str, int] = {
    bin_: place for place, bin_ in enumerate((POSITIVE, NEGATIVE, RETRIEVAL, INCLUSION, REFERENCE))
}
"""The column of each kind of mass: those of outcomes first."""


_OTHER = -1  # of masses that are no outcome and no use, such as what learned triggers rest on


@dataclass(frozen=True, slots=True, eq=False)
class ContentSignals:
    """What is known of contents by what became of them; a row per content, all columns (n,)."""

    usage: Floats  # belief that the next outcome is good, in (0, 1): the mean of Beta(prior + good, prior + bad)
    deviation: Floats  # standard deviation of that belief
    positive: Floats  # Good and bad outcomes as they count today, in observations
    negative: Floats
    # Exponential moving averages, in events a day: over days d of age a, (1 − α) · Σ α^a · events of d, with α =
    # 2^(−1 / half-life)
    retrieval: Floats
    inclusion: Floats
    reference: Floats
    citations: Floats  # references ever, each as far as its match was sure; they do not fade
    last_feedback: Ints  # int64, UTC days since the epoch of the last of any of these; `NEVER` without


class Usage:
    """The table; a content that was never heard of has the prior's row."""

    __slots__ = ("_rows", "_table")

    def __init__(self, rows: Mapping[str, int], table: ContentSignals) -> None:
        """Keep a table whose row 0 is the prior's, and where each content stands in it."""
        self._rows = rows
        self._table = table

    def signals(self, hashes: Sequence[ContentHash]) -> ContentSignals:
        """The rows of contents, in their order."""
        places = self._places(hashes)
        return ContentSignals(*(getattr(self._table, name)[places] for name in ContentSignals.__slots__))

    def _places(self, hashes: Sequence[ContentHash]) -> Ints:
        if not self._rows:
            return np.zeros(len(hashes), dtype=np.int64)
        return np.fromiter(map(self._rows.get, hashes, repeat(0)), np.int64, len(hashes))


def read_usage(prior: UsagePrior, evidence: Evidence, today: int, aliases: ContentAliases = NO_ALIASES) -> Usage:
    """The table of every content with evidence of its use, as it counts on the day `today`.

    Time is linear in the number of masses; sums are of whole micro-units, the same in any order.
    """
    uses = Uses.of(evidence.usage).columns()
    bins = np.array([_place(name) for name in uses.bin.values], dtype=np.int64)[uses.bin.codes]
    counts = bins != _OTHER
    bin_, day, micro = bins[counts], uses.day[counts], uses.micro[counts]
    del bins  # of five million events every column takes 40 MB
    rows = {name: number + 1 for number, name in enumerate(uses.content.values)}
    row = uses.content.codes[counts] + 1
    ever, counted = (np.zeros((len(rows) + 1, len(_BINS)), dtype=np.int64) for _ in range(2))
    np.add.at(ever, (row, bin_), micro)
    last = np.full(len(rows) + 1, NEVER, dtype=np.int64)
    np.maximum.at(last, row[micro > 0], day[micro > 0])
    micro = Discount(today, prior.half_life_days).of_days(micro.astype(np.float64), day).astype(np.int64)
    np.add.at(counted, (row, bin_), micro)
    judged = bin_ <= _BINS[NEGATIVE]
    principal = DictionaryColumn(uses.principal.codes[counts][judged], uses.principal.values)
    _cap(counted, prior.principal_cap, _Outcomes(row[judged], principal, bin_[judged], micro[judged]))
    return Usage(aliases.with_aliases(rows), _signals(prior, _observations(counted), _observations(ever), last))


def _place(name: str) -> int:
    """The column that a bin counts in."""
    good = is_good(name)
    return _BINS.get(name, _OTHER) if good is None else _BINS[POSITIVE if good else NEGATIVE]


class _Outcomes(NamedTuple):
    """Masses of good and bad outcomes; all columns (masses,)."""

    row: Ints  # of the content in the table
    principal: DictionaryColumn
    bin: Ints  # the column that each counts in
    micro: Ints


def _cap(counted: Ints, cap: float, outcomes: _Outcomes) -> None:
    """Take from `counted` what any one principal's outcomes of one content come to beyond the cap (LRN-3).

    Good and bad shrink alike, to whole micro-units. Masses whose principal is not known stay as they are.
    """
    first, speaker = numbered((outcomes.row, len(counted)), (outcomes.principal.codes, len(outcomes.principal.values)))
    masses = np.zeros((len(first), _BINS[NEGATIVE] + 1), dtype=np.int64)
    np.add.at(masses, (speaker, outcomes.bin), outcomes.micro)
    masses = np.maximum(masses, 0)
    share = capped_share(masses.sum(axis=1) / MICRO, cap)
    share[outcomes.principal.holds("")[first]] = 1.0
    masses -= np.rint(masses * share[:, None]).astype(np.int64)
    for place in (_BINS[POSITIVE], _BINS[NEGATIVE]):
        np.subtract.at(counted[:, place], outcomes.row[first], masses[:, place])


def _observations(micro: Ints) -> Floats:
    """A negative balance, of what was taken back before it came, counts as none."""
    return np.asarray(np.maximum(micro, 0) / MICRO)


def _signals(prior: UsagePrior, counted: Floats, ever: Floats, last: Ints) -> ContentSignals:
    columns = {name: counted[:, place] for name, place in _BINS.items()}
    a, b = prior.positive + columns[POSITIVE], prior.negative + columns[NEGATIVE]
    per_day = 1.0 - recency(1, prior.half_life_days)
    return ContentSignals(
        usage=a / (a + b),
        deviation=np.sqrt(a * b / (a + b + 1.0)) / (a + b),
        positive=columns[POSITIVE],
        negative=columns[NEGATIVE],
        retrieval=per_day * columns[RETRIEVAL],
        inclusion=per_day * columns[INCLUSION],
        reference=per_day * columns[REFERENCE],
        citations=ever[:, _BINS[REFERENCE]],
        last_feedback=last,
    )
