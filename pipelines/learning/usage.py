"""What became of each content: one wide table by content hash, quick to forget (FBK-6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from pipelines.domain.ids import ContentHash
from pipelines.learning.evidence import MICRO, Evidence
from pipelines.learning.observations import INCLUSION, NEGATIVE, POSITIVE, REFERENCE, RETRIEVAL
from pipelines.learning.priors import UsagePrior
from pipelines.learning.recency import Discount, recency
from pipelines.learning.robustness import capped_share

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NEVER = -1
"""The day of the last feedback on a content without any."""

_BINS: Mapping[str, int] = {
    bin_: place for place, bin_ in enumerate((POSITIVE, NEGATIVE, RETRIEVAL, INCLUSION, REFERENCE))
}


@dataclass(frozen=True, slots=True, eq=False)
class ContentSignals:
    """What is known of contents by what became of them; a row per content, all columns (n,).

    Attributes:
        usage: Belief that the next outcome is good, in (0, 1): the mean of Beta(prior + good, prior + bad).
        deviation: Standard deviation of that belief.
        positive, negative: Good and bad outcomes as they count today, in observations.
        retrieval, inclusion, reference: Exponential moving averages, in events a day: over days d of age a,
            (1 − α) · Σ α^a · events of d, with α = 2^(−1 / half-life).
        citations: References ever, each as far as its match was sure; they do not fade.
        last_feedback: int64, UTC days since the epoch of the last of any of these; `NEVER` without.
    """

    usage: Floats
    deviation: Floats
    positive: Floats
    negative: Floats
    retrieval: Floats
    inclusion: Floats
    reference: Floats
    citations: Floats
    last_feedback: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """What counts of the outcomes under one question; a row per content that has any, all columns (n,).

    Attributes:
        rows: int64, where each content stands in the table, ascending.
        positive, negative: Good and bad outcomes as they count today, in observations.
    """

    rows: Ints
    positive: Floats
    negative: Floats

    def of(self, places: Ints) -> tuple[Floats, Floats]:
        """Good and bad outcomes of contents by where they stand; 0 without any."""
        at = np.minimum(np.searchsorted(self.rows, places), len(self.rows) - 1)
        met = self.rows[at] == places
        return np.where(met, self.positive[at], 0.0), np.where(met, self.negative[at], 0.0)


class Usage:
    """The table; a content that was never heard of has the prior's row."""

    __slots__ = ("_asked", "_prior", "_rows", "_table")

    def __init__(
        self, prior: UsagePrior, rows: Mapping[str, int], table: ContentSignals, asked: Mapping[str, Asked]
    ) -> None:
        """Keep a table whose row 0 is the prior's, where each content stands in it, and its part by question."""
        self._prior = prior
        self._rows = rows
        self._table = table
        self._asked = asked

    def means(self, hashes: Sequence[ContentHash], question: str = "") -> Floats:
        """What all questions but one say, float64 (n,) in (0, 1)."""
        places = self._places(hashes)
        asked = self._asked.get(question)
        if asked is None:
            return np.asarray(self._table.usage[places])
        good, bad = asked.of(places)
        return _mean(self._prior, self._table.positive[places] - good, self._table.negative[places] - bad)

    def knows(self, question: str) -> bool:
        """Whether anything is known that came of a question."""
        return question in self._asked

    def precedents(self, hashes: Sequence[ContentHash], question: str) -> Floats:
        """What one question alone says, float64 (n,) in (0, 1)."""
        asked, places = self._asked.get(question), self._places(hashes)
        good, bad = np.zeros((2, len(places))) if asked is None else asked.of(places)
        return _mean(self._prior, good, bad)

    def signals(self, hashes: Sequence[ContentHash]) -> ContentSignals:
        """The rows of contents, in their order."""
        places = self._places(hashes)
        return ContentSignals(*(getattr(self._table, name)[places] for name in ContentSignals.__slots__))

    def _places(self, hashes: Sequence[ContentHash]) -> Ints:
        if not self._rows:
            return np.zeros(len(hashes), dtype=np.int64)
        return np.fromiter(map(self._rows.get, hashes, repeat(0)), np.int64, len(hashes))


def read_usage(prior: UsagePrior, evidence: Evidence, today: int) -> Usage:
    """The table of every content with evidence of its use, as it counts on the day `today`.

    Time is linear in the number of masses; sums are of whole micro-units, the same in any order.
    """
    rows: dict[str, int] = {}
    speakers: dict[tuple[str, str], int] = {}
    questions: dict[str, int] = {"": 0}
    entries = [
        (
            rows.setdefault(key.content_hash, len(rows) + 1),
            _BINS[key.bin],
            key.day,
            micro,
            speakers.setdefault((key.content_hash, key.principal), len(speakers)),
            questions.setdefault(key.question, len(questions)),
        )
        for key, micro in evidence.usage.items()
        if key.bin in _BINS
    ]
    row, bin_, day, micro, speaker, question = np.array(entries, dtype=np.int64).reshape(-1, 6).T
    discounted = Discount(today, prior.half_life_days).of_days(micro.astype(np.float64), day).astype(np.int64)
    ever, counted = (np.zeros((len(rows) + 1, len(_BINS)), dtype=np.int64) for _ in range(2))
    np.add.at(ever, (row, bin_), micro)
    np.add.at(counted, (row, bin_), discounted)
    share = np.ones(len(speakers))
    if speakers:
        share = _cap(counted, prior.principal_cap, speakers, rows, (speaker, bin_, discounted))
    last = np.full(len(rows) + 1, NEVER, dtype=np.int64)
    np.maximum.at(last, row[micro > 0], day[micro > 0])
    asked = _by_question(questions, (question, row, bin_), discounted * share[speaker])
    return Usage(prior, rows, _signals(prior, _observations(counted), _observations(ever), last), asked)


def _by_question(questions: Mapping[str, int], where: tuple[Ints, Ints, Ints], counted: Floats) -> Mapping[str, Asked]:
    """Good and bad outcomes of contents by the question they came of; what is not known to come of one is left out."""
    question, row, bin_ = where
    told = (question > 0) & ((bin_ == _BINS[POSITIVE]) | (bin_ == _BINS[NEGATIVE]))
    if not told.any():
        return {}
    width = int(row.max()) + 1
    cells, of_cell = np.unique(question[told] * width + row[told], return_inverse=True)
    sums = np.zeros((len(cells), 2), dtype=np.int64)
    np.add.at(
        sums, (of_cell, (bin_[told] == _BINS[NEGATIVE]).astype(np.int64)), np.rint(counted[told]).astype(np.int64)
    )
    said, at = np.divmod(cells, width)
    known = _observations(sums)
    begin, end = (np.searchsorted(said, np.arange(len(questions)), side=side) for side in ("left", "right"))
    return {
        name: Asked(at[part], known[part, 0], known[part, 1])
        for name, number in questions.items()
        if (part := slice(int(begin[number]), int(end[number]))).stop > part.start
    }


def _cap(
    counted: Ints,
    cap: float,
    speakers: Mapping[tuple[str, str], int],
    rows: Mapping[str, int],
    masses: tuple[Ints, Ints, Ints],
) -> Floats:
    """Take from `counted` what any one principal's outcomes of one content come to beyond the cap (LRN-3).

    Good and bad shrink alike, to whole micro-units. Masses whose principal is not known stay as they are.

    Returns:
        The share of each one's outcomes that counts, float64 (speakers,).
    """
    speaker, bin_, micro = masses
    said = np.zeros((len(speakers), len(_BINS)), dtype=np.int64)
    np.add.at(said, (speaker, bin_), micro)
    outcomes = np.maximum(said[:, [_BINS[POSITIVE], _BINS[NEGATIVE]]], 0)
    share = capped_share(outcomes.sum(axis=1) / MICRO, cap)
    share[[not principal for _, principal in speakers]] = 1.0
    surplus = outcomes - np.rint(outcomes * share[:, None]).astype(np.int64)
    row = np.array([rows[content_hash] for content_hash, _ in speakers], dtype=np.int64)
    for column, place in enumerate((_BINS[POSITIVE], _BINS[NEGATIVE])):
        np.subtract.at(counted[:, place], row, surplus[:, column])
    return share


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


def _mean(prior: UsagePrior, positive: Floats, negative: Floats) -> Floats:
    """Belief after so many good and bad outcomes; a difference that rounding made negative counts as none."""
    a, b = prior.positive + np.maximum(positive, 0.0), prior.negative + np.maximum(negative, 0.0)
    return np.asarray(a / (a + b))
