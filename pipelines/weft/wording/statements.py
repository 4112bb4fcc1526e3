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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from itertools import chain

from weft.wording.comparison import Opposition, Polarity, changes_places, exclude_each_other, opposition
from weft.wording.lexicon import ABSOLUTES, CONDITIONS, IDLE, LACKING, NUMERALS, ORDER, denies, sure_stem
from weft.wording.text import Kind, Text

_SENTENCE = re.compile(r"(?<=[.!?])[\"')\]]*\s+")
_MARKUP = frozenset("*#|_-+>`'\"\\")  # single signs that lists, tables and headings begin with
_RUN = 5  # words that one text has on end and the other lacks: an addition, and no edit of a sentence
_NOTICE = 12  # words of a sentence that one text has alone, from which on it is taken for a notice whatever it denies
_EDITS = 2  # places in which texts differ, up to which a condition in one of them is an edit, and above noise
_LEAST = 0.5  # share of words that a pair of sentences has in common


@dataclass(frozen=True, slots=True)
class OpposedSentences:
    """Two sentences of two texts that are opposed."""

    polarity: Polarity
    one: str  # their words
    other: str
    # whether nothing else differs in them, and neither text has sentences that the other lacks while the other
    # has some, too: a condition or another subject may be in what differs
    exact: bool


def _turns(word: str) -> bool:
    """Whether a word makes the opposite of a sentence by standing in it."""
    return denies(word) or word in LACKING or word in ABSOLUTES


class Statement:
    """A sentence taken apart."""

    def __init__(self, text: str) -> None:
        self.text = Text(" ".join(word for word in text.split() if word not in _MARKUP))
        self.words = tuple(NUMERALS.get(word, word) for word in self.text.words if word not in _MARKUP)

    @cached_property
    def counted(self) -> Counter[str]:
        """How often each word stands in it."""
        return Counter(self.words)

    def turning(self) -> list[str]:
        """Words that make the opposite of it, in their order."""
        return list(filter(_turns, self.words))

    def has_condition(self, other: Statement) -> bool:
        """Whether one of both alone says when it holds."""
        return any((self.counted[word] > 0) != (other.counted[word] > 0) for word in CONDITIONS)

    def differences(self, other: Statement) -> Iterator[tuple[Sequence[str], Sequence[str]]]:
        """Words of both that stand in each other's place."""
        matcher = SequenceMatcher(None, self.words, other.words, autojunk=False)
        for kind, a, b, c, d in matcher.get_opcodes():
            if kind != "equal":
                yield self.words[a:b], other.words[c:d]

    def agrees(self, other: Statement) -> bool:
        """Whether nothing in which they differ makes another statement of it: noise, additions, and small words."""
        if changes_places(self.text, other.text):
            return False
        return all(self._keeps(other, *block) for block in self.differences(other))

    def _keeps(self, other: Statement, ours: Sequence[str], theirs: Sequence[str]) -> bool:
        """Whether words in each other's place leave the statement what it is.

        What denies must be the same, and flags. Numbers, units, names, signs and words of order may be missing on
        one side, and not be others.
        """
        if sum(map(_turns, ours)) != sum(map(_turns, theirs)):
            return len(ours) + len(theirs) >= _NOTICE and abs(len(ours) - len(theirs)) >= _RUN
        if abs(len(ours) - len(theirs)) >= _RUN:  # an addition
            return True
        mine, yours = self._special(ours), other._special(theirs)
        return not (mine & yours or Kind.FLAG in mine | yours or exclude_each_other(ours, theirs))

    def _special(self, words: Sequence[str]) -> set[Kind | str | None]:
        """What some words are of which another in their place makes another statement: the first may be a name."""
        kinds = {*map(self.text.kinds.get, map(sure_stem, words))} - {None}
        named = self.words[0] in words and self.words[0] not in IDLE and self.text.text[0].isupper()
        return {*kinds, *([Kind.NAME] if named else []), *([] if ORDER.isdisjoint(words) else ["order"])}


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

    def opposes(self, other: Statements, least: float) -> OpposedSentences | None:
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
        opposed: list[tuple[Statement, Statement, Opposition]] = []
        for here, there in pairs:
            opposite = opposition(here.text, there.text)
            if opposite is not None:
                opposed.append((here, there, opposite))
            elif not here.agrees(there):
                return None
        if not opposed:
            return None
        (one, another, first), *_ = opposed
        exact = not (ours and theirs) and all(each.exact for _, _, each in opposed)
        return OpposedSentences(first.polarity, " ".join(one.words), " ".join(another.words), exact)

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
