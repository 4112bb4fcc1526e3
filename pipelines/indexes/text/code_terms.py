"""The words inside identifiers: what a code-aware analysis adds to a text so that prose queries find code (ING-23)."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable

_IDENTIFIER = re.compile(r"[^\W\d]\w*(?:[./:-]+[^\W\d]\w*)*")
_SEPARATOR = re.compile(r"[\W_]+")
# Runs of capitals before a capitalised word (HTTPServer), words, capitals, digits.
_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_A-Za-z]+")


_REMEMBERED = 65_536  # identifiers: a corpus repeats its own in file after file


@functools.lru_cache(_REMEMBERED)
def split_identifier(identifier: str) -> tuple[str, ...]:
    """The words of an identifier or dotted path, in lower case.

    Examples:
        >>> split_identifier("os.path.HTTPServer_error2")
        ('os', 'path', 'http', 'server', 'error', '2')
    """
    parts = (part for part in _SEPARATOR.split(identifier) if part)
    return tuple(word.lower() for part in parts for word in _WORD.findall(part))


def code_terms(text: str) -> list[str]:
    """The words of every compound identifier in a text, each identifier once, in order of appearance.

    Identifiers of one word add nothing: the text itself already holds them.

    Examples:
        >>> code_terms("writeAtomically(path); write_atomically(path); writeAtomically(other)")
        ['write', 'atomically', 'write', 'atomically']
    """
    return list(_words(dict.fromkeys(_IDENTIFIER.findall(text))))


def symbol_terms(names: Iterable[str]) -> list[str]:
    """Qualified names followed by their words: the symbols field of a chunk.

    Examples:
        >>> symbol_terms(["Store.openFile"])
        ['Store.openFile', 'store', 'open', 'file']
    """
    return [term for name in dict.fromkeys(names) for term in (name, *split_identifier(name))]


def _words(identifiers: Iterable[str]) -> Iterable[str]:
    for identifier in identifiers:
        words = split_identifier(identifier)
        if len(words) > 1:
            yield from words
