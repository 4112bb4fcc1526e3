"""One chunker per content type, and what becomes of a document that its chunker cannot handle."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from pipelines.chunking.code.source import chunk_code
from pipelines.chunking.config.file import chunk_configuration
from pipelines.chunking.conversation.session import Similarity, chunk_conversation
from pipelines.chunking.paper.paper import chunk_paper
from pipelines.chunking.prose.markdown import chunk_markdown
from pipelines.chunking.prose.markup import chunk_markup
from pipelines.chunking.prose.rst import chunk_rst
from pipelines.chunking.prose.text import chunk_plainly, chunk_record, chunk_text
from pipelines.chunking.units.splitting import ChunkSizes, TokenCounter
from pipelines.domain.chunks import Chunk
from pipelines.domain.documents import ContentType, Document, Rejection

Chunker = Callable[[Document, ChunkSizes, TokenCounter], list[Chunk]]
"""Cuts one document into chunks, in source order."""

Chunkers = Mapping[ContentType, Chunker]
"""A chunker for every content type."""

CHUNKERS: Chunkers = {
    ContentType.CODE: chunk_code,
    ContentType.MARKDOWN: chunk_markdown,
    ContentType.RST: chunk_rst,
    ContentType.MARKUP: chunk_markup,
    ContentType.PAPER: chunk_paper,
    ContentType.CONVERSATION: chunk_conversation,
    ContentType.CONFIGURATION: chunk_configuration,
    ContentType.TEXT: chunk_text,
    ContentType.RECORD: chunk_record,
}


def chunk_document(
    document: Document,
    sizes: ChunkSizes,
    count_tokens: TokenCounter,
    chunkers: Chunkers = CHUNKERS,
) -> list[Chunk]:
    """Chunks of a document, by its content type.

    Every byte lies in the span of a chunk, unless all are blank: such a document has no chunks.
    """
    return chunkers[document.content_type](document, sizes, count_tokens)


def chunkers_with(similarity: Similarity) -> Chunkers:
    """Chunkers that find the topics of a conversation by the similarity of its turns too."""
    return {**CHUNKERS, ContentType.CONVERSATION: partial(chunk_conversation, similarity=similarity)}


def chunk_or_fallback(
    document: Document,
    sizes: ChunkSizes,
    count_tokens: TokenCounter,
    chunkers: Chunkers = CHUNKERS,
) -> tuple[list[Chunk], Rejection | None]:
    """Chunks of a document; plain windows and a note where its own chunker raises (ING-3).

    Raises:
        MemoryError: There is not enough for either.
    """
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
