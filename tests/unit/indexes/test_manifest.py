from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

from tests.support.parts import a_document
from weft.domain.documents import Document
from weft.indexes.manifest import RowsDigest, content_hash_of
from weft.indexes.schemas import chunks_to_table, documents_to_table

DOCUMENT, CHUNKS = a_document("a.txt", "one text", "another text")


def hashed(document: Document = DOCUMENT, chunks: Any = CHUNKS, model: str = "m1", k1: float = 0.9) -> str:
    return combined([chunks_to_table(chunks)], document, model, k1)


def combined(chunks: list[pa.Table], document: Document, model: str = "m1", k1: float = 0.9) -> str:
    digests = {"chunks": RowsDigest(), "documents": RowsDigest()}
    for table in chunks:
        digests["chunks"].add(table)
    digests["documents"].add(documents_to_table([document], made_from=["key"]))
    found = {name: digest.hexdigest() for name, digest in digests.items()}
    return content_hash_of(found, models={"encoder": model}, parameters={"lexical": {"k1": k1}})


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


def test_the_hash_does_not_see_how_tables_are_held() -> None:
    """ARC-9: in one table or several, the same rows hash alike."""
    pieces = [chunks_to_table(CHUNKS[:1]), chunks_to_table(CHUNKS[1:])]
    assert combined(pieces, DOCUMENT) == combined([pa.concat_tables(pieces)], DOCUMENT) == hashed()
