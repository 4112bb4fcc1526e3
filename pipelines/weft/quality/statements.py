"""Whether two texts that lie near each other say the same: what no cosine can tell (CON-2).

"Always lock the file" and "never lock the file" have nearly one vector, and two orders of the same sentence have one
exactly. So sentences are paired, the same ones first, and then those that share most words. Of a pair what it denies,
its absolutes, numbers, units, flags and order words must be the same, and no two words have changed places. What one
text alone has, such as a notice around it, speaks for neither: then the words that both have decide. A plain word in
the place of another is taken for noise: nothing tells it from that.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import Enum
from functools import cached_property
from itertools import chain

_SENTENCE = re.compile(r"(?<=[.!?])[\"')\]]*\s+")
_WORD = re.compile(r"--?[A-Za-z][\w-]*|[^\W_](?:[\w.+#/:'@-]*\w)?|[^\W\s]|[<>=!+*/&|^%~-]+")
_DENYING = "n't"
_PREFIXES = ("un", "dis", "in", "im", "non", "non-", "de", "ir", "il")
_RUN = 5  # words that one text has on end and the other lacks: an addition, and no edit of a sentence
_NOTICE = 12  # words of a sentence that one text has alone, from which on it is taken for a notice whatever it denies
_EDITS = 2  # places in which texts differ, up to which a condition in one of them is an edit, and above noise
_LEAST = 0.5  # share of words that a pair of sentences has in common

_ENDINGS = ("ings", "ing", "ies", "ed", "es", "s", "ly")
STEM = 3
"""Letters that stay of a word at least."""


class Kind(Enum):
    """What a word is that can stand in the place of another of its kind."""

    ORDER = "order"
    NUMBER = "number"
    UNIT = "unit"
    FLAG = "flag"
    SIGN = "sign"
    NAME = "name"


_ORDERED = (Kind.NAME, Kind.NUMBER)
"""Of these the order says something."""


@dataclass(frozen=True, slots=True)
class WordLists:
    """What turns a statement into another, in lower case."""

    negations: frozenset[str]  # words that deny
    absolutes: frozenset[str]  # words that say of how much something holds: always, only
    numerals: frozenset[str]  # words that are numbers
    order: frozenset[str]  # words that say what comes first
    opposites: Mapping[str, frozenset[str]]  # stems by the stem that excludes them
    idle: frozenset[str] = frozenset()  # words that are no names where a sentence begins with them
    units: frozenset[str] = frozenset()  # stems of what is counted or measured: a week, hourly
    conditions: frozenset[str] = frozenset()  # words that say when something holds: if, unless

    @classmethod
    def of(  # noqa: PLR0917  lists of words, in the order of the fields
        cls,
        negations: Sequence[str],
        absolutes: Sequence[str],
        numerals: Sequence[str],
        order: Sequence[str],
        opposites: Sequence[tuple[str, str]],
        idle: Sequence[str] = (),
        units: Sequence[str] = (),
        conditions: Sequence[str] = (),
    ) -> WordLists:
        """The lists, pairs in both directions."""
        both: dict[str, set[str]] = {}
        for one, other in (map(stem_of, pair) for pair in opposites):
            both.setdefault(one, set()).add(other)
            both.setdefault(other, set()).add(one)
        excluding = {word: frozenset(others) for word, others in both.items()}
        return cls(
            frozenset(negations),
            frozenset(absolutes),
            frozenset(numerals),
            frozenset(order),
            excluding,
            frozenset(idle),
            frozenset(map(stem_of, units)),
            frozenset(conditions),
        )

    def opposite(self, one: str, other: str) -> bool:
        """Whether one stem excludes the other, by the list or by a prefix that denies."""
        if other in self.opposites.get(one, ()):
            return True
        short, long = sorted((one, other), key=len)
        return len(short) >= STEM and long.endswith(short) and long[: -len(short)] in _PREFIXES

    def denies(self, word: str) -> bool:
        """Whether a word, in lower case, makes the opposite of a sentence by standing in it."""
        return word in self.negations or word.endswith(_DENYING) or word in self.absolutes

    def kind(self, word: str) -> Kind | None:
        """What a word, in lower case, is besides its meaning; None for most."""
        if word in self.order:
            return Kind.ORDER
        if word in self.numerals or any(map(str.isdigit, word)):
            return Kind.NUMBER
        if word[0] == "-" and len(word) > 1:
            return Kind.FLAG
        if stem_of(word) in self.units:
            return Kind.UNIT
        return None if word[0].isalnum() else Kind.SIGN


class Statement:
    """A sentence taken apart."""

    __slots__ = ("__dict__", "_lists", "_written", "words")

    def __init__(self, text: str, lists: WordLists) -> None:
        self._lists = lists
        self._written = [word for word in _WORD.findall(text) if word not in _PUNCTUATION]
        self.words = tuple(word.lower() for word in self._written)

    @cached_property
    def counted(self) -> Counter[str]:
        """How often each word stands in it."""
        return Counter(self.words)

    @cached_property
    def names(self) -> frozenset[str]:
        """Words that are written as names are: with a capital, or as identifiers."""
        return frozenset(
            word.lower()
            for at, word in enumerate(self._written)
            if (word[0].isupper() and (at or word.lower() not in self._lists.idle))
            or any(map(str.isupper, word[1:]))
            or "_" in word
            or "." in word
        )

    @cached_property
    def kinds(self) -> Mapping[str, Kind]:
        """The kind of each word that has one."""
        named = dict.fromkeys(self.names, Kind.NAME)
        return named | {word: kind for word in self.counted if (kind := self._lists.kind(word)) is not None}

    def denying(self) -> list[str]:
        """Words that make the opposite of it, in their order."""
        return [word for word in self.words if self._lists.denies(word)]

    def agrees(self, other: Statement) -> bool:
        """Whether nothing in which they differ makes another statement of it."""
        if not self.keeps_order(other):
            return False
        ours, theirs = self.counted - other.counted, other.counted - self.counted
        special = [self._is_special(word) for word in ours] + [other._is_special(word) for word in theirs]
        if not any(special) and not self._opposes(ours, theirs):
            return True
        return all(self._exchanges_nothing(other, *block) for block in self.differences(other))

    def _is_special(self, word: str) -> bool:
        return word in self.kinds or self._lists.denies(word)

    def _opposes(self, ours: Iterable[str], theirs: Iterable[str]) -> bool:
        stems = [stem_of(word) for word in theirs]
        return any(self._lists.opposite(stem_of(word), other) for word in ours for other in stems)

    def _exchanges_nothing(self, other: Statement, ours: Sequence[str], theirs: Sequence[str]) -> bool:
        """Whether words in each other's place leave the statement what it is.

        What denies must be the same, and flags. Numbers, units, names, signs and words of order may be missing on
        one side, and not be others.
        """
        lists = self._lists
        if sum(map(lists.denies, ours)) != sum(map(lists.denies, theirs)):
            return len(ours) + len(theirs) >= _NOTICE and abs(len(ours) - len(theirs)) >= _RUN
        if abs(len(ours) - len(theirs)) >= _RUN:  # an addition
            return True
        mine = {kind for word in ours if (kind := self.kinds.get(word)) is not None}
        yours = {kind for word in theirs if (kind := other.kinds.get(word)) is not None}
        return not (mine & yours or Kind.FLAG in mine | yours or self._opposes(ours, theirs))

    def has_condition(self, other: Statement) -> bool:
        """Whether one of both alone says when it holds."""
        return any((self.counted[word] > 0) != (other.counted[word] > 0) for word in self._lists.conditions)

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
        if not self._lists.order.isdisjoint(self.counted) or any(map(self._lists.denies, self.counted)):
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


_PUNCTUATION = frozenset(".,;:!?()[]{}\"'`*#|_-—–…")


class Statements:
    """A text as the sentences in it."""

    def __init__(self, text: str, lists: WordLists) -> None:
        parts = _SENTENCE.split(" ".join(text.replace("\u2019", "'").split()))
        self._sentences = [sentence for part in parts if (sentence := Statement(part, lists)).words]
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
            >>> lists = WordLists.of(["not"], ["always", "never"], ["two"], ["before"], [("enable", "disable")])
            >>> text = Statements("Close the file before the lock is released. It is kept for 30 seconds.", lists)
            >>> others = [
            ...     "It is kept for 30 seconds. Close the file before the lock is released.",
            ...     "Close the file before the lock is released. It is kept for 60 seconds.",
            ...     "Close the file before the lock is not released. It is kept for 30 seconds.",
            ...     "Release the lock before the file is closed. It is kept for 30 seconds.",
            ... ]
            >>> [text.repeats(Statements(other, lists), 0.8) for other in others]
            [True, False, False, False]
        """
        if self._by_words == other._by_words:
            return True
        if self.overlap(other) < least:
            return False
        pairs, ours, theirs = self.paired(other)
        if not all(one.agrees(another) for one, another in pairs):
            return False
        if _edited(pairs, ours, theirs):
            return False
        return all(len(sentence.words) >= _NOTICE or not sentence.denying() for sentence in (*ours, *theirs))

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


def stem_of(word: str) -> str:
    """A word, in lower case, without its ending.

    Examples:
        >>> [stem_of(word) for word in ("enables", "enabled", "retries", "red")]
        ['enabl', 'enabl', 'retry', 'red']
    """
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= STEM:
            root = word[: -len(ending)] + ("y" if ending == "ies" else "")
            return root.rstrip("e") if len(root) > STEM else root
    return word.rstrip("e") if len(word) > STEM else word
