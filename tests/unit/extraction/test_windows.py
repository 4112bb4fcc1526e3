"""ING-16: long texts are windowed, never truncated, and spans refer to the whole text."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.domain.chunks import Mention
from weft.extraction.windows import WORD, Window, WindowLimits, windows, without_overlaps, words_of

TEXTS = st.lists(st.text("abc_-./é 漢\n", min_size=1, max_size=8), max_size=40).map(" ".join)
ROOMS = st.integers(1, 12).flatmap(
    lambda words: st.builds(
        WindowLimits, words=st.just(words), tokens=st.integers(1, 30), overlap=st.integers(0, words - 1)
    )
)


def costs_of(text: str) -> list[int]:
    """A stand-in for a tokenizer: a token for every two letters begun."""
    return [(len(word) + 1) // 2 for word in words_of(text)]


def inside(window: Window, text: str) -> list[str]:
    return words_of(text[window.start : window.end])


@given(TEXTS, ROOMS)
def test_every_word_is_in_some_window(text: str, room: WindowLimits) -> None:
    """ING-16: nothing is truncated."""
    found = windows(text, costs_of(text), room)
    for match in WORD.finditer(text):
        assert any(window.start <= match.start() and match.end() <= window.end for window in found)


@given(TEXTS, ROOMS)
def test_a_window_keeps_to_its_room_unless_one_word_alone_exceeds_it(text: str, room: WindowLimits) -> None:
    """ING-16: the model never sees more than it can read."""
    for window in windows(text, costs_of(text), room):
        words = inside(window, text)
        assert len(words) <= room.words
        assert len(words) == 1 or sum(costs_of(text[window.start : window.end])) <= room.tokens


@given(TEXTS, ROOMS)
def test_windows_move_forward_and_stay_in_the_text(text: str, room: WindowLimits) -> None:
    """ING-16: spans can be mapped back by adding the window's start."""
    found = windows(text, costs_of(text), room)
    assert all(0 <= window.start < window.end <= len(text) for window in found)
    assert all(one.start < next_.start and one.end < next_.end for one, next_ in pairwise(found))


def test_neighbours_share_the_overlap() -> None:
    """ING-16: 5 words, 3 a window, 1 shared: words 0-2 and 2-4."""
    found = windows("a b c d e", [1] * 5, WindowLimits(words=3, tokens=99, overlap=1))
    assert [(window.start, window.end) for window in found] == [(0, 5), (4, 9)]


def test_a_text_without_words_has_no_window() -> None:
    """ING-16."""
    assert windows(" \n ", [], WindowLimits(words=3, tokens=9, overlap=1)) == []


@pytest.mark.parametrize(("words", "tokens", "overlap"), [(3, 9, 3), (3, 0, 1), (3, 9, -1)])
def test_room_that_cannot_move_on_is_refused(words: int, tokens: int, overlap: int) -> None:
    """ING-16."""
    with pytest.raises(ValueError, match="expected 0 <= overlap < words"):
        WindowLimits(words=words, tokens=tokens, overlap=overlap)


MENTIONS = st.builds(
    lambda start, length, score, label: Mention(start, start + length, "x" * length, label, score),
    st.integers(0, 40),
    st.integers(1, 10),
    st.floats(0, 1),
    st.sampled_from(["person", "location"]),
)


@given(st.lists(MENTIONS, max_size=20))
def test_what_is_kept_does_not_overlap_and_what_is_dropped_overlaps_something_kept(found: list[Mention]) -> None:
    """ING-16: a name seen by two windows is one mention."""
    kept = without_overlaps(found)
    assert kept == sorted(kept, key=lambda mention: mention.start)
    assert all(one.end <= next_.start for one, next_ in pairwise(kept))
    for mention in found:
        overlapping = [other for other in kept if other.start < mention.end and mention.start < other.end]
        assert max(other.score for other in overlapping) >= mention.score
