"""Counting tokens word by word, for tokenizers that split at blanks and punctuation first (Devlin et al., NAACL 2019).

Such a tokenizer never joins two words, so the length of a text is the sum of its words' lengths, and a word's length
can be remembered: source code and prose repeat theirs. Only ASCII is counted so; what normalisation does to other
text is the tokenizer's to say.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

_WORD = re.compile(r"[A-Za-z0-9]+")
_BLANKS = " \t\r\n"
_READABLE = re.compile(r"[\t\r\n -~]*")
_REMEMBERED = 200_000  # words, about 20 MB
_LONGEST = 64  # characters of a word that may come again


class _Lengths(dict[str, int]):
    """Tokens of words, asked for once."""

    def __init__(self, count: Callable[[str], int]) -> None:
        super().__init__()
        self._count = count

    def __missing__(self, word: str) -> int:
        length = self._count(word)
        if len(word) <= _LONGEST and len(self) < _REMEMBERED:
            self[word] = length
        return length


class WordCounts:
    """Length of a text: of its words, and one for every other sign that is no blank."""

    def __init__(self, count: Callable[[str], int], reserved: Iterable[str]) -> None:
        self._lengths = _Lengths(count)
        self._reserved = re.compile("|".join(map(re.escape, reserved)) or r"(?!)")

    def knows(self, text: str) -> bool:
        """Whether a text can be counted so: printable ASCII that holds no token of the tokenizer's own."""
        return text.isascii() and _READABLE.fullmatch(text) is not None and self._reserved.search(text) is None

    def __call__(self, text: str) -> int:
        """Tokens of a text that it knows."""
        words = _WORD.findall(text)
        signs = len(text) - sum(map(len, words)) - sum(map(text.count, _BLANKS))
        return signs + sum(map(self._lengths.__getitem__, words))
