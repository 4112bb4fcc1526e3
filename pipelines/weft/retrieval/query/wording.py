"""A question taken apart: its words by stem, and what makes another one ask for something else (LRN-19)."""

from __future__ import annotations

import re
from collections import Counter
from difflib import SequenceMatcher
from functools import cached_property

from weft.learning.priors import NearPrior
from weft.quality.statements import STEM, stem_of

_TOKEN = re.compile(r"[^\W_](?:[\w.+#/'-]*\w)?|[^\W_]")
_NUMBER = re.compile(r"\d+(?:\.\d+)*")
_PREFIXES = ("un", "dis", "in", "im", "non", "de")
_SHORT_DENIALS = {"can't": "can", "won't": "will", "shan't": "shall"}  # whose verb is not what stands before n't
_SHORT_FORM = re.compile(r"^(i|you|we|they|he|she|it|what|where|who|how|that|there|here)'(?:m|s|ve|d|ll|re)$")
# British endings and what stands for them: initialise, analysing, colour, cancelled. Short words are left as they are
# (rise, four), and so are those with one syllable before the ending (spelling).
_SPELLINGS = (
    (re.compile(r"^([a-z]{3,}[b-df-hj-np-tv-z])is(?=(?:e[ds]?|ers?|ing|ations?)$)"), r"\1iz"),
    (re.compile(r"(?<=al)ys(?=(?:e[ds]?|ers?|ing)$)"), "yz"),
    (re.compile(r"(?<=[a-z]{3})our(?=(?:s|ed|ing|ful|ite|ites)?$)"), "or"),
    (re.compile(r"(?<=[a-z])([aeiou][b-df-hj-np-tv-z]+e)ll(?=(?:ed|ing|ers?)$)"), r"\1l"),
)
_DIRECTIONS = frozenset({"to", "into", "before", "after", "from", "over"})


class Lexicon:
    """What is known of words, by stem."""

    def __init__(self, prior: NearPrior) -> None:
        self.prior = prior
        self.idle = frozenset(prior.idle_words) | _DIRECTIONS
        self.negations = frozenset(prior.negations)
        self._synonyms = {
            each: group[0] for group in prior.synonyms for word in group for each in (word, stem_of(word))
        }
        pairs = [(self.stem(one), self.stem(other)) for one, other in prior.opposites]
        self._opposites = frozenset([*pairs, *((other, one) for one, other in pairs)])

    def words(self, text: str) -> list[str]:
        """The words of a text in lower case, "don't" as "do not", "set up" and the like as one."""
        words: list[str] = []
        for word in (part for each in _TOKEN.findall(text.replace("’", "'")) for part in _in_full(each.casefold())):
            if words and self._knows(phrase := f"{words[-1]} {word}"):
                words[-1] = phrase
            else:
                words.append(word)
        return words

    def stem(self, word: str) -> str:
        """A word without its ending, however spelt; one word for all synonyms."""
        for ending, american in _SPELLINGS:
            word = ending.sub(american, word)
        stem = stem_of(word)
        return self._synonyms.get(word) or self._synonyms.get(stem, stem)

    def _knows(self, phrase: str) -> bool:
        """Whether words side by side, in whatever number, are among the synonyms."""
        return phrase in self._synonyms or stem_of(phrase) in self._synonyms

    def opposite(self, one: str, other: str) -> bool:
        """Whether one stem excludes the other, by the list or by a prefix that denies."""
        short, long = sorted((one, other), key=len)
        denies = len(short) >= STEM and any(long == prefix + short for prefix in _PREFIXES)
        return denies or (one, other) in self._opposites


def _in_full(word: str) -> tuple[str, ...]:
    """The words that a short form stands for; what shortens an idle word ("what's", "I've") goes without it."""
    if word == "cannot":
        return "can", "not"
    if word.endswith("n't"):
        return _SHORT_DENIALS.get(word, word.removesuffix("n't")), "not"
    short = _SHORT_FORM.match(word)
    return (short.group(1),) if short else (word,)


class Wording:
    """A question taken apart."""

    def __init__(self, text: str, lexicon: Lexicon) -> None:
        self.words = lexicon.words(text)
        self.stems = [lexicon.stem(word) for word in self.words]
        self._lexicon = lexicon

    @cached_property
    def content(self) -> frozenset[str]:
        """Stems of words that say what is asked for."""
        return frozenset(stem for _, stem in self._content_places)

    def lacks(self, other: Wording) -> Counter[str]:
        """Content stems of another question that this one has not, or not so often."""
        return other._counted - self._counted

    @cached_property
    def _counted(self) -> Counter[str]:
        return Counter(stem for _, stem in self._content_places)

    @cached_property
    def numbers(self) -> frozenset[str]:
        """What is written in digits: versions, amounts, numbers of names."""
        return frozenset(number for stem in self.stems for number in _NUMBER.findall(stem))

    @cached_property
    def denies(self) -> bool:
        """Whether there is a negation."""
        negations = self._lexicon.negations
        return any(word in negations for word in self.words)

    @cached_property
    def asks(self) -> frozenset[str]:
        """Question words that say what kind of answer is wanted: where, when, how often."""
        pairs = {f"how {word}" for before, word in zip(self.words, self.words[1:], strict=False) if before == "how"}
        return frozenset({*self.words, *pairs}.intersection(self._lexicon.prior.question_words))

    @cached_property
    def directions(self) -> frozenset[tuple[str, str]]:
        """Pairs of content words with a preposition of direction between them, in their order."""
        pairs = zip(self._content_places, self._content_places[1:], strict=False)
        return frozenset(
            (left, right) for (at, left), (then, right) in pairs if _DIRECTIONS.intersection(self.words[at + 1 : then])
        )

    @cached_property
    def _content_places(self) -> list[tuple[int, str]]:
        idle = self._lexicon.idle
        return [
            (at, stem) for at, (word, stem) in enumerate(zip(self.words, self.stems, strict=True)) if word not in idle
        ]

    def contradicts(self, other: Wording) -> bool:
        """Whether the two ask for something else, however near they lie."""
        ours, theirs = set(self.stems) - set(other.stems), set(other.stems) - set(self.stems)
        there, back = self.directions - other.directions, other.directions - self.directions
        return (
            self.denies != other.denies
            or bool(self.numbers and other.numbers and self.numbers != other.numbers)
            or bool(self.asks and other.asks and self.asks != other.asks)
            or any((right, left) in back for left, right in there)
            or any(self._lexicon.opposite(one, another) for one in ours for another in theirs)
            or self._exchanges(other)
            or other._exchanges(self)  # texts are aligned another way round from the other side
        )

    def _exchanges(self, other: Wording) -> bool:
        """Whether the two differ by nothing but content words that stand in each other's place, one for one."""
        matcher = SequenceMatcher(None, self.stems, other.stems, autojunk=False)
        ours, theirs = other.lacks(self), self.lacks(other)
        pairs = [
            ([each for each in self.stems[a:b] if each in ours], [each for each in other.stems[c:d] if each in theirs])
            for kind, a, b, c, d in matcher.get_opcodes()
            if kind == "replace"
        ]
        single = [pair for pair in pairs if len(pair[0]) == len(pair[1]) == 1]
        return bool(single) and len(single) == ours.total() == theirs.total()
