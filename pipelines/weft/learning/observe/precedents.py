"""What came of contents under questions, a principal's last word each: what lies below the ranking (LRN-18).

Verdicts on one result and corrections count the same: of each principal the last on a content under a question holds,
as one observation. Where a principal gave none, what its other outcomes of the content come to counts, at most as one.
All fade with the project's half-life. Where others speak, one principal's many words of a day that nobody shares hardly
count (LRN-20); where hardly anybody else speaks there is nobody to protect.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from weft.domain.arrays import Flags, Floats, Ints
from weft.learning.evidence import MICRO, Evidence
from weft.learning.families.random_effect import learned_variance
from weft.learning.observe.allowances import are_new, newcomer_shares
from weft.learning.observe.verdicts import QUESTION, VERDICT, VerdictBin
from weft.learning.parameters import NEGATIVE, POSITIVE
from weft.learning.priors import OutcomePrior
from weft.learning.recency import recency
from weft.learning.uses import UseColumns, Uses, numbered

_EVEN = 0.5  # between right and wrong


class VerdictTable(NamedTuple):
    """What principals hold of contents under questions, a row each."""

    content: Ints  # Numbers of names
    question: Ints
    principal: Ints
    good: Floats  # 1 for right, 0 for wrong, a share between for what several outcomes come to
    weight: Floats  # observations, in [0, 1]
    share: Floats  # of the best score on its page that the result was shown with, in [0, 1]; NaN where it was not shown
    day: Ints  # Of it, since the epoch and since midnight; ms is 0 of what was not said outright
    ms: Ints
    spoken: Flags  # whether it was said outright
    # what all new principals of its day count together at most on one content; infinite of those that are not
    # new see (FBK-13)
    together: Floats

    def take(self, rows: Ints | Flags) -> VerdictTable:
        """Some rows."""
        return VerdictTable._make(column[rows] for column in self)


@dataclass(frozen=True, eq=False)
class Precedents:
    """Every word in force at one time."""

    prior: OutcomePrior
    verdicts: VerdictTable
    contents: Sequence[str]  # names by number: a hash, or the URI of a place
    questions: Sequence[str]  # Fingerprints by number
    principals: Sequence[str]
    texts: Mapping[str, str]  # of questions, by fingerprint, as far as they are known
    content_variance: float  # Of both effects, as outcomes show it
    question_variance: float

    def __len__(self) -> int:
        return len(self.verdicts.content)

    def under(self, question: str) -> Ints:
        """Rows of the verdicts under a question, by its fingerprint."""
        return self._by_question.get(question, _NONE)

    def of_content(self, number: int) -> Ints:
        """Rows of the verdicts on a content, by its number."""
        return self._by_content.get(number, _NONE)

    def expected(self, shares: Floats) -> Floats:
        """Log-odds of a good outcome, as shares of the best score let expect; the least for what was not shown."""
        curve = self.prior.curve
        return np.asarray(curve.intercept + curve.slope * np.nan_to_num(shares, nan=0.0))

    def unconditional(self, shares: Floats) -> Floats:
        """The same over all questions: their effects pull log-odds towards 0 (MacKay, Neural Computation 1992)."""
        return self.expected(shares) / _pull(self.question_variance)

    @cached_property
    def _by_question(self) -> Mapping[str, Ints]:
        return {
            self.questions[number]: rows for number, rows in _grouped(self.verdicts.question) if self.questions[number]
        }

    @cached_property
    def _by_content(self) -> Mapping[int, Ints]:
        return dict(_grouped(self.verdicts.content))


_NONE = np.zeros(0, dtype=np.int64)


def read_precedents(prior: OutcomePrior, evidence: Evidence, today: int, *, half_life_days: float) -> Precedents:
    """The verdicts in force on the day `today`, in time linear in the masses of use."""
    uses = Uses.of(evidence.usage).columns()
    texts = {
        uses.question.values[question]: uses.bin.values[code].removeprefix(QUESTION)
        for code, question in _named_by(uses.bin.codes, uses.question.codes, uses.bin.values, QUESTION)
    }
    current = (uses.day <= today) & (uses.micro > 0)
    verdicts = _joined(_spoken(uses, current), _implied(uses, current), prior)
    names = uses.content.values, uses.question.values, uses.principal.values
    faded, new = _faded(verdicts.day, today, half_life_days), are_new(verdicts.principal, verdicts.day)
    shares = _shares(verdicts, names, new, prior)
    most = np.where(new, prior.newcomers * faded, np.inf)
    verdicts = verdicts._replace(weight=verdicts.weight * faded * shares, together=most)
    plain = Precedents(prior, verdicts, *names, texts, prior.content_variance, prior.question_variance)
    variances = _variances(plain)
    return Precedents(prior, verdicts, *names, texts, *variances)


class _Columns(NamedTuple):
    content: Ints
    question: Ints
    principal: Ints

    @classmethod
    def of(cls, uses: UseColumns, rows: Ints) -> _Columns:
        return cls(uses.content.codes[rows], uses.question.codes[rows], uses.principal.codes[rows])

    def take(self, rows: Ints) -> _Columns:
        return _Columns._make(column[rows] for column in self)

    def numbered(self) -> tuple[Ints, Ints]:
        """Rows that share all three: the first row of each, and the number of each row."""
        return numbered(*((column, int(column.max(initial=0)) + 1) for column in self))


def _named_by(codes: Ints, questions: Ints, names: Sequence[str], prefix: str) -> Iterable[tuple[int, int]]:
    """Pairs of bin and question whose bin begins with a prefix, each once."""
    some = np.array([name.startswith(prefix) for name in names], dtype=bool)[codes]
    pairs = np.unique(np.stack([codes[some], questions[some]], axis=1), axis=0)
    return ((int(code), int(question)) for code, question in pairs)


def _spoken(uses: UseColumns, current: Flags) -> VerdictTable:
    """Of each principal the last word on each content under each question."""
    names, codes = uses.bin.values, uses.bin.codes
    parsed = {code: VerdictBin.of(name) for code, name in enumerate(names) if name.startswith(VERDICT)}
    verdict = np.zeros(len(names), dtype=bool)
    verdict[list(parsed)] = True
    rows = np.flatnonzero(verdict[codes] & current)
    read = [parsed[code] for code in codes[rows].tolist()]
    ms = np.array([each.ms for each in read], dtype=np.int64)
    good = np.array([each.good for each in read], dtype=np.float64)
    share = np.array([np.nan if each.share is None else each.share for each in read], dtype=np.float64)
    of = _Columns.of(uses, rows)
    _, number = of.numbered()
    order = np.lexsort((-good, ms, uses.day[rows], number))  # of words of one moment, the one against holds
    last = order[np.append(np.diff(number[order]) > 0, True)] if len(order) else order
    weight = np.minimum(uses.micro[rows] / MICRO, 1.0)
    spoken = np.ones(len(rows), dtype=bool)
    return VerdictTable(*of, good, weight, share, uses.day[rows], ms, spoken, _alone(len(rows))).take(last)


def _implied(uses: UseColumns, current: Flags) -> VerdictTable:
    """What other outcomes of a content under a question come to, of each principal, in observations."""
    good = uses.bin.holds(POSITIVE)
    rows = np.flatnonzero((good | uses.bin.holds(NEGATIVE)) & current)
    of, observations = _Columns.of(uses, rows), uses.micro[rows] / MICRO
    first, number = of.numbered()
    total, praised = (np.zeros(len(first)) for _ in range(2))
    np.add.at(total, number, observations)
    np.add.at(praised, number, np.where(good[rows], observations, 0.0))
    last = np.zeros(len(first), dtype=np.int64)
    np.maximum.at(last, number, uses.day[rows])
    share = np.divide(praised, total, out=np.zeros_like(total), where=total > 0.0)
    unknown, never = np.full(len(first), np.nan), np.zeros(len(first), dtype=np.int64)
    return VerdictTable(*of.take(first), share, total, unknown, last, never, never.astype(bool), _alone(len(first)))


def _alone(count: int) -> Floats:
    """Words that share what they count with nobody, as long as nothing is known of who gave them."""
    return np.full(count, np.inf)


def _joined(spoken: VerdictTable, implied: VerdictTable, prior: OutcomePrior) -> VerdictTable:
    """Both, less what is implied by who spoke outright."""
    both = VerdictTable(*(np.concatenate(pair) for pair in zip(spoken, implied, strict=True)))
    _, number = _Columns(both.content, both.question, both.principal).numbered()
    has_spoken = np.zeros(int(number.max(initial=0)) + 1, dtype=bool)
    has_spoken[number[both.spoken]] = True
    rest = both.take(both.spoken | ~has_spoken[number])
    weight = np.where(rest.spoken, rest.weight, np.minimum(rest.weight * prior.implied, 1.0))
    return rest._replace(weight=weight)


def _faded(day: Ints, today: int, half_life_days: float) -> Floats:
    days, places = np.unique(day, return_inverse=True)
    return np.array([recency(today - each, half_life_days) for each in days.tolist()])[places]


def _shares(
    verdicts: VerdictTable, names: tuple[Sequence[str], Sequence[str], Sequence[str]], new: Flags, prior: OutcomePrior
) -> Floats:
    """What each word counts, by how many its principal gave that day that nobody shares (LRN-20).

    Whoever says the same of the same content under the same question vouches for it: it counts in full. Of n verdicts
    a day that nobody else shares each counts (daily_words / n)^flood_power: who floods is hardly heard at all. A crowd
    of new principals counts as `newcomers` of them on each content under a question, shares what so many may say that
    day, and vouches for nobody (FBK-13).
    """
    named = np.array([name != "" for name in names[2]], dtype=bool)[verdicts.principal]
    crowded = _in_a_crowd(verdicts, new & named, prior.newcomers)
    _, cell = numbered((verdicts.content, len(names[0])), (verdicts.question, len(names[1])))
    counted = newcomer_shares(verdicts.principal, verdicts.day, cell, most=prior.newcomers)
    if len(np.unique(verdicts.principal[named])) < prior.crowd:
        return counted
    shared = _is_shared(verdicts, crowded)
    start = int(verdicts.day.min(initial=0))
    first, number = numbered(
        (np.where(crowded, len(names[2]), verdicts.principal), len(names[2]) + 1),
        (verdicts.day - start, int(verdicts.day.max(initial=0)) - start + 1),
        (verdicts.spoken.astype(np.int64), 2),  # clicks take nothing from verdicts
    )
    given = np.bincount(number, weights=np.where(shared, 0.0, counted), minlength=len(first))[number]
    daily = prior.daily_words * np.where(crowded, prior.newcomers, 1)
    share = np.minimum(1.0, (daily / np.maximum(given, 1.0)) ** prior.flood_power)
    return np.where(named & ~shared, share, 1.0) * counted


def _in_a_crowd(verdicts: VerdictTable, new: Flags, most: int) -> Flags:
    """Whether a word is of a new principal, on a day on which more of these speak than count in full."""
    pairs = np.unique(np.stack([verdicts.day[new], verdicts.principal[new]]), axis=1)
    days, counts = np.unique(pairs[0], return_counts=True)
    return new & np.isin(verdicts.day, days[counts > most])


def _is_shared(verdicts: VerdictTable, crowded: Flags) -> Flags:
    """Whether somebody else, who is of no crowd, holds the same of the same content under the same question."""
    sides = np.stack([verdicts.content, verdicts.question, (verdicts.good > _EVEN).astype(np.int64)])
    _, cell = np.unique(sides, axis=1, return_inverse=True)
    cell = cell.reshape(-1)
    speakers = np.unique(np.stack([cell, verdicts.principal])[:, ~crowded], axis=1)[0]
    return np.asarray((np.bincount(speakers, minlength=int(cell.max(initial=0)) + 1)[cell] + crowded) > 1)


def _variances(precedents: Precedents) -> tuple[float, float]:
    """Variance of both effects, as verdicts that were said of what was shown have it.

    Words on one content under one question tell the question's effect. What they come to under several questions tells
    the content's.
    """
    verdicts, prior, spread = precedents.verdicts, precedents.prior, precedents.prior.variance_spread
    sizes = len(precedents.contents), len(precedents.questions), len(precedents.principals)
    some = _of_several(verdicts.take(verdicts.spoken & ~np.isnan(verdicts.share)))
    expected = precedents.expected(some.share)
    first, cell = numbered((some.content, sizes[0]), (some.question, sizes[1]))
    question = learned_variance(expected, some.good, some.weight, cell, prior=prior.question_variance, spread=spread)
    counts = np.maximum(np.bincount(cell, minlength=len(first)), 1)
    mean_of = [np.bincount(cell, weights=column, minlength=len(first)) / counts for column in (expected, some.good)]
    # What one principal says of a content under many questions shows its taste, and is said by whoever floods.
    taste, _ = numbered((some.content[first], sizes[0]), (some.principal[first], sizes[2]))
    content = learned_variance(
        (mean_of[0] / _pull(question))[taste],
        mean_of[1][taste],
        np.ones(len(taste)),
        some.content[first][taste],
        prior=prior.content_variance,
        spread=spread,
    )
    return content, question


def _pull(variance: float) -> float:
    """By what log-odds have to be divided to hold on average over a normal effect of some variance."""
    return float(np.sqrt(1.0 + np.pi * variance / 8.0))


def _of_several(verdicts: VerdictTable) -> VerdictTable:
    """Words on contents that several spoke of: what one alone says of one shows a taste, or a flood (LRN-20)."""
    speakers = np.unique(np.stack([verdicts.content, verdicts.principal], axis=1), axis=0)[:, 0]
    return verdicts.take(
        np.bincount(speakers, minlength=int(verdicts.content.max(initial=0)) + 1)[verdicts.content] > 1
    )


def _grouped(numbers: Ints) -> Iterable[tuple[int, Ints]]:
    """Rows by number."""
    order = np.argsort(numbers, kind="stable")
    distinct, begin = np.unique(numbers[order], return_index=True)
    return zip(distinct.tolist(), np.split(order, begin[1:]) if len(begin) else (), strict=True)
