"""Whether two texts that lie near each other say the same: what no cosine can tell (CON-2).

"Always lock the file" and "never lock the file" have nearly one vector, and two orders of the same sentence have one
exactly. So sentences are paired, the same ones first, and then those that share most words. Of a pair what it denies,
its absolutes, numbers, flags and order words must be the same, and names must not stand in each other's place. What one
text alone has, such as a notice around it, speaks for neither: then the words that both have decide.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from itertools import chain, zip_longest

from pipelines.quality.stems import STEM, stem_of

_SENTENCE = re.compile(r"(?<=[.!?])[\"')\]]*\s+")
_WORD = re.compile(r"--?[A-Za-z][\w-]*|[^\W_](?:[\w.+#/:'@-]*\w)?|[^\W\s]|[<>=!+*/&|^%~-]+")
_DENYING = "n't"
_PREFIXES = ("un", "dis", "in", "im", "non", "non-", "de", "ir", "il")
_RUN = 5  # words that one text has on end and the other lacks: an addition, and no edit of a sentence
_NOTICE = 12  # words of a sentence that one text has alone, from which on it is taken for a notice whatever it denies
_LEAST = 0.5  # share of words that a pair of sentences has in common


@dataclass(frozen=True, slots=True)
class WordLists:
    """What turns a statement into another, in lower case.

    Attributes:
        negations: Words that deny.
        absolutes: Words that say of how much something holds: always, only, two.
        order: Words that say what comes first.
        opposites: Stems by the stem that excludes them.
        idle: Words that are no names where a sentence begins with them.
    """

    negations: frozenset[str]
    absolutes: frozenset[str]
    order: frozenset[str]
    opposites: Mapping[str, frozenset[str]]
    idle: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls,
        negations: Sequence[str],
        absolutes: Sequence[str],
        order: Sequence[str],
        opposites: Sequence[tuple[str, str]],
        idle: Sequence[str] = (),
    ) -> WordLists:
        """The lists, pairs in both directions."""
        both: dict[str, set[str]] = {}
        for one, other in (map(stem_of, pair) for pair in opposites):
            both.setdefault(one, set()).add(other)
            both.setdefault(other, set()).add(one)
        excluding = {word: frozenset(others) for word, others in both.items()}
        return cls(frozenset(negations), frozenset(absolutes), frozenset(order), excluding, frozenset(idle))

    def opposite(self, one: str, other: str) -> bool:
        """Whether one stem excludes the other, by the list or by a prefix that denies."""
        if other in self.opposites.get(one, ()):
            return True
        short, long = sorted((one, other), key=len)
        return len(short) >= STEM and long.endswith(short) and long[: -len(short)] in _PREFIXES

    def mark(self, word: str) -> str | None:
        """What a word, in lower case, must agree in: itself, or "not" of all that deny; None for any other word."""
        if word in self.negations or word.endswith(_DENYING):
            return "not"
        if word in self.absolutes or word in self.order:
            return word
        return word if word[0] == "-" or any(map(str.isdigit, word)) or not word[0].isalnum() else None


class Sentence:
    """A sentence taken apart.

    Attributes:
        words: In lower case, punctuation left out.
    """

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
    def marks(self) -> tuple[str, ...]:
        """What must agree, in its order."""
        return tuple(mark for word in self.words if (mark := self._lists.mark(word)) is not None)

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

    def agrees(self, other: Sentence) -> bool:
        """Whether nothing in which they differ makes another statement of it."""
        if self.marks == other.marks and self._keeps_order(other) and not self._replaces(other):
            return True
        ours, theirs = self._without_additions(other)
        if ours.words == self.words and theirs.words == other.words:
            return False
        return ours.marks == theirs.marks and ours._keeps_order(theirs) and not ours._replaces(theirs)

    def _replaces(self, other: Sentence) -> bool:
        """Whether names stand in each other's place, or opposites."""
        ours, theirs = self.counted.keys() - other.counted.keys(), other.counted.keys() - self.counted.keys()
        if ours & self.names and theirs & other.names:
            return True
        return any(self._lists.opposite(one, another) for one in map(stem_of, ours) for another in map(stem_of, theirs))

    def _keeps_order(self, other: Sentence) -> bool:
        """Whether names that both have stand in one order; where a word of order stands, all words that both have."""
        if self.words == other.words:
            return True
        ordered = self._lists.order.intersection(self.words)
        names = self.names & other.names
        both = {
            word
            for word in self.counted.keys() & other.counted.keys()
            if self.counted[word] == other.counted[word] == 1 and (ordered or word in names)
        }
        return [word for word in self.words if word in both] == [word for word in other.words if word in both]

    def _without_additions(self, other: Sentence) -> tuple[Sentence, Sentence]:
        """Both without what only one of them has, at least `_RUN` words on end."""
        matcher = SequenceMatcher(None, self.words, other.words, autojunk=False)
        ours, theirs = [], []
        for kind, a, b, c, d in matcher.get_opcodes():
            if not (kind == "delete" and b - a >= _RUN):
                ours += self._written[a:b]
            if not (kind == "insert" and d - c >= _RUN):
                theirs += other._written[c:d]
        return self._of_words(ours), self._of_words(theirs)

    def _of_words(self, written: Sequence[str]) -> Sentence:
        sentence = Sentence("", self._lists)
        sentence._written = list(written)
        sentence.words = tuple(word.lower() for word in written)
        return sentence


_PUNCTUATION = frozenset(".,;:!?()[]{}\"'`*#|_-—–…")


_NOTHING = Sentence("", WordLists.of((), (), (), ()))


class Statements:
    """A text as the sentences in it."""

    def __init__(self, text: str, lists: WordLists) -> None:
        parts = _SENTENCE.split(" ".join(text.replace("\u2019", "'").split()))
        self._sentences = [sentence for part in parts if (sentence := Sentence(part, lists)).words]
        self._by_words = Counter(sentence.words for sentence in self._sentences)
        self._counted = Counter(chain.from_iterable(sentence.words for sentence in self._sentences))
        self._size = self._counted.total()

    def overlap(self, other: Statements) -> float:
        """Words that both have, of all that they have, in [0, 1] (Dice); 1 where neither has any."""
        size = self._size + other._size
        return 2.0 * (self._counted & other._counted).total() / size if size else 1.0

    def repeats(self, other: Statements, least: float) -> bool:
        """Whether both say the same.

        Args:
            least: Overlap of their words, at least.
        """
        if self._by_words == other._by_words:
            return True
        if self.overlap(other) < least:
            return False
        pairs, ours, theirs = _paired(self._besides(other), other._besides(self))
        if not all(one.agrees(another) for one, another in pairs):
            return False
        if ours and theirs:
            return all(one.marks == another.marks for one, another in zip_longest(ours, theirs, fillvalue=_NOTHING))
        return all(len(sentence.words) >= _NOTICE or not sentence.marks for sentence in (*ours, *theirs))

    def _besides(self, other: Statements) -> list[Sentence]:
        """Sentences that the other has not, or not so often."""
        left = self._by_words - other._by_words
        besides = []
        for sentence in self._sentences:
            if left[sentence.words] > 0:
                left[sentence.words] -= 1
                besides.append(sentence)
        return besides


def says_the_same(one: str, other: str, lists: WordLists, *, least: float) -> bool:
    """Whether two texts that lie near each other say the same; see `Statements.repeats`.

    Examples:
        >>> lists = WordLists.of(["not"], ["always", "never"], ["before"], [("enable", "disable")])
        >>> text = "Close the file before the lock is released. It is kept for 30 seconds."
        >>> others = [
        ...     "It is kept for 30 seconds. Close the file before the lock is released.",
        ...     "Close the file before the lock is released. It is kept for 60 seconds.",
        ...     "Close the file before the lock is not released. It is kept for 30 seconds.",
        ...     "Release the lock before the file is closed. It is kept for 30 seconds.",
        ... ]
        >>> [says_the_same(text, each, lists, least=0.8) for each in others]
        [True, False, False, False]
    """
    return Statements(one, lists).repeats(Statements(other, lists), least)


def _paired(
    ours: Sequence[Sentence], theirs: Sequence[Sentence]
) -> tuple[list[tuple[Sentence, Sentence]], list[Sentence], list[Sentence]]:
    """Pairs of sentences that share most of their words, each in one pair; and those of both that are like none."""
    pairs, alone, free = [], [], list(theirs)
    for sentence in ours:
        shares = [_share(sentence, other) for other in free]
        if shares and (best := max(shares)) >= _LEAST:
            pairs.append((sentence, free.pop(shares.index(best))))
        else:
            alone.append(sentence)
    return pairs, alone, free


def _share(one: Sentence, other: Sentence) -> float:
    """Words that both have, of those of the shorter one, in [0, 1]."""
    return (one.counted & other.counted).total() / min(len(one.words), len(other.words))
