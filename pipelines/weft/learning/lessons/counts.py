"""Everything that was said of lessons, summed per lesson in whole micro-units: the same bits in any order (LES-7).

Two lessons are one where the net mass of their pair is > 0 (LES-13): people whose last word is that both mean the same,
less people whose last word is that they do not. A pair has no direction. A night's word counts where no person has said
anything, so that what people keep apart, or cannot agree on, stays two.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from weft.domain.arrays import Flags, Floats, Ints
from weft.domain.ids import principal_fingerprint
from weft.domain.lesson import LessonPriority, LessonResult, LessonSource
from weft.learning.evidence import MICRO
from weft.learning.lesson_priors import LessonPrior
from weft.learning.lessons.rows import (
    ALIAS,
    APART,
    GOOD_WORDS,
    INJECTED,
    NIGHT,
    NOTE,
    PREFIX,
    RESTORE,
    RETIRE,
    REVISES,
    SAYING,
    TEXT,
    WORD,
)
from weft.learning.observe.allowances import newcomer_shares
from weft.learning.recency import recency
from weft.learning.uses import UseColumns, numbered

SOURCES, PRIORITIES, RESULTS = tuple(LessonSource), tuple(LessonPriority), tuple(LessonResult)
_GOOD = np.array([result.value in GOOD_WORDS for result in RESULTS])
_SOURCE, _PRIORITY = ({member.value: at for at, member in enumerate(some)} for some in (SOURCES, PRIORITIES))
_RESULT = {result.value: at for at, result in enumerate(RESULTS)}

_NIGHT = principal_fingerprint(NIGHT)


@dataclass(frozen=True, slots=True)
class Opinion:
    """Of one lesson, the last word of each person."""

    # who stands for it less who stands against it, in micro-units of people; a new one counts less among many
    # (`newcomer_shares`)
    balance: int
    against_last: bool  # whether the newest of these words is against it
    split: bool  # whether people disagree
    word: str  # the newest word against it; "" where there is none

    @property
    def is_against(self) -> bool:
        """Whether people want it gone: more of them, or as many with the newest word."""
        return self.balance < 0 or (self.balance == 0 and self.against_last)


class LessonCounts:
    """The masses of every lesson that anything was said of.

    Attributes:
        ids: In the order of all arrays.
        of_class: int64 (n,), the place of each lesson's representative: its own where it is merged into none (LES-13).
        separate: Pairs of ids that somebody spoke of and that are two.
    """

    def __init__(self, uses: UseColumns, prior: LessonPrior, today: int) -> None:
        self._prior = prior
        self._today = today
        self._bins = uses.bin.values
        self._kinds: dict[str, list[tuple[int, str]]] = defaultdict(list)
        prefixed = np.zeros(len(self._bins), dtype=bool)
        texts, notes = self._kinds[TEXT], self._kinds[NOTE]
        for code, name in enumerate(self._bins):
            if name.startswith(TEXT):  # nearly all that there are
                prefixed[code] = True
                texts.append((code, name))
            elif name.startswith(PREFIX):
                prefixed[code] = True
                if name.startswith(NOTE):
                    notes.append((code, name))
                else:
                    self._kinds[name[: name.find(":", len(PREFIX)) + 1] or name].append((code, name))
        current = (uses.day <= today) & (uses.micro > 0)
        at = np.flatnonzero(prefixed[uses.bin.codes] & current) if len(prefixed) else np.zeros(0, dtype=np.int64)
        self.day, self.micro, self.bin = uses.day[at], uses.micro[at], uses.bin.codes[at]
        self.principal, self._principals = uses.principal.codes[at], uses.principal.values
        self.question, self._questions = uses.question.codes[at], uses.question.values
        content, words = uses.content.codes[at], uses.content.values
        order = sorted(np.flatnonzero(np.bincount(content)).tolist(), key=words.__getitem__)
        self.ids: Sequence[str] = [words[code] for code in order]
        rank = np.zeros(len(words), dtype=np.int64)
        rank[order] = np.arange(len(order))
        self.lesson = rank[content]
        links = self._linked()
        self.separate = frozenset(frozenset({self.ids[one], self.ids[other]}) for one, other in links.separate)
        self.of_class = np.arange(len(self))
        self.of_class[list(links.representatives)] = list(links.representatives.values())
        self._groups = self.of_class[self.lesson]

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def place(self) -> Mapping[str, int]:
        """The place of each lesson by its id."""
        return {name: at for at, name in enumerate(self.ids)}

    @cached_property
    def sayings(self) -> Ints:
        """How often each class was said, by source and priority, in micro-units: int64 (n, sources, priorities)."""
        kinds = {code: _saying_kind(name) for code, name in self._named(SAYING)}
        rows, kind = self._rows_of(kinds)
        shape = (len(self), len(SOURCES) * len(PRIORITIES))
        return self._summed(self._groups[rows], kind, self.micro[rows], shape).reshape(
            len(self), len(SOURCES), len(PRIORITIES)
        )

    @cached_property
    def statements_by_source(self) -> Ints:
        """How often each class was said by each source, in micro-units: int64 (n, sources)."""
        return np.asarray(self.sayings.sum(axis=2))

    @cached_property
    def outcomes(self) -> Ints:
        """Outcomes of each class as they came, a person's words among them, in micro-units: int64 (n, results)."""
        shape = (len(self), len(RESULTS))
        reported, words = self._outcome_rows, self._words
        typed = np.array([_RESULT.get(word, -1) for word in words.word], dtype=np.int64)
        some = typed >= 0
        return self._summed(self._groups[reported[0]], reported[1], self.micro[reported[0]], shape) + self._summed(
            words.lesson[some], typed[some], np.full(int(some.sum()), MICRO), shape
        )

    @cached_property
    def counted(self) -> Ints:
        """What counts for and against each class today, in micro-units: int64 (n, 2).

        By origin and age; of one principal on one day at most `daily` observations of one class, unless nobody else
        says anything; and a person's last word alone (LES-4, LRN-20).
        """
        return self._reported + self._typed(self._prior.weights["person"])

    @cached_property
    def counted_of_sources(self) -> Ints:
        """The same as `counted`, a person's word as one outcome: it outranks others on its lesson, and is no four
        observations of where that came from.
        """
        return self._reported + self._typed(1.0)

    @cached_property
    def _reported(self) -> Ints:
        rows, result, by_origin = self._outcome_rows
        mass = np.rint(self.micro[rows] * self._bounded(rows) * by_origin * self._faded(self.day[rows]))
        return self._summed(self._groups[rows], np.where(_GOOD[result], 0, 1), mass, (len(self), 2))

    def _typed(self, weight: float) -> Ints:
        words = self._words
        existing = np.array([word in _RESULT for word in words.word], dtype=bool)
        mass = np.rint(np.where(existing, weight * words.share * self._faded(words.day), 0.0) * MICRO)
        return self._summed(words.lesson, np.where(words.good, 0, 1), mass, (len(self), 2))

    @cached_property
    def opinions(self) -> Mapping[int, Opinion]:
        """What people think of each class that any of them spoke of, by its place."""
        words, hits = self._words, {}
        for place in np.unique(words.lesson).tolist():
            of = words.take(np.flatnonzero(words.lesson == place))
            shares = np.rint(of.share * MICRO).astype(np.int64)
            order = np.lexsort((~of.good, of.ms, of.day)).tolist()  # of words of one moment, the one against holds
            against = [at for at in order if not of.good[at]]
            hits[place] = Opinion(
                int(shares[of.good].sum() - shares[~of.good].sum()),
                not of.good[order[-1]],
                bool(of.good.any() and not of.good.all()),
                of.word[against[-1]] if against else "",
            )
        return hits

    @cached_property
    def parents(self) -> Mapping[int, int]:
        """The place of the lesson that each revision was said instead of, where that one is known."""
        codes = {code for code, _ in self._named(REVISES)}
        rows = np.flatnonzero(np.isin(self.bin, list(codes))) if codes else np.zeros(0, dtype=np.int64)
        pairs = sorted({(int(self.lesson[row]), self._questions[self.question[row]]) for row in rows.tolist()})
        existing = ((child, self.place[name]) for child, name in pairs if name in self.place)
        return {child: parent for child, parent in existing if child != parent}

    @cached_property
    def injections(self) -> tuple[Ints, Ints]:
        """How often each lesson was injected, and on which day last, −1 where never: int64 (n,) each."""
        codes = [code for code, _ in self._named(INJECTED)]
        rows = np.flatnonzero(np.isin(self.bin, codes))
        last = np.full(len(self), -1, dtype=np.int64)
        np.maximum.at(last, self.lesson[rows], self.day[rows])
        return np.bincount(self.lesson[rows], minlength=len(self)), last

    def injected(self) -> Iterable[tuple[str, str, str, bool | None]]:
        """Each injection: its lesson, its bin, its day as text, and what came of it; None where nothing did yet.

        Bad where anything bad came of it, else good.
        """
        rows, result, _ = self._outcome_rows
        came: dict[tuple[int, int], bool] = {}
        for row, of in zip(rows.tolist(), result.tolist(), strict=True):
            key = int(self.lesson[row]), int(self.question[row])
            came[key] = came.get(key, True) and bool(_GOOD[of])
        codes = dict(self._named(INJECTED))
        for row in np.flatnonzero(np.isin(self.bin, list(codes))).tolist():
            key = int(self.lesson[row]), int(self.question[row])
            yield self.ids[key[0]], codes[int(self.bin[row])], str(self.day[row]), came.get(key)

    @cached_property
    def days(self) -> tuple[Ints, Ints]:
        """The first and the last day on which anything was said of each lesson: int64 (n,) each."""
        first = np.full(len(self), np.iinfo(np.int32).max, dtype=np.int64)
        last = np.full(len(self), -1, dtype=np.int64)
        np.minimum.at(first, self.lesson, self.day)
        np.maximum.at(last, self.lesson, self.day)
        return first, last

    def texts(self, places: Iterable[int]) -> dict[int, str]:
        """The bin of the text of each of some lessons: as most said it, of equals the first in order."""
        return self._commonest(TEXT, places)

    def notes(self, places: Iterable[int]) -> list[tuple[str, str]]:
        """What happened to some lessons, in no order: the id of each, and the bin of a note."""
        rows = np.flatnonzero(np.isin(self.lesson, list(places)))
        bins = ((row, self._bins[self.bin[row]]) for row in rows.tolist())
        return [(self.ids[self.lesson[row]], name) for row, name in bins if name.startswith(NOTE)]

    def naming(self, places: Iterable[int]) -> list[int]:
        """The places of lessons that were said instead of some, or of which it was said whether they are one."""
        wanted = {self.ids[place] for place in places}
        questions = [code for code, name in enumerate(self._questions) if name in wanted]
        kinds = [code for prefix in (REVISES, ALIAS, APART) for code, _ in self._named(prefix)]
        rows = np.isin(self.question, questions) & np.isin(self.bin, kinds)
        return [int(each) for each in np.unique(self.lesson[rows])]

    def members(self, place: int) -> list[int]:
        """The places of all lessons in a class."""
        return [int(each) for each in np.flatnonzero(self.of_class == self.of_class[place])]

    def _commonest(self, prefix: str, places: Iterable[int]) -> dict[int, str]:
        wanted = np.zeros(len(self), dtype=bool)
        wanted[list(places)] = True
        codes = np.zeros(len(self._bins), dtype=bool)
        codes[[code for code, _ in self._named(prefix)]] = True
        rows = np.flatnonzero(wanted[self.lesson] & codes[self.bin]) if len(self) else np.zeros(0, dtype=np.int64)
        totals: dict[tuple[int, int], int] = {}
        for row in rows.tolist():
            key = int(self.lesson[row]), int(self.bin[row])
            totals[key] = totals.get(key, 0) + int(self.micro[row])
        best: dict[int, tuple[int, str]] = {}
        for (lesson, code), micro in totals.items():
            hits = -micro, self._bins[code]
            best[lesson] = min(best.get(lesson, hits), hits)
        return {lesson: name for lesson, (_, name) in best.items()}

    def _named(self, prefix: str) -> Sequence[tuple[int, str]]:
        """Bins that begin so, up to and with their first colon, by code."""
        return self._kinds.get(prefix, [])

    def _rows_of(self, kinds: Mapping[int, int]) -> tuple[Ints, Ints]:
        """Rows whose bin is one of some, and what it is numbered by."""
        table = np.full(max(1, len(self._bins)), -1, dtype=np.int64)
        for code, kind in kinds.items():
            table[code] = kind
        hits = table[self.bin]
        rows = np.flatnonzero(hits >= 0)
        return rows, hits[rows]

    def _summed(self, group: Ints, column: Ints, micro: Floats | Ints, shape: tuple[int, int]) -> Ints:
        """Sums of whole numbers, exact below 2⁵³."""
        flat = np.bincount(group * shape[1] + column, weights=micro, minlength=shape[0] * shape[1])
        return np.rint(flat).astype(np.int64).reshape(shape)

    @cached_property
    def _outcome_rows(self) -> tuple[Ints, Ints, Floats]:
        """Rows of outcomes that no person typed, with the number of their result and what each counts by its origin."""
        kinds: dict[int, int] = {}
        weight = np.zeros(max(1, len(self._bins)))
        for result, number in _RESULT.items():
            for code, name in self._named(f"{PREFIX}{result}:"):
                origin = name.rpartition(":")[2]
                if origin in self._prior.weights:
                    kinds[code], weight[code] = number, self._prior.weights[origin]
        rows, results = self._rows_of(kinds)
        return rows, results, weight[self.bin[rows]]

    @cached_property
    def _words(self) -> _Words:
        """Of each person the last word on each class."""
        parsed = {code: name.removeprefix(WORD).split(":") for code, name in self._named(WORD)}
        parsed = {
            code: sayings
            for code, sayings in parsed.items()
            if sayings[0] in _RESULT or sayings[0] in {RETIRE, RESTORE}
        }
        rows, _ = self._rows_of(dict.fromkeys(parsed, 0))
        sayings = [parsed[code] for code in self.bin[rows].tolist()]
        ms = np.array([int(each[1]) for each in sayings], dtype=np.int64)
        good = np.array([each[0] in GOOD_WORDS for each in sayings], dtype=bool)
        lesson, principal, day = self._groups[rows], self.principal[rows], self.day[rows]
        _, number = numbered((lesson, max(1, len(self))), (principal, max(1, len(self._principals))))
        order = np.lexsort((~good, ms, day, number))  # of words of one moment, the one against holds
        last = order[np.append(np.diff(number[order]) != 0, True)] if len(order) else order
        share = newcomer_shares(principal[last], day[last], lesson[last], most=self._prior.newcomers)
        return _Words(lesson[last], day[last], ms[last], good[last], share, [sayings[at][0] for at in last.tolist()])

    def _bounded(self, rows: Ints) -> Floats:
        """The share of each outcome that counts, so that others are heard (LRN-20)."""
        group, principal, day = self._groups[rows], self.principal[rows], self.day[rows]
        if not len(rows) or self.lone:
            return np.ones(len(rows))
        start = int(day.min())
        days = int(day.max()) - start + 1
        _, number = np.unique((group * len(self._principals) + principal) * days + day - start, return_inverse=True)
        given = np.bincount(number, weights=self.micro[rows])[number] / MICRO
        share = np.minimum(1.0, self._prior.daily / given)
        return np.asarray(share * newcomer_shares(principal, day, group, most=self._prior.newcomers))

    @cached_property
    def lone(self) -> bool:
        """Whether one person alone ever said anything of lessons: nobody is there to be protected from them."""
        people = {self._principals[code] for code in np.unique(self.principal).tolist()}
        return len(people - {_NIGHT}) <= 1

    def _faded(self, day: Ints) -> Floats:
        days, places = np.unique(day, return_inverse=True)
        each = [recency(self._today - one, self._prior.half_life_days) for one in days.tolist()]
        return np.array(each, dtype=np.float64)[places]

    def _linked(self) -> LessonLinks:
        """What was said of pairs of lessons that both are known."""
        linked = {code: name.startswith(ALIAS) for prefix in (ALIAS, APART) for code, name in self._named(prefix)}
        rows, same = self._rows_of({code: int(alike) for code, alike in linked.items()})
        place, night = (self.place, _NIGHT) if len(rows) else ({}, "")
        words = []
        for row, alike in zip(rows.tolist(), same.tolist(), strict=True):
            if (other := place.get(self._questions[self.question[row]])) is not None:
                by = int(self.principal[row])
                at = int(self.day[row]), self._bins[self.bin[row]].partition(":")[2]
                words.append(
                    LinkVerdict(int(self.lesson[row]), other, by, self._principals[by] == night, at, bool(alike))
                )
        return read_links(words)


@dataclass(frozen=True, slots=True)
class _Words:
    lesson: Ints
    day: Ints
    ms: Ints
    good: Flags
    share: Floats
    word: Sequence[str]

    def take(self, rows: Ints) -> _Words:
        columns = (self.lesson[rows], self.day[rows], self.ms[rows], self.good[rows], self.share[rows])
        return _Words(*columns, [self.word[row] for row in rows.tolist()])


def _saying_kind(name: str) -> int:
    source, _, priority = name.removeprefix(SAYING).partition(":")
    return _SOURCE[source] * len(PRIORITIES) + _PRIORITY[priority]


Pair = tuple[int, int]
"""Places of two lessons, the smaller one first."""


class LinkVerdict(NamedTuple):
    """What somebody said of two lessons."""

    lesson: int  # Places of the duplicate and of its representative; of "apart" in no order
    other: int
    by: int  # who says so; `by_night` whether that is a night
    by_night: bool
    at: tuple[int, str]  # by which the last word of each is told; comparable
    same: bool  # whether they are one

    @property
    def pair(self) -> Pair:
        """Both, the smaller place first."""
        return (self.lesson, self.other) if self.lesson < self.other else (self.other, self.lesson)


@dataclass(frozen=True, slots=True)
class LessonLinks:
    """What all words on pairs come to."""

    separate: frozenset[Pair]  # pairs that somebody spoke of and that are two
    representatives: Mapping[int, int]  # of each lesson that is merged into another, the place of that one


def read_links(words: Iterable[LinkVerdict]) -> LessonLinks:
    """Classes of lessons, the same for the same words in any order.

    Links join classes, those with the most mass first; one that would bring together two lessons that are kept apart
    joins nothing. A class stands under the one of its lessons that is merged into none; of several, or of a circle,
    under the first in order.
    """
    counted = list(_counted(words))
    net: Counter[Pair] = Counter()
    directed: Counter[Pair] = Counter()
    for word in counted:
        net[word.pair] += 1 if word.same else -1
        if word.same:
            directed[word.lesson, word.other] += 1
    separate = frozenset(pair for pair, mass in net.items() if mass <= 0)
    by_people = {word.pair for word in counted if not word.by_night}
    # What people said goes first, then what most said: a weak link never keeps a strong one from joining.
    merged = [pair for pair, mass in net.items() if mass > 0]
    classes: dict[int, set[int]] = {}
    duplicates: set[int] = set()
    for pair in sorted(merged, key=lambda pair: (pair not in by_people, -net[pair], pair)):
        one, other = (classes.setdefault(place, {place}) for place in pair)
        if one is not other and any((min(a, b), max(a, b)) in separate for a in one for b in other):
            continue
        one |= other
        classes.update(dict.fromkeys(other, one))
        # Which of both is merged into the other is what most said; of as many each way the later one is.
        small, great = pair
        forth, back = directed[small, great], directed[great, small]
        duplicates.add(small if forth > back else great)
    stands = {id(each): min(each - duplicates or each) for each in classes.values()}
    to = {place: stands[id(each)] for place, each in classes.items()}
    return LessonLinks(separate, {place: into for place, into in to.items() if place != into})


def _counted(words: Iterable[LinkVerdict]) -> Iterator[LinkVerdict]:
    """Of each the last word on each pair; of nights none where a person has spoken."""
    last: dict[tuple[Pair, int], LinkVerdict] = {}
    for word in words:
        if word.lesson == word.other:
            continue
        key = word.pair, word.by
        last[key] = max(last.get(key, word), word, key=_newest)
    by_people = {pair for (pair, _), word in last.items() if not word.by_night}
    return (word for (pair, _), word in last.items() if not word.by_night or pair not in by_people)


def _newest(word: LinkVerdict) -> tuple[object, ...]:
    return word.at, not word.same, -word.lesson  # of words of one moment, "apart" holds
