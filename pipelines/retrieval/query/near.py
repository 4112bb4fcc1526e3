"""Which past questions ask the same, in other words (LRN-19).

Cosines alone cannot tell: "enable the cache" and "disable the cache" lie as near as two ways to ask for one thing. So
what two questions do not have in common is looked at. Names, numbers, negations, directions and question words that
disagree, opposites, and one content word in the place of another that is no synonym make a question that looks alike
and asks for something else: nothing passes from one to the other. Of the rest the cosine says how much does.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np

from pipelines.domain.ids import question_of
from pipelines.learning.observe.precedents import Precedents
from pipelines.learning.priors import NearPrior

_TOKEN = re.compile(r"[^\W_](?:[\w.+#/'-]*\w)?|[^\W_]")
_ENDINGS = ("ings", "ing", "ies", "ed", "es", "s", "ly")
_STEM = 3  # letters that stay of a word at least
_PREFIXES = ("un", "dis", "in", "im", "non", "de")
_DIRECTIONS = frozenset({"to", "into", "before", "after", "from", "over"})


class Lexicon:
    """What is known of words, by stem.

    Attributes:
        idle: Words that say nothing about what is asked for.
    """

    def __init__(self, prior: NearPrior) -> None:
        self.prior = prior
        self.idle = frozenset(prior.idle_words) | _DIRECTIONS
        self._synonyms = {each: group[0] for group in prior.synonyms for word in group for each in (word, _stem(word))}
        pairs = [(self.stem(one), self.stem(other)) for one, other in prior.opposites]
        self._opposites = frozenset([*pairs, *((other, one) for one, other in pairs)])

    def words(self, text: str) -> list[str]:
        """The words of a text in lower case, "set up" and the like as one."""
        words: list[str] = []
        for word in (each.casefold() for each in _TOKEN.findall(text)):
            if words and (phrase := f"{words[-1]} {word}") in self._synonyms:
                words[-1] = phrase
            else:
                words.append(word)
        return words

    def stem(self, word: str) -> str:
        """A word without its ending; one word for all synonyms."""
        stem = _stem(word)
        return self._synonyms.get(word) or self._synonyms.get(stem, stem)

    def opposite(self, one: str, other: str) -> bool:
        """Whether one stem excludes the other, by the list or by a prefix that denies."""
        short, long = sorted((one, other), key=len)
        denies = len(short) >= _STEM and any(long == prefix + short for prefix in _PREFIXES)
        return denies or (one, other) in self._opposites


class Wording:
    """A question taken apart.

    Attributes:
        words: In lower case.
        stems: Of each word.
    """

    def __init__(self, text: str, lexicon: Lexicon) -> None:
        self.words = lexicon.words(text)
        self.stems = [lexicon.stem(word) for word in self.words]
        self._lexicon = lexicon

    @cached_property
    def content(self) -> frozenset[str]:
        """Stems of words that say what is asked for."""
        return frozenset(stem for _, stem in self._content_places)

    @cached_property
    def numbers(self) -> frozenset[str]:
        """Words with a digit in them: versions, amounts, codes."""
        return frozenset(word for word in self.words if any(letter.isdigit() for letter in word))

    @cached_property
    def denies(self) -> bool:
        """Whether there is a negation."""
        negations = self._lexicon.prior.negations
        return any(word in negations or word.endswith("n't") for word in self.words)

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
        )

    def _exchanges(self, other: Wording) -> bool:
        """Whether the two differ by nothing but content words that stand in each other's place, one for one."""
        matcher = SequenceMatcher(None, self.stems, other.stems, autojunk=False)
        ours, theirs = self.content - other.content, other.content - self.content
        pairs = [
            ([each for each in self.stems[a:b] if each in ours], [each for each in other.stems[c:d] if each in theirs])
            for kind, a, b, c, d in matcher.get_opcodes()
            if kind == "replace"
        ]
        single = [pair for pair in pairs if len(pair[0]) == len(pair[1]) == 1]
        return bool(single) and len(single) == len(ours) == len(theirs)


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _STEM:
            root = word[: -len(ending)] + ("y" if ending == "ies" else "")
            return root.rstrip("e") if len(root) > _STEM else root
    return word.rstrip("e") if len(word) > _STEM else word


def near_factor(ours: Wording, theirs: Wording, cosine: float, prior: NearPrior) -> float:
    """How far outcomes under one question count for another, in [0, 1].

    Examples:
        >>> from pipelines.settings import load_settings
        >>> prior = load_settings(environment={}).priors.near
        >>> asked, lexicon = "enable the cache", Lexicon(prior)
        >>> [
        ...     near_factor(Wording(asked, lexicon), Wording(text, lexicon), 0.95, prior) > 0.5
        ...     for text in ("disable the cache", "how do I activate the cache")
        ... ]
        [False, True]
    """
    if ours.contradicts(theirs):
        return 0.0
    if ours.content == theirs.content and ours.content:
        return prior.same_words
    return float(np.interp(cosine, prior.cosines, prior.factors))


class QuestionIndex:
    """Past questions by meaning: vectors of texts, each made once; shared by threads.

    Args:
        encode: From texts to unit rows, float32 (n, dimension).
    """

    def __init__(self, encode: Callable[[Sequence[str]], np.ndarray]) -> None:
        self._encode = encode
        self._vectors: dict[str, np.ndarray] = {}
        self._lock = threading.Lock()
        self._asked: WeakKeyDictionary[Precedents, _Asked] = WeakKeyDictionary()

    def near(self, text: str, vector: np.ndarray | None, precedents: Precedents, prior: NearPrior) -> dict[str, float]:
        """Past questions that count for one, by fingerprint, with the factor; itself, where it was asked, with 1.

        Args:
            vector: Of the question, a unit vector; None finds the question itself alone.
        """
        own = question_of(text)
        near = {own: 1.0} if len(precedents.under(own)) else {}
        if vector is None or not precedents.texts:
            return near
        asked = self._read(precedents, prior)
        if not asked.fingerprints:
            return near
        cosines, ours = asked.vectors @ vector, Wording(text, asked.lexicon)
        for at in np.flatnonzero(cosines > prior.cosines[0]).tolist():
            factor = near_factor(ours, Wording(asked.texts[at], asked.lexicon), float(cosines[at]), prior)
            if factor > 0.0 and asked.fingerprints[at] != own:
                near[asked.fingerprints[at]] = factor
        return near

    def _read(self, precedents: Precedents, prior: NearPrior) -> _Asked:
        with self._lock:
            asked = self._asked.get(precedents)
            if asked is None:
                asked = self._asked[precedents] = self._encoded(precedents, prior)
            return asked

    def _encoded(self, precedents: Precedents, prior: NearPrior) -> _Asked:
        some = [each for each in sorted(precedents.texts) if len(precedents.under(each))][: prior.held]
        texts = [precedents.texts[each] for each in some]
        vectors = self._vectors
        if new := [text for text in dict.fromkeys(texts) if text not in vectors]:
            vectors = vectors | dict(zip(new, self._encode(new), strict=True))
        self._vectors = {text: vectors[text] for text in texts}
        return _Asked(some, texts, np.array([vectors[text] for text in texts], dtype=np.float32), Lexicon(prior))


@dataclass(frozen=True, slots=True)
class _Asked:
    fingerprints: Sequence[str]
    texts: Sequence[str]
    vectors: np.ndarray
    lexicon: Lexicon
