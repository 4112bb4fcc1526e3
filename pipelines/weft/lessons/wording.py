"""Words of lessons and of what is said about them: stems, names, numbers and what denies."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weft.lessons.settings import LessonWordSettings

_TOKEN = re.compile(r"--?[a-z][\w-]*|[^\W_](?:[\w.+#/:'’-]*[\w+#])?|[^\W_]", re.IGNORECASE)
_ENDINGS = ("ations", "ation", "ings", "ing", "ies", "ied", "ed", "es", "s", "ly")
_STEM = 3  # letters that stay of a word at least
_VOWELS = frozenset("aeiouy")
_PREFIXES = ("un", "dis", "in", "non", "non-", "de", "anti")


@lru_cache(maxsize=65_536)
def stem_of(word: str) -> str:
    """A word in lower case without its ending.

    Examples:
        >>> [stem_of(word) for word in ("Migrations", "migrate", "running", "run", "tests", "retries", "retry")]
        ['migr', 'migr', 'run', 'run', 'test', 'retr', 'retr']
    """
    word = word.casefold().replace("’", "'").removesuffix("'s")
    first, sign, last = word.rpartition("-")
    if first and last.isalpha():  # "force-pushing"
        return f"{first}{sign}{stem_of(last)}"
    if not word.isalpha():
        return word
    for ending in _ENDINGS:
        rest = word[: -len(ending)]
        # "this" and "class" end in s, and are no plurals; "string" is no gerund.
        if word.endswith(ending) and len(rest) >= _STEM and _VOWELS.intersection(rest) and not word.endswith("ss"):
            word = rest.removesuffix("at") if len(rest) > _STEM + 1 else rest  # "rotated" as "rotate"
            break
    if len(word) > _STEM and word[-1] == word[-2] and word[-1] not in "sl":
        word = word[:-1]
    for ending in ("ate", "e", "y", "i"):
        if word.endswith(ending) and len(word) - len(ending) >= _STEM:
            return word[: -len(ending)]
    return word


def words_of(text: str) -> list[str]:
    """Words, names and flags in lower case, in their order.

    Examples:
        >>> words_of("Don't use `git push --force` on v1.2, use main.py.")
        ["don't", 'use', 'git', 'push', '--force', 'on', 'v1.2', 'use', 'main.py']
    """
    return [word.casefold().replace("’", "'") for word in _TOKEN.findall(text)]


class LessonWords:
    """Words by what they do, as the settings list them."""

    def __init__(self, settings: LessonWordSettings) -> None:
        self.idle = frozenset(settings.idle)
        self.negations = frozenset(settings.negations)
        self.numerals = frozenset(settings.numerals)
        self.deciding = frozenset(settings.deciding)
        self._units = frozenset(map(stem_of, settings.units))
        self._synonyms = {stem_of(word): stem_of(group[0]) for group in settings.synonyms for word in group}
        self._listed: dict[str, set[str]] = defaultdict(set)
        for one, other in settings.opposites:
            left, right = self.stem(one), self.stem(other)
            self._listed[left].add(right)
            self._listed[right].add(left)
        self._excluding: dict[str, frozenset[str]] = {}
        self._naming = lru_cache(maxsize=65_536)(self._named_by)

    def stem(self, word: str) -> str:
        """A word's stem; one for all synonyms."""
        stem = stem_of(word)
        return self._synonyms.get(stem, stem)

    def excluding(self, stem: str) -> frozenset[str]:
        """Stems of which each excludes one: as the settings list them, and the same with a denying prefix, or without.

        Examples:
            >>> from weft.settings import load_settings
            >>> words = LessonWords(load_settings(environment={}).lessons.words)
            >>> sorted(words.excluding("lock") & {"unlock", "open", "relock"}), "sign" in words.excluding("unsign")
            (['unlock'], True)
        """
        cached = self._excluding.get(stem)
        if cached is None:
            with_prefix = [prefix + stem for prefix in _PREFIXES if len(stem) >= _STEM]
            without = [stem.removeprefix(prefix) for prefix in _PREFIXES if stem.startswith(prefix)]
            plain = [rest for rest in without if len(rest) >= _STEM]
            cached = frozenset([*self._listed.get(stem, ()), *with_prefix, *plain])
            self._excluding[stem] = cached
        return cached

    def amounts(self, tokens: Sequence[str]) -> frozenset[str]:
        """Stems of numbers, and of the units behind them: "30", "two", "second".

        Examples:
            >>> from weft.settings import load_settings
            >>> words = LessonWords(load_settings(environment={}).lessons.words)
            >>> sorted(words.amounts(words_of("wait 10 seconds after two failures of the second host")))
            ['10', 'second', 'two']
        """
        counted = {at for at, word in enumerate(tokens) if word in self.numerals or any(map(str.isdigit, word))}
        units = {at + 1 for at in counted if at + 1 < len(tokens) and stem_of(tokens[at + 1]) in self._units}
        return frozenset(self.stem(tokens[at]) for at in counted | units)

    def subject(self, text: str) -> list[str]:
        """Stems of the words that say what a text is about, in their order."""
        return self.naming(words_of(text))

    def naming(self, tokens: Sequence[str]) -> list[str]:
        """Stems of those of some words that say what a text is about."""
        return [stem for stem in map(self._naming, tokens) if stem]

    def _named_by(self, word: str) -> str:
        """The stem of what a word names; empty where it names nothing."""
        idle = word in self.idle or self.denying(word) or (len(word) == 1 and not word.isdigit())
        return "" if idle else self.stem(word)

    def denying(self, word: str) -> bool:
        """Whether a word denies what it stands with."""
        return word in self.negations or word.endswith("n't")
