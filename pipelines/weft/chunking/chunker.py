"""One chunker per content type, what becomes of a document that its chunker fails on, and titles (ING-37)."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from weft.chunking.code.source import chunk_code
from weft.chunking.config.file import chunk_configuration
from weft.chunking.conversation.session import Similarity, chunk_conversation
from weft.chunking.paper.paper import chunk_paper
from weft.chunking.prose.reader import chunk_prose
from weft.chunking.prose.text import chunk_plainly, chunk_record, chunk_text
from weft.chunking.units.splitting import ChunkSizes, TokenCounter
from weft.domain.chunks import Chunk
from weft.domain.documents import ContentType, Document, Rejection

Chunker = Callable[[Document, ChunkSizes, TokenCounter], list[Chunk]]
"""Cuts one document into chunks, in source order."""

Chunkers = Mapping[ContentType, Chunker]
"""A chunker for every content type."""

CHUNKERS: Chunkers = {
    ContentType.CODE: chunk_code,
    ContentType.MARKDOWN: chunk_prose,
    ContentType.RST: chunk_prose,
    ContentType.MARKUP: chunk_prose,
    ContentType.PAPER: chunk_paper,
    ContentType.CONVERSATION: chunk_conversation,
    ContentType.CONFIGURATION: chunk_configuration,
    ContentType.TEXT: chunk_text,
    ContentType.RECORD: chunk_record,
}

_LONGEST = 200  # characters of a title
_LOOKED_AT = 65_536  # characters of a file: its head is there or nowhere
_LARGEST = 8 * 1024 * 1024  # characters of JSON that are read for a title

_SCRIPT_DOC = re.compile(r"^[ \t]*(?:/\*\*|\*)[ \t]*@file(?:overview)?[ \t]+([^\n*]+)", re.MULTILINE)
_OF_CODE: Mapping[str, re.Pattern[str]] = {
    "python": re.compile(
        r"\A(?:\s|#[^\n]*)*+[rRuU]?"
        r"(?:\"\"\"\s*([^\n]*?)\s*(?:\"\"\"|\n)|'''\s*([^\n]*?)\s*(?:'''|\n)|\"([^\"\n]+)\"|'([^'\n]+)')"
    ),
    "rust": re.compile(r"\A(?:\s|//(?!!)[^\n]*)*+//![ \t]*(?:#+[ \t]*)?([^\n]+)"),
    "go": re.compile(r"^(?://|/\*)[ \t]*(Package \w[^\n]*)", re.MULTILINE),
    **dict.fromkeys(("javascript", "typescript", "jsx", "tsx"), _SCRIPT_DOC),
}
"""The first line of what documents a whole file, as the languages have it."""

_OF_LINES: Mapping[str, re.Pattern[str]] = {
    "yaml": re.compile(r"^(?:title|name|info:\n[ \t]+title)[ \t]*:[ \t]+[\"']?([^\n\"'#>|&*{\[]+)", re.MULTILINE),
    "toml": re.compile(r"^(?:title|name)[ \t]*=[ \t]*[\"']([^\n\"']+)", re.MULTILINE),
}
_PAGE_TITLE = re.compile(r"<title[^<>]{0,200}>([^<]{1,1000})</title", re.IGNORECASE)


def chunk_document(
    document: Document, sizes: ChunkSizes, count_tokens: TokenCounter, chunkers: Chunkers = CHUNKERS
) -> list[Chunk]:
    """Chunks of a document, by its content type.

    Every byte lies in the span of a chunk, unless all are blank or a page shows none: such a document has no chunks.
    """
    return chunkers[document.content_type](document, sizes, count_tokens)


def chunkers_with(similarity: Similarity) -> Chunkers:
    """Chunkers that find the topics of a conversation by the similarity of its turns too."""
    return {**CHUNKERS, ContentType.CONVERSATION: partial(chunk_conversation, similarity=similarity)}


def chunk_or_fallback(
    document: Document, sizes: ChunkSizes, count_tokens: TokenCounter, chunkers: Chunkers = CHUNKERS
) -> tuple[list[Chunk], Rejection | None]:
    """Chunks of a document; plain windows and a note where its own chunker raises (ING-3)."""
    try:
        return chunk_document(document, sizes, count_tokens, chunkers), None
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001  hostile input may raise anything inside a parser, and must not stop a run
        note = Rejection(document.uri, CRASHED, f"{type(error).__name__}: {error}"[:_DETAIL_CHARACTERS])
    return chunk_plainly(document, sizes, count_tokens), note


CRASHED = "parser_crashed"
"""The reason noted for a document whose own chunker failed."""

_DETAIL_CHARACTERS = 500


def title_of(document: Document, chunks: Sequence[Chunk]) -> str | None:
    r"""The title of a document: as declared, else its first heading, else what its head says of it; None without any.

    Examples:
        >>> text = "# Licence\n'Locks, and who holds them.'\n"
        >>> of_code = {"content_type": ContentType.CODE, "domain": "code", "language": "python"}
        >>> title_of(Document(uri="a", text=text, trust_level=70, **of_code), [])
        'Locks, and who holds them.'
    """
    if document.title:
        return document.title
    if document.content_type is ContentType.CODE:
        title = _first_of(_OF_CODE.get(document.language or ""), document.text)
    elif document.content_type is ContentType.CONFIGURATION:
        title = _of_configuration(document.text, document.language)
    else:
        title = next((chunk.heading_path[0] for chunk in chunks if chunk.heading_path), None)
        if title is None and document.language == "html":
            title = html.unescape(_first_of(_PAGE_TITLE, document.text) or "")
    return " ".join((title or "").split())[:_LONGEST].rstrip() or None


def _first_of(pattern: re.Pattern[str] | None, text: str) -> str | None:
    match = None if pattern is None else pattern.search(text[:_LOOKED_AT])
    return None if match is None else next((group for group in match.groups() if group), None)


def _of_configuration(text: str, language: str | None) -> str | None:
    if language == "json":
        return _of_json(text)
    return _first_of(_OF_LINES.get(language or ""), text)


def _of_json(text: str) -> str | None:
    """The title that an object gives itself."""
    try:
        value = json.loads(text) if len(text) <= _LARGEST else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    inner = value.get("info")
    named = (value.get("title"), inner.get("title") if isinstance(inner, dict) else None, value.get("name"))
    return next((one for one in named if isinstance(one, str) and one.strip()), None)
