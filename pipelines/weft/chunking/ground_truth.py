"""Synthetic ground truth: a docstring's first sentence, or a heading, should find its own chunk (EVA-4).

The text that is asked with is taken out of the document first, so that no index holds it verbatim.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tree_sitter import Node

from weft.chunking.chunker import chunk_or_fallback
from weft.chunking.code.definitions import definition_of
from weft.chunking.code.grammars import GRAMMARS
from weft.chunking.code.items import items_of
from weft.chunking.code.tree import SyntaxTree, docstring_of
from weft.chunking.prose.markdown import markdown_outline
from weft.chunking.prose.outline import Block, Heading
from weft.chunking.units.splitting import ChunkSizes, TokenCounter, decoded, encoded
from weft.domain.documents import ContentType, Document
from weft.domain.ids import ChunkId, ContentHash

_WORD = re.compile(r"\w+")
_SENTENCE = re.compile(
    r"(?:\\\r?\n|\s)*(?P<sentence>\S.*?)(?:(?<=[.!?])(?=\s+[^a-z\s]|\s*\Z)|(?=\n[ \t\r]*\n)|(?=\s*\Z))", re.DOTALL
)
_DOCSTRING_WORDS = 6
_HEADING_WORDS = 3  # also the words that a verbatim copy is looked up by


@dataclass(frozen=True, slots=True)
class SyntheticQuestion:
    """A question whose answer is known from where it was taken."""

    text: str
    uri: str
    chunk_id: ChunkId  # The chunk that it was taken out of, as chunking the masked document gives it
    content_hash: ContentHash
    kind: str  # "docstring" or "heading"
    place: int  # byte offset in the masked document at which it was taken out


@dataclass(frozen=True, slots=True)
class _Mask:
    """A span of a source to be replaced, and the question that it becomes."""

    start: int
    end: int
    replacement: bytes
    question: str


def masked(
    document: Document, sizes: ChunkSizes, count_tokens: TokenCounter
) -> tuple[Document, list[SyntheticQuestion]]:
    """The document without the texts that are asked with, and the questions.

    Python: the first sentence of a function's or class's docstring, of six words or more. Markdown: a heading of
    three words or more. A text that still stands elsewhere in the document is masked but not asked.
    """
    masks = _masks(document)
    if not masks:
        return document, []
    text, places = _without(document.text, masks)
    titles = {mask.question for mask in masks}
    remaining = replace(document, text=text, title=None if document.title in titles else document.title)
    chunks, _ = chunk_or_fallback(remaining, sizes, count_tokens)
    flat = _flat(text)
    kind = "heading" if document.content_type is ContentType.MARKDOWN else "docstring"
    questions = []
    for mask, place in zip(masks, places, strict=True):
        chunk = next((chunk for chunk in chunks if chunk.start_byte <= place < chunk.end_byte), None)
        if mask.question not in flat and chunk is not None:
            questions.append(
                SyntheticQuestion(mask.question, document.uri, chunk.chunk_id, chunk.content_hash, kind, place)
            )
    return remaining, questions


def masked_corpus(
    documents: Iterable[Document], sizes_of: Callable[[Document], ChunkSizes], count_tokens: TokenCounter
) -> tuple[list[Document], list[SyntheticQuestion]]:
    """Every document masked, and the questions that have one answer: asked once, verbatim in no document."""
    pairs = [masked(document, sizes_of(document), count_tokens) for document in documents]
    remaining = [document for document, _ in pairs]
    questions = [question for _, asked in pairs for question in asked]
    times = Counter(question.text for question in questions)
    elsewhere = verbatim(times, (document.text for document in remaining))
    return remaining, [each for each in questions if times[each.text] == 1 and each.text not in elsewhere]


def _masks(document: Document) -> list[_Mask]:
    source = encoded(document.text)
    if document.content_type is ContentType.CODE:
        return list(_docstring_masks(source, document.language))
    if document.content_type is ContentType.MARKDOWN:
        blocks = markdown_outline(document.text, source).blocks
        headings = [(block, block.heading) for block in blocks if block.heading is not None]
        return [
            _heading_mask(block, heading, ordinal, source)
            for ordinal, (block, heading) in enumerate(headings, start=1)
            if len(_WORD.findall(heading.title)) >= _HEADING_WORDS
        ]
    return []


def without_docstring(text: str, language: str | None) -> tuple[str, str] | None:
    r"""The first sentence of a source's first docstring, and the source without it; None where there is none.

    Examples:
        >>> without_docstring("def f():\n    'Counts the books that stand on a shelf. Slowly.'", "python")
        ('Counts the books that stand on a shelf.', "def f():\n    ' Slowly.'")
    """
    mask = next(_docstring_masks(encoded(text), language), None)
    return None if mask is None else (mask.question, _without(text, [mask])[0])


def _docstring_masks(source: bytes, language: str | None) -> Iterator[_Mask]:
    grammar = GRAMMARS.get(language or "")
    if grammar is not None and grammar.docstrings:
        tree = SyntaxTree(source, grammar)
        for node in _docstrings(tree, tree.root.children):
            yield from _docstring_mask(node, source)


def _docstrings(tree: SyntaxTree, nodes: Sequence[Node]) -> Iterator[Node]:
    """Docstrings of the functions and types that may be units of their own, in source order."""
    for item in items_of(tree, nodes, lambda _start, _end: True):
        definition = definition_of(item.node, tree)
        if definition is None:
            continue
        statements = [child for child in definition.body.children if not tree.is_comment(child)]
        if statements and (docstring := docstring_of(statements[0])) is not None:
            yield docstring
        if definition.kind != "function":
            yield from _docstrings(tree, statements)


def _docstring_mask(node: Node, source: bytes) -> Iterator[_Mask]:
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
    yield _Mask(start, start + len(encoded(sentence)), b"", _flat(sentence))


def _heading_mask(block: Block, heading: Heading, ordinal: int, source: bytes) -> _Mask:
    # The section must stay a section, so its heading becomes an ordinal, which says nothing about what is under it.
    line = source[block.start : block.end]
    line_end = line[len(line.rstrip(b"\r\n")) :]
    anchor = f" {{#{heading.anchor}}}" if heading.anchor else ""
    neutral = encoded(f"{'#' * heading.rank} Section {ordinal}{anchor}")
    return _Mask(block.start, block.end, neutral + line_end, _flat(heading.title))


def _without(text: str, masks: Sequence[_Mask]) -> tuple[str, list[int]]:
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


def _flat(text: str) -> str:
    return " ".join(text.split())


def verbatim(questions: Iterable[str], texts: Iterable[str]) -> set[str]:
    """Questions, of three words or more, that stand word for word in some text."""
    by_start: Mapping[tuple[str, ...], list[str]] = defaultdict(list)
    for question in questions:
        by_start[tuple(_WORD.findall(question)[:_HEADING_WORDS])].append(question)
    met: set[str] = set()
    for text in texts:
        words = _WORD.findall(text)
        starts = set(zip(words, words[1:], words[2:], strict=False)) & by_start.keys()
        if starts:
            flat = _flat(text)
            met.update(question for start in starts for question in by_start[start] if question in flat)
    return met
