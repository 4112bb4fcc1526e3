from __future__ import annotations

import uuid
from typing import Any

import pytest

from weft.domain.documents import Domain
from weft.domain.ranking import Query, Repeats


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("text", 5),
        ("text", None),
        ("query_id", uuid.UUID(int=7)),
        ("query_id", ""),
        ("k", "5"),
        ("k", 0),
        ("k", 1001),
        ("k", True),
        ("k", 2.0),
        ("domain", "poetry"),
        ("model", None),
        ("agent", 3),
        ("principal", None),
        ("session_id", 41),
        ("filters", {"folder": 3}),
        ("filters", "folder"),
        ("explore", 1),
        ("context", "yes"),
        ("repeats", "twice"),
    ],
)
def test_a_field_that_is_none_of_its_values_is_named(field: str, value: Any) -> None:
    """RET-21, OPS-15: before anything is searched or logged."""
    with pytest.raises(ValueError, match=rf"Query\.{field}: expected .*, found "):
        Query(**{"text": "how is a lock released", field: value})


def test_plain_texts_are_enough() -> None:
    """OPS-8a: an application needs no types of weft to ask."""
    query = Query(text="how is a lock released", domain="code", repeats="lower", session_id="s1")  # type: ignore[arg-type]
    assert (query.domain, query.repeats, query.session_id) == (Domain.CODE, Repeats.LOWER, "s1")


def test_each_query_has_an_id_of_its_own() -> None:
    """FBK-2: what was shown and what became of it are joined by it."""
    assert len({Query(text="why").query_id for _ in range(100)}) == 100
