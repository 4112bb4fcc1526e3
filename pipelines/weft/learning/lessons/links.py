"""Which lessons are one, by what was said of pairs of them (LES-13).

    net mass of a pair = people whose last word is that both mean the same − people whose last word is that they do not

A pair has no direction: "A is B" and "B is not A" speak of one. Merged are pairs whose net mass is > 0. A night's word
counts where no person has said anything, so that what people keep apart, or cannot agree on, stays two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

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
