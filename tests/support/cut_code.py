"""Source code as it is cut, for tests of what its chunks are."""

from __future__ import annotations

from tests.support.code_samples import SAMPLES
from weft.chunking.chunker import chunk_document
from weft.chunking.units.splitting import ChunkSizes
from weft.domain.chunks import Chunk
from weft.domain.documents import ContentType, Document, Domain
from weft.domain.links import LinkKind

# Pieces as they are before the small ones are joined: these are a few words long.
SIZES = ChunkSizes(max_tokens=400, target_tokens=100, min_tokens=0, overlap_tokens=10)


def words(text: str) -> int:
    return len(text.split())


def chunks_of(language: str, text: str | None = None, sizes: ChunkSizes = SIZES) -> list[Chunk]:
    document = Document(
        uri=f"tree/shelf.{language}",
        content_type=ContentType.CODE,
        domain=Domain.CODE,
        text=SAMPLES[language] if text is None else text,
        language=language,
        trust_level=100,
    )
    return chunk_document(document, sizes, words)


def named(chunks: list[Chunk]) -> dict[str, Chunk]:
    return {chunk.symbol: chunk for chunk in chunks if chunk.symbol}


def links_of(chunk: Chunk, kind: LinkKind) -> set[str]:
    return {link.target for link in chunk.links if link.kind is kind}
