"""ING-11, ING-21: counting word by word is counting in the encoder's own tokens, only faster."""

from __future__ import annotations

import sysconfig
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from pipelines.embedding.models import locate
from pipelines.embedding.tokens import load_token_counter, read_tokenizer
from pipelines.embedding.word_counts import WordCounts
from pipelines.settings import load_settings

SETTINGS = load_settings(environment={}).embedding
COUNT = load_token_counter(SETTINGS)
TOKENIZER = read_tokenizer(locate(SETTINGS))
FRAGMENTS = [
    "def f_x(a):\n",
    "[MASK]",
    "[mask]",
    "[CLS",
    "\x0b",
    "\x00",
    "\x7f",
    "é",
    "漢字",
    "ab" * 60,
    "a'b",
    "x²",
    "ﬁ",
]


def encoded(text: str) -> int:
    return len(TOKENIZER.encode(text, add_special_tokens=False).ids)


@given(st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.text(st.characters(codec="ascii"), max_size=20))).map("".join))
def test_a_text_has_as_many_tokens_as_the_tokenizer_gives_it(text: str) -> None:
    """ING-11: with control characters, long words, other scripts and the tokenizer's own marks in it."""
    assert COUNT(text) == encoded(text)


def test_source_files_have_as_many_tokens_as_the_tokenizer_gives_them() -> None:
    """ING-11: of the interpreter's library."""
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))[::40]:
        text = path.read_text(encoding="utf-8")
        assert COUNT(text) == encoded(text), path


def test_a_word_is_asked_for_once() -> None:
    """ING-21: that is what makes it fast."""
    asked: list[str] = []

    def count(word: str) -> int:
        asked.append(word)
        return len(word)

    counts = WordCounts([], count)
    assert [counts.count("ab ab c"), counts.count("c ab")] == [2 + 2 + 1, 3]
    assert asked == ["ab", "c"]
