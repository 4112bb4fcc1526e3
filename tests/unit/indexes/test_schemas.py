from __future__ import annotations

from dataclasses import fields

import numpy as np
import pyarrow as pa
import pytest

from weft.domain.chunks import Chunk, Mention
from weft.domain.documents import ContentType, Document, Domain, Rejection
from weft.domain.ids import ChunkId, ContentHash, content_hash
from weft.indexes import schemas


def a_chunk(text: str = "def f(): ...") -> Chunk:
    return Chunk(
        chunk_id=ChunkId("c" * 32),
        content_hash=content_hash(text),
        uri="src/a.py",
        text=text,
        kind="function",
        level=2,
        sequence=3,
        parent_id=None,
        previous_id=ChunkId("b" * 32),
        next_id=None,
        start_byte=10,
        end_byte=22,
        start_line=2,
        end_line=2,
        heading_path=("A", "f"),
        symbol="A.f",
        references=("g",),
        completeness=0.5,
        tokens=5,
        characters=len(text),
        sizing=("max_tokens=256",),
    )


def test_chunks_survive_the_table() -> None:
    """ING-13: every field of a chunk comes back equal, tuples and absent values included."""
    assert schemas.table_to_chunks(schemas.chunks_to_table([a_chunk(), a_chunk("x = 1")])) == [
        a_chunk(),
        a_chunk("x = 1"),
    ]


def test_the_chunk_schema_is_the_chunk() -> None:
    """ING-13: no field of a chunk is lost between ingestion and the index."""
    assert schemas.CHUNKS.names == [field.name for field in fields(Chunk)]


def test_documents_survive_the_table_without_their_text() -> None:
    """ARC-4: the facts a result shows of its documents come back equal."""
    document = Document(
        uri="d1",
        content_type=ContentType.RECORD,
        domain=Domain.ACADEMIC,
        text="body",
        trust_level=60,
        metadata={"b": "1", "a": "é"},
    )
    (back,) = schemas.table_to_documents(schemas.documents_to_table([document]))
    assert (back.uri, back.domain, back.metadata, back.title, back.text) == (
        "d1",
        Domain.ACADEMIC,
        {"a": "é", "b": "1"},
        None,
        "",
    )


def test_lone_surrogates_are_written_as_the_replacement_their_identity_counts() -> None:
    """ING-3: a text that UTF-8 cannot carry is kept under the same content hash instead of stopping the run."""
    (back,) = schemas.table_to_chunks(schemas.chunks_to_table([a_chunk("a\ud800b")]))
    assert content_hash(back.text) == content_hash("a\ud800b") == back.content_hash


def test_vectors_keep_their_rows() -> None:
    """ING-22: vectors are stored as float16 beside the content they belong to."""
    table = schemas.vectors_to_table([ContentHash("a"), ContentHash("b")], "mini", np.eye(2, 4, dtype=np.float32))
    assert table.schema == schemas.vectors_schema(4)
    assert table["vector"].to_pylist() == [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]]


def test_a_vector_too_few_is_refused() -> None:
    """ING-22: a vector never ends up at another content's row."""
    with pytest.raises(ValueError, match="expected 2 vectors"):
        schemas.vectors_to_table([ContentHash("a"), ContentHash("b")], "mini", np.eye(1, 4, dtype=np.float32))


@pytest.mark.parametrize("rows", [0, 1])
def test_mentions_and_rejections_have_their_schema_even_when_empty(rows: int) -> None:
    """ING-3: an empty part is written with the same shape as a full one."""
    mentions = schemas.mentions_to_table([(ContentHash("a"), Mention(0, 3, "Ray", "software", 0.9))] * rows)
    rejected = schemas.rejections_to_table([Rejection("a.bin", "binary", "NUL at 3")] * rows)
    assert (mentions.schema, mentions.num_rows) == (schemas.MENTIONS, rows)
    assert (rejected.schema, rejected.num_rows) == (schemas.REJECTED, rows)
    assert isinstance(rejected, pa.Table)
