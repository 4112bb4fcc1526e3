"""Builders of the parts that a generation is made from; vectors come from the text, so that they need no model."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from weft.domain.chunks import Chunk
from weft.domain.documents import ContentType, Document, Domain
from weft.domain.ids import ContentHash, chunk_id, content_hash
from weft.indexes import schemas

ENCODER = "words"
DIMENSION = 16


def a_document(
    uri: str, *texts: str, title: str | None = None, kind: ContentType = ContentType.TEXT
) -> tuple[Document, list[Chunk]]:
    """A document with one chunk per text."""
    body = "\n".join(texts)
    document = Document(
        uri=uri, content_type=kind, domain=Domain.GENERAL, text=body, title=title, trust_level=50, modified_at=1e9
    )
    return document, [_chunk(uri, text, sequence) for sequence, text in enumerate(texts)]


def write_part(folder: Path, documents: Sequence[tuple[Document, list[Chunk]]]) -> Path:
    """The tables of some documents as one part."""
    folder.mkdir(parents=True)
    chunks = [chunk for _, of_document in documents for chunk in of_document]
    texts: Mapping[ContentHash, str] = {chunk.content_hash: chunk.text for chunk in chunks}
    vectors = np.array([embed(text) for text in texts.values()], dtype=np.float32).reshape(-1, DIMENSION)
    tables = {
        "documents": schemas.documents_to_table([document for document, _ in documents]),
        "chunks": schemas.chunks_to_table(chunks),
        "texts": schemas.texts_to_table([document for document, _ in documents]),
        "mentions": schemas.mentions_to_table([]),
        "rejected": schemas.rejections_to_table([]),
        "vectors": schemas.vectors_to_table(list(texts), ENCODER, vectors),
    }
    for name, table in tables.items():
        pq.write_table(table, folder / f"{name}.parquet")
    return folder


def embed(text: str) -> np.ndarray:
    """Unit vector of a text: the sum of one random direction per word."""
    directions = [_direction(word) for word in text.lower().split()] or [_direction("")]
    total = np.sum(directions, axis=0)
    return (total / np.linalg.norm(total)).astype(np.float32)


@cache
def _direction(word: str) -> np.ndarray:
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
    return np.random.default_rng(seed).normal(size=DIMENSION)


def _chunk(uri: str, text: str, sequence: int) -> Chunk:
    return Chunk(
        chunk_id=chunk_id(uri, str(sequence)),
        content_hash=content_hash(text),
        uri=uri,
        text=text,
        kind="window",
        level=3,
        sequence=sequence,
        parent_id=None,
        previous_id=None,
        next_id=None,
        start_byte=0,
        end_byte=len(text.encode()),
        start_line=1,
        end_line=1,
        tokens=len(text.split()),
        characters=len(text),
    )
