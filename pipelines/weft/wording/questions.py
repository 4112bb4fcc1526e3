"""A question taken apart: what it asks for, and whether another one asks for something else (LRN-19)."""

from __future__ import annotations

import re
from collections import Counter
from difflib import SequenceMatcher
from functools import cached_property

from weft.wording.lexicon import DIRECTIONS, IDLE, LACKING, QUESTIONS, beside, denies, excluding, meaning_of, sure_stem
from weft.wording.text import read_words

_NUMBER = re.compile(r"\d+(?:\.\d+)*")
_PUNCTUATION = frozenset(".,;:!?*#|_-\"'`()[]{}")  # typed beside a question


class Question:
    """A question taken apart; made once, and compared with many."""

    def __init__(self, text: str) -> None:
        self.words = [word for word, _ in read_words(text) if word not in _PUNCTUATION]
        self._sure = [sure_stem(word) for word in self.words]
        self.stems = [meaning_of(stem) for stem in self._sure]

    @cached_property
    def content(self) -> frozenset[str]:
        """Stems of words that say what is asked for, one for all that may mean the same."""
        return frozenset(stem for _, stem in self._places)

    @cached_property
    def numbers(self) -> frozenset[str]:
        """What is written in digits: versions, amounts, numbers of names."""
        return frozenset(number for stem in self.stems for number in _NUMBER.findall(stem))

    @cached_property
    def denies(self) -> bool:
        """Whether there is a negation."""
        return any(denies(word) or word in LACKING for word in self.words)

    @cached_property
    def asks(self) -> frozenset[str]:
        """Question words that say what kind of answer is wanted: where, when, how often."""
        pairs = {f"how {word}" for before, word in zip(self.words, self.words[1:], strict=False) if before == "how"}
        return QUESTIONS.intersection({*self.words, *pairs})

    @cached_property
    def directions(self) -> frozenset[tuple[str, str]]:
        """Pairs of content words with a preposition of direction between them, in their order."""
        pairs = zip(self._places, self._places[1:], strict=False)
        return frozenset(
            (left, right) for (at, left), (then, right) in pairs if DIRECTIONS.intersection(self.words[at + 1 : then])
        )

    @cached_property
    def _places(self) -> list[tuple[int, str]]:
        words = enumerate(zip(self.words, self.stems, strict=True))
        return [(at, stem) for at, (word, stem) in words if word not in IDLE]

    @cached_property
    def _counted(self) -> Counter[str]:
        return Counter(stem for _, stem in self._places)

    def contradicts(self, other: Question) -> bool:
        """Whether the two ask for something else, however near they lie."""
        ours, theirs = set(self._sure) - set(other._sure), set(other._sure) - set(self._sure)
        there, back = self.directions - other.directions, other.directions - self.directions
        return (
            self.denies != other.denies
            or bool(self.numbers and other.numbers and self.numbers != other.numbers)
            or bool(self.asks and other.asks and self.asks != other.asks)
            or any((right, left) in back for left, right in there)
            or any(not (excluding(stem) | beside(stem)).isdisjoint(theirs) for stem in ours)
            or self._exchanges(other)
            or other._exchanges(self)  # texts are aligned another way round from the other side
        )

    def _exchanges(self, other: Question) -> bool:
        """Whether the two differ by nothing but content words that stand in each other's place, one for one."""
        matcher = SequenceMatcher(None, self.stems, other.stems, autojunk=False)
        ours, theirs = self._counted - other._counted, other._counted - self._counted
        pairs = [
            ([each for each in self.stems[a:b] if each in ours], [each for each in other.stems[c:d] if each in theirs])
            for kind, a, b, c, d in matcher.get_opcodes()
            if kind == "replace" and abs((b - a) - (d - c)) <= 1
        ]
        single = [pair for pair in pairs if len(pair[0]) == len(pair[1]) == 1]
        return bool(single) and len(single) == ours.total() == theirs.total()
