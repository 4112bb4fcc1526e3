"""Counting WordPiece tokens word by word: most words of a text were met before, and cost a look-up."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

_UNITS = re.compile(r"[A-Za-z0-9]+|[!-/:-@\[-`{-~]")
_OTHER = re.compile(r"[^\t\n\r -~]")
_MOST_WORDS = 200_000  # remembered; a source that has more distinct ones is no language


class WordCounts:
    r"""Number of tokens of texts in printable ASCII, by a tokenizer that splits at blanks and punctuation.

    What BERT's tokenizers do with such texts is known exactly: blanks part words, each punctuation mark is a token, and
    a word's tokens are its own, whatever stands beside it. Other texts are not counted here.

    Args:
        special: Strings that the tokenizer takes for one token wherever they stand, such as "[MASK]".
        count: Counts one word, by the tokenizer itself.

    Examples:
        >>> words = WordCounts(["[MASK]"], len)
        >>> words.count("ab (c)"), words.count("na\u00efve"), words.count("a [MASK]")
        (5, None, None)
    """

    def __init__(self, special: list[str], count: Callable[[str], int]) -> None:
        self._special = re.compile("|".join(map(re.escape, special))) if special else None
        self._counted = _Counted(count)

    def count(self, text: str) -> int | None:
        """Number of tokens, or None where only the tokenizer itself can tell."""
        if _OTHER.search(text) or (self._special is not None and self._special.search(text)):
            return None
        if len(self._counted) > _MOST_WORDS:
            self._counted.clear()
        return sum(map(self._counted.__getitem__, _UNITS.findall(text)))


def splits_at_words(definition: str) -> bool:
    """Whether a tokenizer, given as the text of its `tokenizer.json`, is one that `WordCounts` counts for.

    Examples:
        >>> splits_at_words('{"model": {"type": "BPE"}}')
        False
    """
    parts: dict[str, Any] = json.loads(definition)
    kinds = [(parts.get(name) or {}).get("type") for name in ("normalizer", "pre_tokenizer", "model")]
    return kinds == ["BertNormalizer", "BertPreTokenizer", "WordPiece"]


class _Counted(dict[str, int]):
    def __init__(self, count: Callable[[str], int]) -> None:
        super().__init__()
        self._count = count

    def __missing__(self, word: str) -> int:
        self[word] = found = self._count(word)
        return found
