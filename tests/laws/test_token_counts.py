"""ING-12: tokens counted word by word are the encoder's own."""

from __future__ import annotations

import json
import sysconfig
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from weft.embedding.models import locate
from weft.embedding.tokens import WordCounts, load_token_counter, read_tokenizer, splits_at_words
from weft.settings import load_settings

SETTINGS = load_settings(environment={}).embedding
COUNT = load_token_counter(SETTINGS)
TOKENIZER = read_tokenizer(locate(SETTINGS))
PIECES = st.one_of(
    st.text(st.characters(max_codepoint=127), max_size=30),
    st.text(max_size=10),
    st.sampled_from(
        [
            *("[MASK]", "[mask]", "[CLS]", "[CLS", "[ SEP ]", "x" * 101, "ab" * 60, "self._count", "def f_x(a):\n"),
            *("don't", "x²", "ﬁ", "é", "\x00", "\x0b", "\x7f", "\ufffd", "\u4e2d\u6587", "\n\t"),
        ]
    ),
)


def own(text: str) -> int:
    return len(TOKENIZER.encode(text.encode("utf-8", "replace").decode(), add_special_tokens=False).ids)


@given(st.lists(PIECES, max_size=6))
@settings(max_examples=examples(150))
@example(["[MA", "SK]"])
@example(["a\x0bb\x1cc"])
def test_any_text_has_as_many_tokens_as_the_tokenizer_makes_of_it(pieces: list[str]) -> None:
    """ING-12: whatever stands in a text, including what looks like a special token and what is no character."""
    for text in ("".join(pieces), " ".join(pieces)):
        assert COUNT(text) == own(text)


def test_real_code_has_as_many_tokens_as_the_tokenizer_makes_of_it() -> None:
    """ING-12: the standard library's modules, line by line and whole."""
    library = Path(sysconfig.get_paths()["stdlib"])
    for path in [library / "ast.py", library / "turtle.py", *sorted(library.glob("*.py"))[::40]]:
        text = path.read_text(encoding="utf-8")
        assert COUNT(text) == own(text)
        assert [COUNT(line) for line in text.splitlines()] == [own(line) for line in text.splitlines()]


def test_only_tokenizers_that_split_so_are_counted_so() -> None:
    """ING-12: byte pairs and sentence pieces depend on their surroundings, and are left to their tokenizers."""
    parts = json.loads(TOKENIZER.to_str())
    assert splits_at_words(json.dumps(parts))
    assert not splits_at_words(json.dumps({**parts, "pre_tokenizer": {"type": "Metaspace"}}))
    assert not splits_at_words(json.dumps({**parts, "normalizer": None}))


def test_a_word_is_asked_for_once() -> None:
    """ING-21: that is what makes it fast."""
    asked: list[str] = []

    def count(word: str) -> int:
        asked.append(word)
        return len(word)

    counts = WordCounts([], count)
    assert [counts.count("ab ab c"), counts.count("c ab")] == [2 + 2 + 1, 3]
    assert asked == ["ab", "c"]
