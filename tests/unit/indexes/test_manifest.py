from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from pipelines.domain.documents import Document
from pipelines.indexes.manifest import content_hash_of
from pipelines.indexes.schemas import chunks_to_table, documents_to_table
from tests.support.parts import a_document

DOCUMENT, CHUNKS = a_document("a.txt", "one text", "another text")


def hashed(document: Document = DOCUMENT, chunks: Any = CHUNKS, model: str = "m1", k1: float = 0.9) -> str:
    tables = chunks_to_table(chunks), documents_to_table([document])
    return content_hash_of(*tables, models={"encoder": model}, parameters={"lexical": {"k1": k1}})


def test_the_hash_says_what_a_generation_means() -> None:
    """ARC-9: another text, place, title, model or parameter is another content."""
    changed = [
        hashed(chunks=[replace(CHUNKS[0], text="one texT"), CHUNKS[1]]),
        hashed(chunks=[replace(CHUNKS[0], start_line=2), CHUNKS[1]]),
        hashed(chunks=CHUNKS[:1]),
        hashed(document=replace(DOCUMENT, title="Title")),
        hashed(model="m2"),
        hashed(k1=1.2),
    ]
    assert len({hashed(), *changed}) == 1 + len(changed)


def test_the_hash_leaves_times_out() -> None:
    """ARC-9: the same files checked out at another time are the same content."""
    assert hashed(document=replace(DOCUMENT, modified_at=2e9)) == hashed()


@pytest.mark.parametrize("pieces", [1, 2])
def test_the_hash_does_not_see_how_tables_are_held(pieces: int) -> None:
    """ARC-9: chunked or whole in memory, the same rows hash alike."""
    rows = [chunks_to_table(CHUNKS[:1]), chunks_to_table(CHUNKS[1:])] if pieces == 2 else [chunks_to_table(CHUNKS)]
    documents = documents_to_table([DOCUMENT])
    parameters = {"lexical": {"k1": 0.9}}
    held = content_hash_of(pa.concat_tables(rows), documents, models={"encoder": "m1"}, parameters=parameters)
    assert held == hashed()
