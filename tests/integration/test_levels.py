"""ING-39, RET-4: passages can be asked for by their level and kind: in a query, on the command line and over HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import weft
from weft.app.searching.engines import opened
from weft.cli.main import main
from weft.domain.ranking import Query
from weft.retrieval.searcher import Searcher
from weft.settings import load_settings

GO = """// Package auth validates users.
package auth

// Validator says whether somebody may enter.
type Validator interface {
\tValidate(token string) error
}

// User is somebody who may enter.
type User struct {
\tName string
\tToken string
}

// Validate compares the token of a user with the one that is given, and says what is wrong with it.
func (u *User) Validate(token string) error {
\tif u.Token != token {
\t\treturn ErrToken
\t}
\treturn nil
}
"""
PROSE = "# Validate\n\nHow a user is validated.\n\n## Tokens\n\nA user is validated by a token.\n"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("levels")
    (folder / "tree").mkdir()
    (folder / "tree" / "auth.go").write_text(GO)
    (folder / "tree" / "guide.md").write_text(PROSE)
    weft.index([folder / "tree"], folder / "store", assignments=["extraction.enabled=false"])
    return folder / "store"


@pytest.fixture(scope="module")
def searcher(store: Path) -> Iterator[Searcher]:
    with opened(load_settings(assignments=[f"storage.root={store}"], environment={})) as made:
        yield made


@pytest.mark.parametrize(
    ("level", "right"),
    [
        ("function", lambda kind, _: kind in {"function", "method"}),
        ("class", lambda kind, _: kind in {"struct", "interface"}),
        ("section", lambda kind, _: kind == "section"),
        ("2", lambda _, level: level == 2),
    ],
)
def test_only_passages_of_a_level_are_found(searcher: Searcher, level: str, right: Callable[[str, int], bool]) -> None:
    """By a filter, and by the word for it in the query."""
    filtered = searcher.search(Query(text="how is a user validated", filters={"level": level}, k=20))
    worded = searcher.search(Query(text=f"how is a user validated level:{level}", k=20))
    chunks = {each.content_hash: each for each in searcher.snapshot.generation.chunks}
    for answer in (filtered, worded):
        assert answer.results
        found = [chunks[each.content_hash].occurrences[0].chunk for each in answer.results]
        assert all(right(each.kind, each.level) for each in found)


def test_a_kind_is_asked_for_by_its_name(searcher: Searcher) -> None:
    answer = searcher.search(Query(text="how is a user validated kind:method", k=20))
    assert [each.symbol for each in answer.results] == ["User.Validate"]


def test_a_level_that_nothing_has_is_told(searcher: Searcher) -> None:
    """RET-4: as of any filter."""
    answer = searcher.search(Query(text="how is a user validated", filters={"level": "chapter"}, k=20))
    assert not answer.results
    assert answer.understanding is not None
    assert answer.understanding.unmet == ("level:chapter",)


def test_the_command_takes_level_and_intent(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """OPS-4."""
    words = ["search", "how is a user validated", "--store", str(store), "--json", "--server", "none"]
    assert main([*words, "--level", "function", "--intent", "decision"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [each["symbol"] for each in answer["results"]] == ["User.Validate"]
    (logged,) = (store / "logs").rglob("*.parquet")
    assert pq.read_table(logged)["intent"].to_pylist() == ["decision"]
