"""A question taken apart: what it asks for, and whether another one asks for something else (LRN-19)."""

from __future__ import annotations

import re
from functools import cached_property
from itertools import pairwise

from weft.wording.comparison import exclude_each_other
from weft.wording.lexicon import DIRECTIONS, IDLE, LACKING, QUESTIONS, denies, meaning_of, sure_stem
from weft.wording.text import read_words
from weft.wording.words import is_misspelt, stem_of

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

    def contradicts(self, other: Question) -> bool:
        """Whether the two ask for something else, however near they lie.

        Each has a content word that the other lacks, in whatever form; or they differ in what they deny, count or ask.
        No list has all synonyms: where one is not known, what asks the same is taken for something else.

        Examples:
            >>> ours = Question("merge two branches")
            >>> others = ["split two branches", "merging of two brnaches", "merge"]
            >>> [ours.contradicts(Question(text)) for text in others]
            [True, False, False]
        """
        ours, theirs = set(self.words) - set(other.words), set(other.words) - set(self.words)
        there, back = self.directions - other.directions, other.directions - self.directions
        return (
            self.denies != other.denies
            or bool(self.numbers and other.numbers and self.numbers != other.numbers)
            or bool(self.asks and other.asks and self.asks != other.asks)
            or any((right, left) in back for left, right in there)
            or exclude_each_other(ours, theirs)
            or bool(self._beyond(other) and other._beyond(self))
        )

    def says_the_same(self, other: Question) -> bool:
        """Whether the content words are the same, in whatever form, joined or misspelt."""
        return self.content == other.content or not (self._beyond(other) or other._beyond(self))

    def _beyond(self, other: Question) -> set[str]:
        """Content words that another question has in no form: neither joined, nor apart, nor misspelt."""
        lacking, theirs = self._lacking(other), other._lacking(self)
        together = {one + two for one, two in pairwise(other.words)}
        apart = {part for one, two in pairwise(self.words) if one + two in theirs for part in (one, two)}
        rest = {word for word in lacking - apart if word.replace("-", "") not in together}
        return {word for word in rest if not any(_are_one(word, each) for each in theirs)}

    def _lacking(self, other: Question) -> set[str]:
        return {self.words[at] for at, _ in self._places if not _meanings(self.words[at]) <= other._meant}

    @cached_property
    def _meant(self) -> frozenset[str]:
        """Stems of content words, and of the parts of phrases."""
        return self.content.union(*(_meanings(self.words[at]) for at, _ in self._places))


def _meanings(word: str) -> set[str]:
    """Stems of a word, or of the parts of a phrase, one for all that may mean the same."""
    return {meaning_of(sure_stem(part)) for part in word.split()}


def _are_one(word: str, other: str) -> bool:
    return is_misspelt(word, other) or is_misspelt(stem_of(word), stem_of(other))
