from __future__ import annotations

import pytest

from pipelines.retrieval.filters import matches
from tests.support.retrieval_fakes import a_place


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("site", True),
        ("site/docs", True),
        ("site/docs/", True),
        ("site/docs/guides", True),
        ("site/doc", False),
        ("site/docs/guides/more", False),
        ("docs", False),
        ("", False),
    ],
)
def test_a_folder_holds_all_that_lies_below_it(wanted: str, found: bool) -> None:
    """ING-2, RET-4: the hierarchy of folders is a path to filter by, name by name."""
    place = a_place("site/docs/guides/a.md", "Text.", metadata={"folder": "site/docs/guides", "team": "a/b"})
    assert matches(place, {"folder": wanted}) is found
    assert matches(place, {"team": "a"}) is False
    assert matches(a_place("a", "Text."), {"folder": wanted}) is False
