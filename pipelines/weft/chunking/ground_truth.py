"""What a docstring says first is a question with a known answer: the rest of its source (EVA-4)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from weft.chunking.code.definitions import definition_of
from weft.chunking.code.grammars import GRAMMARS
from weft.chunking.code.items import items_of
from weft.chunking.code.tree import SyntaxTree, docstring_of
from weft.chunking.units.splitting import decoded, encoded

_WORD = re.compile(r"\w+")
_SENTENCE = re.compile(
    r"(?:\\\r?\n|\s)*(?P<sentence>\S.*?)(?:(?<=[.!?])(?=\s+[^a-z\s]|\s*\Z)|(?=\n[ \t\r]*\n)|(?=\s*\Z))", re.DOTALL
)
_DOCSTRING_WORDS = 6
_LOOKED_UP = 3  # words that a verbatim copy is looked up by


@dataclass(frozen=True, slots=True)
class Mask:
    """A span of a source to be replaced, and the question that it becomes."""

    start: int
    end: int
    replacement: bytes
    question: str


def without_docstring(text: str, language: str | None) -> tuple[str, str] | None:
    r"""The first sentence of a source's first docstring, and the source without it; None where there is none.

    Examples:
        >>> without_docstring("def f():\n    'Counts the books that stand on a shelf. Slowly.'", "python")
        ('Counts the books that stand on a shelf.', "def f():\n    ' Slowly.'")
    """
    mask = next(docstring_masks(encoded(text), language), None)
    return None if mask is None else (mask.question, without(text, [mask])[0])


def docstring_masks(source: bytes, language: str | None) -> Iterator[Mask]:
    """The first sentences, of six words or more, of the docstrings of functions and types."""
    grammar = GRAMMARS.get(language or "")
    if grammar is not None and grammar.docstrings:
        tree = SyntaxTree(source, grammar)
        for node in _docstrings(tree, tree.root.children):
            yield from _docstring_mask(node, source)


def _docstrings(tree: SyntaxTree, nodes: Sequence[Node]) -> Iterator[Node]:
    """Docstrings of the functions and types that may be units of their own, in source order."""
    for item in items_of(tree, nodes, lambda _start, _end: True, lambda _start, _end: True):
        definition = definition_of(item.node, tree)
        if definition is None:
            continue
        statements = [child for child in definition.body.children if not tree.is_comment(child)]
        if statements and (docstring := docstring_of(statements[0])) is not None:
            yield docstring
        if definition.kind != "function":
            yield from _docstrings(tree, statements)


def _docstring_mask(node: Node, source: bytes) -> Iterator[Mask]:
    opening, closing = node.children[0], node.children[-1]
    prefix = decoded(source[opening.start_byte : opening.end_byte]).lower()
    content = decoded(source[opening.end_byte : closing.start_byte])
    match = _SENTENCE.match(content)
    if node.has_error or match is None or {"b", "f"} & set(prefix):
        return
    sentence = match["sentence"]
    # An escape says something else than it shows, so the sentence as written would not be the one that readers see.
    escaped = "\\" in sentence and "r" not in prefix
    if len(_WORD.findall(sentence)) < _DOCSTRING_WORDS or escaped or sentence.startswith(">>>"):
        return
    start = opening.end_byte + len(encoded(content[: match.start("sentence")]))
    yield Mask(start, start + len(encoded(sentence)), b"", flattened(sentence))


def without(text: str, masks: Sequence[Mask]) -> tuple[str, list[int]]:
    """The text with every mask applied, and where each stands in it."""
    source = encoded(text)
    parts: list[bytes] = []
    places: list[int] = []
    done = length = 0
    for mask in masks:
        before = source[done : mask.start]
        parts += [before, mask.replacement]
        places.append(length + len(before))
        length += len(before) + len(mask.replacement)
        done = mask.end
    return decoded(b"".join([*parts, source[done:]])), places


def flattened(text: str) -> str:
    """A text on one line."""
    return " ".join(text.split())


def verbatim(questions: Iterable[str], texts: Iterable[str]) -> set[str]:
    """Questions, of three words or more, that stand word for word in some text."""
    by_start: Mapping[tuple[str, ...], list[str]] = defaultdict(list)
    for question in questions:
        by_start[tuple(_WORD.findall(question)[:_LOOKED_UP])].append(question)
    met: set[str] = set()
    for text in texts:
        words = _WORD.findall(text)
        starts = set(zip(words, words[1:], words[2:], strict=False)) & by_start.keys()
        if starts:
            flat = flattened(text)
            met.update(question for start in starts for question in by_start[start] if question in flat)
    return met
