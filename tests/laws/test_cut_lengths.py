"""RET-20: what a cross-encoder reads for one search stays within its bound, and no text is cut for nothing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from weft.embedding.tokens import level

LENGTHS = st.lists(st.integers(1, 300), min_size=1, max_size=40)


@given(LENGTHS, st.integers(0, 12_000))
def test_all_together_fit_and_one_token_more_would_not(lengths: list[int], most: int) -> None:
    """RET-20."""
    longest = level(lengths, most)
    assert sum(min(length, longest) for length in lengths) <= most or sum(lengths) <= most
    if sum(lengths) > most:
        assert sum(min(length, longest + 1) for length in lengths) > most
    else:
        assert longest == max(lengths)
