"""What two longer texts that lie near each other are to each other: the same, opposed, or neither (CON-2, CON-4).

"Always lock the file" and "never lock the file" have nearly one vector, and two orders of the same sentence have one
exactly. So sentences are paired, the same ones first, and then those that share most words. Of a pair what it denies,
its absolutes, numbers, units, flags, signs and order words must be the same, and no two words have changed places. What
one text alone has, such as a notice around it, speaks for neither. A plain word in the place of another is taken for
noise: nothing tells it from that.

A pair is opposed where one denies what the other says, where a word stands in the place of its opposite, or a number in
the place of another. Two of these in one sentence undo each other ("is not enabled", "is disabled"). Where any other
word is exchanged, the two speak of different things, which may well differ.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import Enum, StrEnum
from functools import cached_property, lru_cache
from itertools import chain

from weft.wording.lexicon import (
    ABSOLUTES,
    CONDITIONS,
    IDLE,
    LACKING,
    NUMERALS,
    ORDER,
    beside,
    denies,
    excluding,
    is_unit,
    sure_stem,
)
from weft.wording.text import read_words
from weft.wording.words import stem_of

_SENTENCE = re.compile(r"(?<=[.!?])[\"')\]]*\s+")
_MARKUP = frozenset("*#|_-+>`'\"\\")  # single signs that lists, tables and headings begin with
_RUN = 5  # words that one text has on end and the other lacks: an addition, and no edit of a sentence
_NOTICE = 12  # words of a sentence that one text has alone, from which on it is taken for a notice whatever it denies
_EDITS = 2  # places in which texts differ, up to which a condition in one of them is an edit, and above noise
_LEAST = 0.5  # share of words that a pair of sentences has in common


class Polarity(StrEnum):
    """In what two statements are opposed."""

    DENIAL = "denial"
    OPPOSITE = "opposite"
    NUMBER = "number"


@dataclass(frozen=True, slots=True)
class Opposition:
    """Two statements that are opposed."""

    polarity: Polarity
    one: str  # Their words
    other: str
    # whether nothing else differs in them, and neither text has sentences that the other lacks while the other
    # has some, too: a condition or another subject may be in what differs
    exact: bool


class _Kind(Enum):
    """What a word is that can stand in the place of another of its kind."""

    ORDER = "order"
    NUMBER = "number"
    UNIT = "unit"
    FLAG = "flag"
    SIGN = "sign"
    NAME = "name"


_ORDERED = (_Kind.NAME, _Kind.NUMBER)  # of these the order says something


@lru_cache(maxsize=65_536)
def _kind(word: str) -> _Kind | None:
    if word in ORDER:
        return _Kind.ORDER
    if word in NUMERALS or any(map(str.isdigit, word)):
        return _Kind.NUMBER
    if word[0] == "-" and word.lstrip("-")[:1].isalpha():
        return _Kind.FLAG
    if is_unit(word):
        return _Kind.UNIT
    return None if any(map(str.isalnum, word)) else _Kind.SIGN


def _is_negation(word: str) -> bool:
    return denies(word) or word in LACKING


def _turns(word: str) -> bool:
    """Whether a word makes the opposite of a sentence by standing in it."""
    return _is_negation(word) or word in ABSOLUTES


class Statement:
    """A sentence taken apart."""

    def __init__(self, text: str) -> None:
        self._read = [(word, written) for word, written in read_words(text) if word not in _MARKUP]
        self.words = tuple(NUMERALS.get(word, word) for word, _ in self._read)

    @cached_property
    def counted(self) -> Counter[str]:
        """How often each word stands in it."""
        return Counter(self.words)

    @cached_property
    def kinds(self) -> Mapping[str, _Kind]:
        """The kind of each word that has one; names are written with a capital, or as identifiers."""
        named = {
            word: _Kind.NAME
            for at, (word, written) in enumerate(self._read)
            if (written[0].isupper() and (at or word not in IDLE))
            or any(map(str.isupper, written[1:]))
            or "_" in word
            or "." in word
        }
        return named | {word: kind for word in self.counted if (kind := _kind(word)) is not None}

    def turning(self) -> list[str]:
        """Words that make the opposite of it, in their order."""
        return [word for word in self.words if _turns(word)]

    def agrees(self, other: Statement) -> bool:
        """Whether nothing in which they differ makes another statement of it."""
        if not self.keeps_order(other):
            return False
        ours, theirs = self.counted - other.counted, other.counted - self.counted
        special = [self._is_special(word) for word in ours] + [other._is_special(word) for word in theirs]
        if not any(special) and not _opposes(ours, theirs):
            return True
        return all(self._exchanges_nothing(other, *block) for block in self.differences(other))

    def _is_special(self, word: str) -> bool:
        return word in self.kinds or _turns(word)

    def _exchanges_nothing(self, other: Statement, ours: Sequence[str], theirs: Sequence[str]) -> bool:
        """Whether words in each other's place leave the statement what it is.

        What denies must be the same, and flags. Numbers, units, names, signs and words of order may be missing on
        one side, and not be others.
        """
        if sum(map(_turns, ours)) != sum(map(_turns, theirs)):
            return len(ours) + len(theirs) >= _NOTICE and abs(len(ours) - len(theirs)) >= _RUN
        if abs(len(ours) - len(theirs)) >= _RUN:  # an addition
            return True
        mine = {kind for word in ours if (kind := self.kinds.get(word)) is not None}
        yours = {kind for word in theirs if (kind := other.kinds.get(word)) is not None}
        return not (mine & yours or _Kind.FLAG in mine | yours or _opposes(ours, theirs))

    def has_condition(self, other: Statement) -> bool:
        """Whether one of both alone says when it holds."""
        return any((self.counted[word] > 0) != (other.counted[word] > 0) for word in CONDITIONS)

    def keeps_order(self, other: Statement) -> bool:
        """Whether no two words have changed places, names and numbers that both have stand in one order, and all words
        do where it says what comes first or denies something.
        """
        if self.words == other.words:
            return True
        both = {
            word
            for word in self.counted.keys() & other.counted.keys()
            if self.counted[word] == other.counted[word] == 1
        }
        ours, theirs = ([word for word in each.words if word in both] for each in (self, other))
        if ours == theirs:
            return True
        # "Cache profiles, not permissions", "cache permissions, not profiles".
        if not ORDER.isdisjoint(self.counted) or any(map(_turns, self.counted)):
            return False
        if self.counted == other.counted and not self._moves_clauses(other):
            return False
        named = {word for word in both if self.kinds.get(word) in _ORDERED}
        if [word for word in ours if word in named] != [word for word in theirs if word in named]:
            return False
        return not self._changes_places(other)

    def _changes_places(self, other: Statement) -> bool:
        """Whether two words stand in each other's place: the client calls the server, the server calls the client."""
        others = {(ours[0], theirs[0]) for ours, theirs in self.differences(other) if len(ours) == len(theirs) == 1}
        return any((theirs, ours) in others for ours, theirs in others)

    def _moves_clauses(self, other: Statement) -> bool:
        """Whether what stands elsewhere moved as a whole, and is no word by itself.

        Not so "warnings as errors" and "errors as warnings", "only the owner may" and "the owner may only".
        """
        left, come = (sorted(words for words in side if words) for side in zip(*self.differences(other), strict=True))
        return left == come and min(map(len, left), default=0) > 1

    def differences(self, other: Statement) -> Iterator[tuple[Sequence[str], Sequence[str]]]:
        """Words of both that stand in each other's place."""
        matcher = SequenceMatcher(None, self.words, other.words, autojunk=False)
        for kind, a, b, c, d in matcher.get_opcodes():
            if kind != "equal":
                yield self.words[a:b], other.words[c:d]

    def opposed(self, other: Statement) -> Opposition | None:
        """In what one sentence says the opposite of another; None where it does not, or speaks of something else."""
        if not self.keeps_order(other):
            return None
        denied = opposites = numbers = 0
        exact = True
        for block in self.differences(other):
            ours, theirs = map(_Side, block)
            denied += ours.negations + theirs.negations
            opposites += ours.without_opposites(theirs)
            if ours.numbers and theirs.numbers:
                if len(ours.numbers) != len(theirs.numbers):
                    return None
                numbers += 1
            elif ours.numbers or theirs.numbers:
                exact = False
            if ours.others and theirs.others:
                return None
            stronger = ours.absolutes != theirs.absolutes and not ours.negations and not theirs.negations
            exact = exact and not ours.others and not theirs.others and not stronger
        turned = (denied + opposites) % 2
        if bool(turned) == bool(numbers):  # neither, or a denial of another number, which may be true with the first
            return None
        exact = exact and denied + opposites + numbers == 1
        polarity = Polarity.NUMBER if numbers else Polarity.OPPOSITE if opposites else Polarity.DENIAL
        return Opposition(polarity, " ".join(self.words), " ".join(other.words), exact)


class _Side:
    """What one sentence has where another has something else."""

    def __init__(self, words: Sequence[str]) -> None:
        denying = [word for word in words if _is_negation(word)]
        self.negations = len(denying)
        self.absolutes = sum(word in ABSOLUTES for word in words if word not in denying)
        self.numbers = [word for word in words if _kind(word) is _Kind.NUMBER]
        counted = {*denying, *ABSOLUTES, *self.numbers}
        self.others = {
            sure_stem(word) for word in words if word not in counted and (_kind(word) is not None or word not in IDLE)
        }

    def without_opposites(self, other: _Side) -> int:
        """Leave out stems that both have, and those that exclude each other; how many pairs of these there were."""
        both = self.others & other.others
        self.others -= both
        other.others -= both
        pairs = 0
        for stem in sorted(self.others):
            if against := sorted(other.others & excluding(stem)):
                self.others.discard(stem)
                other.others.discard(against[0])
                pairs += 1
        return pairs


class Statements:
    """A text as the sentences in it."""

    def __init__(self, text: str) -> None:
        parts = _SENTENCE.split(" ".join(text.replace("\u2019", "'").split()))
        self._sentences = [sentence for part in parts if (sentence := Statement(part)).words]
        self._by_words = Counter(sentence.words for sentence in self._sentences)
        self._counted = Counter(chain.from_iterable(sentence.words for sentence in self._sentences))
        self._size = self._counted.total()

    def overlap(self, other: Statements) -> float:
        """Words that both have, of all that they have, in [0, 1] (Dice); 1 where neither has any."""
        size = self._size + other._size
        return 2.0 * (self._counted & other._counted).total() / size if size else 1.0

    def repeats(self, other: Statements, least: float) -> bool:
        """Whether both say the same.

        Examples:
            >>> text = Statements("Close the file before the lock is released. It is kept for 30 seconds.")
            >>> others = [
            ...     "It is kept for 30 seconds. Close the file before the lock is released.",
            ...     "Close the file before the lock is released. It is kept for 60 seconds.",
            ...     "Close the file before the lock is not released. It is kept for 30 seconds.",
            ...     "Release the lock before the file is closed. It is kept for 30 seconds.",
            ... ]
            >>> [text.repeats(Statements(other), 0.8) for other in others]
            [True, False, False, False]
        """
        if self._by_words == other._by_words:
            return True
        if self.overlap(other) < least:
            return False
        pairs, ours, theirs = self.paired(other)
        if not all(one.agrees(another) for one, another in pairs) or _edited(pairs, ours, theirs):
            return False
        return all(len(sentence.words) >= _NOTICE or not sentence.turning() for sentence in (*ours, *theirs))

    def opposes(self, other: Statements, least: float) -> Opposition | None:
        """The first pair of sentences in which both are opposed; None where they are not, or differ in more than that.

        Examples:
            >>> text = Statements("Close the file before the lock is released. The cache is enabled.")
            >>> others = [
            ...     "Close the file before the lock is released. The cache is disabled.",
            ...     "Close the file before the lock is not released. The cache is enabled.",
            ...     "Close the file before the lock is released. The cache is not disabled.",
            ...     "Close the file before the lock is released. The queue is disabled.",
            ... ]
            >>> detected = [text.opposes(Statements(each), least=0.6) for each in others]
            >>> [each and each.polarity.value for each in detected]
            ['opposite', 'denial', None, None]
        """
        if self.overlap(other) < least:
            return None
        pairs, ours, theirs = self.paired(other)
        opposed: list[Opposition] = []
        for here, there in pairs:
            opposite = here.opposed(there)
            if opposite is not None:
                opposed.append(opposite)
            elif not here.agrees(there):
                return None
        if not opposed:
            return None
        first, exact = opposed[0], not (ours and theirs) and all(each.exact for each in opposed)
        return Opposition(first.polarity, first.one, first.other, exact)

    def paired(self, other: Statements) -> tuple[list[tuple[Statement, Statement]], list[Statement], list[Statement]]:
        """Sentences of both that differ and share most of their words; then those that only one or the other has."""
        return _paired(self._besides(other), other._besides(self))

    def _besides(self, other: Statements) -> list[Statement]:
        """Sentences that the other has not, or not so often."""
        left = self._by_words - other._by_words
        besides = []
        for sentence in self._sentences:
            if left[sentence.words] > 0:
                left[sentence.words] -= 1
                besides.append(sentence)
        return besides


def _opposes(ours: Iterable[str], theirs: Iterable[str]) -> bool:
    """Whether a word of one side excludes one of the other, or names another end, by whatever it is called."""
    stems = {stem for word in theirs for stem in (sure_stem(word), stem_of(word))}
    against = (frozenset().union(*map(_against, (sure_stem(word), stem_of(word)))) for word in ours)
    return any(not stems.isdisjoint(each) for each in against)


@lru_cache(maxsize=65_536)
def _against(stem: str) -> frozenset[str]:
    return excluding(stem) | beside(stem)


def _edited(
    pairs: Sequence[tuple[Statement, Statement]], ours: Sequence[Statement], theirs: Sequence[Statement]
) -> bool:
    """Whether a condition stands in one of two places at most that differ."""
    places = max(len(ours), len(theirs)) + sum(1 for one, other in pairs for _ in one.differences(other))
    return places <= _EDITS and any(one.has_condition(other) for one, other in pairs)


def _paired(
    ours: Sequence[Statement], theirs: Sequence[Statement]
) -> tuple[list[tuple[Statement, Statement]], list[Statement], list[Statement]]:
    """Pairs of sentences that share most of their words, the likest first, each in one pair; and those in none."""
    shares = [
        (-share, one, other)
        for one, sentence in enumerate(ours)
        for other, another in enumerate(theirs)
        if (share := _share(sentence, another)) >= _LEAST
    ]
    partners: dict[int, int] = {}
    taken: set[int] = set()
    for _, one, other in sorted(shares):
        if one not in partners and other not in taken:
            partners[one] = other
            taken.add(other)
    pairs = [(ours[one], theirs[other]) for one, other in sorted(partners.items())]
    alone = [sentence for one, sentence in enumerate(ours) if one not in partners]
    return pairs, alone, [sentence for other, sentence in enumerate(theirs) if other not in taken]


def _share(one: Statement, other: Statement) -> float:
    """Words that both have, of all that they have, in [0, 1] (Dice)."""
    both = sum(min(count, other.counted[word]) for word, count in one.counted.items() if word in other.counted)
    return 2.0 * both / (len(one.words) + len(other.words))
