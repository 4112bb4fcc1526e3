"""ING-10, ING-32: windows of text that no grammar reads begin where its layout says that something begins."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.chunking.chunker import chunk_document
from weft.chunking.prose.layout import layout_windows
from weft.chunking.units.splitting import ChunkSizes, SizedText
from weft.domain.documents import ContentType, Document, Domain

SIZES = ChunkSizes(max_tokens=80, target_tokens=60, min_tokens=8, overlap_tokens=12)
FAQ = "BIRD FAQ\n\n" + "".join(
    f"{number}. How do I count birds on a day with number {number}?\n\n   Take the list of that day, Sect. {number}, "
    "and\n   count the lines. If there is no list, ask the\n   warden, who keeps a copy.\n\n"
    for number in range(1, 20)
)
OPTIONS = "OPTIONS\n\n" + "".join(
    f"  --option-{number} VALUE   Sets what it is about. See also: the manual, Sect. {number}. Default: 5.\n"
    "                        It may be given more than once.\n"
    for number in range(30)
)
UNKNOWN = "module Birds\n" + "".join(
    f"  -- Counts every {bird}.\n  class {bird}\n\n    keep store\n\n    count since\n      found = store since\n"
    "      each found\n        remove one\n      end\n    end\n  end\n\n"
    for bird in ("Pelican", "Heron", "Stork", "Ibis", "Egret", "Gannet")
)
FILLED = "\n".join(f"The bird number {n} came and\nwent away with the tide." for n in range(40))


def words(text: str) -> int:
    return len(text.split())


def texts(text: str, language: str | None = None) -> list[str]:
    document = Document(
        uri="a", content_type=ContentType.TEXT, domain=Domain.GENERAL, text=text, language=language, trust_level=70
    )
    return [chunk.text for chunk in chunk_document(document, SIZES, words)]


@pytest.mark.parametrize(
    ("text", "language", "begins"),
    [
        (FAQ, None, r"1BIRD 2-9."),
        (OPTIONS, None, "--option OPTIONS"),
        (UNKNOWN, "unheardof", "module --"),
        (FILLED, None, "The"),
    ],
    ids=["questions", "options", "code", "filled"],
)
def test_pieces_begin_where_something_begins(text: str, language: str | None, begins: str) -> None:
    """ING-10: a question, an option, a class with its comment, a sentence; never with the rest of one."""
    pieces = texts(text, language)
    assert len(pieces) > 2
    starts = [piece.split()[0] for piece in pieces]
    if begins.startswith("1BIRD"):
        assert all(start == "BIRD" or start.rstrip(".").isdigit() for start in starts)
    else:
        assert all(start.startswith(tuple(begins.split())) for start in starts)


def test_every_question_stands_with_its_answer() -> None:
    """ING-10: a number with a full stop at the beginning of a line ends no sentence."""
    pieces = texts(FAQ)
    for number in range(1, 20):
        assert any(f"{number}. How do" in piece and f"Sect. {number}, and" in piece for piece in pieces)


@given(
    st.text(st.sampled_from("ab .\n\t1漢}-"), max_size=300),
    st.booleans(),
    st.integers(0, 5),
)
def test_windows_cover_every_byte_and_fit(text: str, prose: bool, reserved: int) -> None:
    """ING-12, ING-13: without gap, in order, each above neither the target nor, where two are joined, the maximum."""
    sizes = ChunkSizes(max_tokens=16, target_tokens=12, min_tokens=3, overlap_tokens=3)
    sized = SizedText(text, sizes, len)
    spans = layout_windows(sized, reserved, prose=prose)
    assert spans[0][0] == 0
    assert spans[-1][1] == len(sized.source)
    assert all(left[0] < right[0] <= left[1] < right[1] for left, right in pairwise(spans))
    assert all(sized.tokens(*span) <= sizes.max_tokens - reserved for span in spans)
