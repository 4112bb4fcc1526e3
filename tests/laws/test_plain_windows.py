"""ING-3: the fallback of every chunker covers all bytes, fits, and costs no more than its size, whatever the text."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.chunking.prose.text import byte_length, chunk_plainly
from weft.chunking.units.splitting import ChunkSizes
from weft.domain.documents import ContentType, Document, Domain

SIZES = ChunkSizes(max_tokens=12, target_tokens=12, min_tokens=2, overlap_tokens=0)
TEXTS = st.text(st.sampled_from("ab \n(é中\ud800"), max_size=400)


def words(text: str) -> int:
    """A counter to which long words are cheap and signs are dear."""
    return sum(1 if word.isalpha() else len(word) for word in text.split())


def a_document(text: str) -> Document:
    return Document(uri="a", content_type=ContentType.TEXT, domain=Domain.CODE, text=text, trust_level=50)


@given(TEXTS)
def test_plain_windows_cover_every_byte_and_fit(text: str) -> None:
    """ING-3, ING-13: spans meet without gap or overlap, and no window is above the target in tokens."""
    for count in (words, byte_length):
        chunks = chunk_plainly(a_document(text), SIZES, count)
        if not text.strip():
            assert chunks == []
            continue
        assert chunks[0].start_byte == 0
        assert chunks[-1].end_byte == len(text.encode("utf-8", "surrogatepass"))
        assert all(left.end_byte == right.start_byte for left, right in pairwise(chunks))
        assert all(count(chunk.text) == chunk.tokens <= SIZES.target_tokens for chunk in chunks)


@pytest.mark.parametrize(
    "text", ["x" * 200_000, "(" * 200_000, "a\n" * 100_000, "ab " * 70_000, "x" * 99_000 + "( " * 50_000]
)
def test_plain_windows_count_each_byte_a_few_times(text: str) -> None:
    """ING-3: one line of any length, or any number of lines, is counted in time that grows with its size alone."""
    counted = 0

    def count(piece: str) -> int:
        nonlocal counted
        counted += len(piece)
        return words(piece)

    sizes = ChunkSizes(max_tokens=254, target_tokens=254, min_tokens=30, overlap_tokens=0)
    chunks = chunk_plainly(a_document(text), sizes, count)
    assert counted <= 4 * len(text)
    assert max(len(chunk.text) for chunk in chunks) <= 8 * 254
