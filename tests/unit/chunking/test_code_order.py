from __future__ import annotations

import asyncio.base_events
from pathlib import Path

from weft.chunking.chunker import chunk_document
from weft.chunking.units.splitting import ChunkSizes
from weft.domain.documents import ContentType, Document, Domain


def test_a_module_with_names_imported_twice_is_always_cut_alike() -> None:
    """ARC-9, ING-14: a parser may name what it found in any order; chunks and their links do not depend on it."""
    text = Path(asyncio.base_events.__file__).read_text()  # imports `futures` of two packages
    document = Document(
        uri="a", content_type=ContentType.CODE, domain=Domain.CODE, text=text, language="python", trust_level=50
    )
    sizes = ChunkSizes(max_tokens=254, target_tokens=254, min_tokens=30, overlap_tokens=20)
    first, *others = (chunk_document(document, sizes, lambda piece: len(piece) // 4) for _ in range(6))
    assert all(chunks == first for chunks in others)
