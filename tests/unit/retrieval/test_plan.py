"""RET-21: hostile queries are bounded before any channel sees them."""

import pytest

from weft.retrieval.query.understanding import bounded


def test_a_query_within_the_limits_passes_unchanged() -> None:
    """RET-21."""
    assert bounded("how is a checkpoint written", max_bytes=4096, max_terms=256) == (
        "how is a checkpoint written",
        False,
    )


def test_terms_beyond_the_limit_are_cut_and_flagged() -> None:
    """RET-21: 256 terms."""
    text, truncated = bounded(" ".join(f"t{n}" for n in range(257)), max_bytes=4096, max_terms=256)
    assert truncated
    assert text.split() == [f"t{n}" for n in range(256)]


@pytest.mark.parametrize("character", ["a", "é", "語", "🙂"])
def test_bytes_beyond_the_limit_are_cut_between_characters(character: str) -> None:
    """RET-21: 4 KiB of UTF-8, never half a character."""
    text, truncated = bounded(character * 5000, max_bytes=4096, max_terms=256)
    assert truncated
    assert set(text) == {character}
    assert 4096 - len(character.encode()) < len(text.encode()) <= 4096


def test_a_megabyte_is_cut_before_it_is_normalised() -> None:
    """RET-21: the limit holds whatever comes."""
    text, truncated = bounded("x\u0301 " * 1_000_000, max_bytes=4096, max_terms=256)
    assert truncated
    assert len(text.split()) == 256


def test_what_utf8_and_lucene_cannot_carry_is_replaced() -> None:
    """RET-21: control characters and lone surrogates."""
    text, truncated = bounded("a\x00b\x1b[31m\x85c \udcff\ud800", max_bytes=4096, max_terms=256)
    assert (text, truncated) == ("a b [31m c \ufffd\ufffd", False)
    text.encode("utf-8")


@pytest.mark.parametrize("blanks", [" ", "\n", "\u3000"])
def test_blanks_cut_nothing(blanks: str) -> None:
    """RET-21: limits hold after normalisation, which leaves one blank between terms."""
    text = f"{blanks * 20_000}how{blanks * 20_000}long"
    assert bounded(text, max_bytes=4096, max_terms=2) == ("how long", False)
    assert bounded(f"{text}{blanks * 20_000}ago", max_bytes=4096, max_terms=2) == ("how long", True)
