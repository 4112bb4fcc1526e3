"""The three signs that a query's text may have (RET-22): "phrase", +word and -word. All else in it is words."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pipelines.indexes.rows import RowSet

_PAIRS = ('""', "“”", "””", "„“", "„”", "‟”", "«»", "»«", "「」", "『』", "＂＂")
_MARKS = "".join(dict.fromkeys("".join(_PAIRS)))
_QUOTED = "|".join(rf"{pair[0]}(?P<q{at}>[^{_MARKS}]+){pair[1]}" for at, pair in enumerate(_PAIRS))
_SIGN = re.compile(
    rf"(?<![^\s(\[{{])(?P<before>[+-]?)(?:{_QUOTED})|(?<![^\s(\[{{])(?P<sign>[+-])(?P<word>[^\W\d_][^\s{_MARKS}]+)"
)
_KEYS = str.maketrans("＋－−", "+--")  # plus and minus as other keyboards have them
_AS_IT_STANDS = re.compile(r"--[^\W\d_][\w-]*|[A-Z]{2,}(?: [A-Z]{2,})+")  # a flag, an operator such as IS NULL
_TRAILING = ".,;:!?)]}…"

Holding = Callable[[str, bool], np.ndarray | None]
"""Which contents hold some words, bool (contents,): as a phrase if so asked for, else in whatever form they have.

None where there are no words in it, or where the index cannot tell.
"""


@dataclass(frozen=True, slots=True)
class QueryOperator:
    """One sign of a query.

    Attributes:
        typed: As it stands in the query.
        words: What it is about.
        phrase: Whether these stand side by side, as they are.
        excludes: Whether texts that hold them are left out; else they stand first.
    """

    typed: str
    words: str
    phrase: bool
    excludes: bool


def parse_operators(text: str) -> tuple[str, tuple[QueryOperator, ...]]:
    """The text that is searched, without what it excludes, and its signs.

    A flag has two dashes, or one letter, and is no sign. Where nothing else is asked for, nothing is excluded. A query
    that is a flag or an operator in capitals, and nothing else, is looked for as if it were quoted.

    Examples:
        >>> text, signs = parse_operators('"dead letter" queue +kafka -redis --cache -q')
        >>> text, [sign.typed for sign in signs]
        ('dead letter queue kafka --cache -q', ['"dead letter"', '+kafka', '-redis'])
        >>> [parse_operators(text)[1][0].phrase for text in ("--cache", "IS NOT NULL")]
        [True, True]
        >>> parse_operators("-redis"), parse_operators('5" or - 3 +1 a-b')
        (('-redis', ()), ('5" or - 3 +1 a-b', ()))
    """
    text = text.translate(_KEYS)
    if _AS_IT_STANDS.fullmatch(text):
        return text, (QueryOperator(text, text, phrase=True, excludes=False),)
    signs: list[QueryOperator] = []
    pieces: list[str] = []
    end = 0
    for match in _SIGN.finditer(text):
        before, word = match["before"] or match["sign"], match["word"]
        quoted = next((match[f"q{at}"] for at in range(len(_PAIRS)) if match[f"q{at}"]), None)
        words = quoted if quoted is not None else word.rstrip(_TRAILING)
        if len(words) < 2 or not any(letter.isalnum() for letter in words):
            continue
        stop = match.end() if quoted is not None else match.start() + 1 + len(words)
        sign = QueryOperator(text[match.start() : stop], words, quoted is not None, before == "-")
        signs.append(sign)
        pieces += [text[end : match.start()], "" if sign.excludes else words]
        end = stop
    rest = " ".join("".join((*pieces, text[end:])).split())
    if not any(letter.isalnum() for letter in rest):
        return text, ()
    return rest, tuple(signs)


@dataclass(frozen=True, slots=True)
class AppliedOperators:
    """What the signs of a query come to in one generation.

    Attributes:
        among: All that may match; None for everything.
        first: What stands before all else; None where no sign asks for that.
        held: Signs that were followed, as they are typed.
        unheld: Signs that are taken as plain words, or as not there: no text has what they ask for.
    """

    among: RowSet | None
    first: RowSet | None = None
    held: tuple[str, ...] = ()
    unheld: tuple[str, ...] = ()


def apply_operators(signs: tuple[QueryOperator, ...], among: RowSet | None, holding: Holding) -> AppliedOperators:
    """Follow the signs of a query as far as there are texts that have all they ask for.

    Args:
        among: All that may match by other filters.
    """
    allowed = None if among is None else among.mask
    excluded: np.ndarray | None = None
    first: np.ndarray | None = None
    held: list[str] = []
    unheld: list[str] = []
    for sign in sorted(signs, key=lambda sign: not sign.excludes):
        mask = holding(sign.words, sign.phrase)
        left = None if mask is None else _both(allowed, ~mask if sign.excludes else mask)
        together = left if first is None or left is None else left & first
        if together is None or not together.any():
            unheld.append(sign.typed)
            continue
        held.append(sign.typed)
        if sign.excludes:
            allowed = excluded = together
        else:
            first = together
    match = among if excluded is None else RowSet(excluded)
    return AppliedOperators(match, None if first is None else RowSet(first), tuple(held), tuple(unheld))


def _both(allowed: np.ndarray | None, mask: np.ndarray) -> np.ndarray:
    return mask if allowed is None else mask & allowed
