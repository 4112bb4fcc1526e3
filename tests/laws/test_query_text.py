from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from weft.indexes.text.build import code_terms, split_identifier
from weft.indexes.text.lexical import cleaned

anything = st.text(st.characters())
words = st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=8)


@given(text=anything, limit=st.integers(1, 64))
def test_a_cleaned_query_is_short_encodable_and_without_control_characters(text: str, limit: int) -> None:
    """RET-21: whatever comes in, Lucene gets text that it can read, within the limit; twice is once."""
    clean = cleaned(text, limit)
    assert len(clean.encode("utf-8")) <= limit
    assert not any(ord(character) < 32 or 127 <= ord(character) < 160 for character in clean)
    assert cleaned(clean, limit) == clean


@given(st.lists(words, min_size=1, max_size=5))
def test_every_spelling_of_a_compound_name_has_the_same_words(parts: list[str]) -> None:
    """ING-23: snake_case, camelCase, kebab-case and dotted paths are split into the words they are made of."""
    camel = parts[0] + "".join(part.capitalize() for part in parts[1:])
    # A single letter before a capitalised word reads as part of a run of capitals: only that spelling is ambiguous.
    spellings = ["_".join(parts), ".".join(parts), "-".join(parts), "/".join(parts)]
    if all(len(part) > 1 for part in parts):
        spellings.append(camel)
    assert all(list(split_identifier(spelling)) == parts for spelling in spellings)


@given(anything)
def test_code_terms_are_single_lower_case_words(text: str) -> None:
    """ING-23: what is appended to code holds nothing that an analyser would join or drop by case."""
    terms = code_terms(text)
    assert terms == [term.lower() for term in terms]
    assert not any(set(term) & set("_./:- ") for term in terms)
