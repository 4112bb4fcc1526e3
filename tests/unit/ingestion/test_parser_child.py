from __future__ import annotations

import pytest

from weft.chunking.chunker import chunk_document
from weft.chunking.units.splitting import ChunkSizes
from weft.domain.documents import ContentType, Document, Domain
from weft.embedding.tokens import load_token_counter
from weft.ingestion.parser.parser import Request, bounded, cut
from weft.settings import load_settings

SIZES = ChunkSizes(max_tokens=30, target_tokens=20, min_tokens=4, overlap_tokens=5)


def a_request(text: str, *, plainly: bool = False) -> Request:
    document = Document(uri="a", content_type=ContentType.TEXT, domain=Domain.GENERAL, text=text, trust_level=50)
    return Request(document, SIZES, 1.0, 10.0, plainly)


class RefusesOnce:
    """A counter that raises at its first call."""

    def __init__(self, error: Exception) -> None:
        self._errors = [error]

    def __call__(self, text: str) -> int:
        if self._errors:
            raise self._errors.pop()
        return len(text)


def test_a_chunker_that_raises_leaves_windows_and_its_words() -> None:
    """ING-3: what a parser raises is noted, and the document is cut all the same."""
    chunks, note = cut(a_request("A few words. " * 20), RefusesOnce(RecursionError("too deep")))
    assert note is not None
    assert (note.uri, note.reason, note.detail) == ("a", "parser_crashed", "RecursionError: too deep")
    assert {chunk.kind for chunk in chunks} == {"window"}
    assert chunks[-1].end_byte == 13 * 20


def test_a_process_without_memory_does_not_go_on() -> None:
    """ING-3: what Python is refused ends the process, which is started afresh."""
    with pytest.raises(MemoryError):
        cut(a_request("A few words. " * 20), RefusesOnce(MemoryError()))


def test_a_document_is_cut_by_its_own_chunker_unless_told_otherwise() -> None:
    """ING-3: one request for each of the two ways."""
    request = a_request("One sentence here. Another one there. " * 5)
    assert cut(request, len) == (chunk_document(request.document, SIZES, len), None)
    plain, note = cut(a_request(request.document.text, plainly=True), len)
    assert ({chunk.kind for chunk in plain}, note) == ({"window"}, None)


@pytest.mark.parametrize("text", ["word " * 40_000, "x" * 200_000, "line\n" * 40_000, "", "short"])
def test_long_texts_are_counted_piece_by_piece(text: str) -> None:
    """ING-3: no piece is long, none is left out, and blanks are where the encoder's tokens end anyway."""
    count = load_token_counter(load_settings(environment={}).embedding)
    pieces: list[str] = []

    def noted(piece: str) -> int:
        pieces.append(piece)
        return count(piece)

    counted = bounded(noted)(text)
    assert "".join(pieces) == text
    assert max(map(len, pieces)) <= 1 << 16
    if " " in text or "\n" in text:
        assert counted == count(text)


def test_words_that_the_encoder_does_not_know_do_not_make_endless_chunks() -> None:
    """ING-3, ING-12: megabytes without a blank are one token to some encoders, and many chunks all the same."""
    count = bounded(load_token_counter(load_settings(environment={}).embedding))
    chunks, _ = cut(a_request("x" * 100_000), count)
    assert max(len(chunk.text) for chunk in chunks) <= 64 * (SIZES.max_tokens + 1)
