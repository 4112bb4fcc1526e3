"""RET-16, ING-39: asked how code works, the function comes first, with what it takes to understand it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

import weft
from tests.support.code_questions import QUESTIONS, TREES
from weft.app.searching.engines import opened
from weft.cli.main import main
from weft.domain.chunks import Role
from weft.domain.documents import Domain
from weft.domain.ranking import Query, RankedResult
from weft.retrieval.ranking.implementation import IMPLEMENTATION
from weft.retrieval.searcher import Searcher
from weft.settings import load_settings

WORKED = "how does the auth validation work?"
FIRST, AMONG_THREE = 0.6, 0.8  # shares of all questions; the goals are .8 and .95


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("how")
    indexed("go_auth", folder)
    return folder


def indexed(tree: str, folder: Path) -> None:
    weft.index([TREES / tree], folder / tree, assignments=["extraction.enabled=false"])


def searching(store: Path, tree: str) -> AbstractContextManager[Searcher]:
    return opened(load_settings(assignments=[f"storage.root={store / tree}"], environment={}))


@pytest.fixture(scope="module")
def searcher(store: Path) -> Iterator[Searcher]:
    with searching(store, "go_auth") as made:
        yield made


def is_right(result: RankedResult, symbol: str) -> bool:
    """By its symbol, whatever namespace it stands in."""
    named = f".{(result.symbol or '').replace('::', '.')}"
    return result.domain is Domain.CODE and named.endswith("." + symbol.replace("::", "."))


@pytest.mark.slow
def test_functions_come_first_where_questions_ask_how_code_works(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of seven trees, each with documentation, configuration, tests, and a chat that repeats the questions."""
    first = among_three = 0
    for tree, questions in QUESTIONS.items():
        indexed(tree, tmp_path)
        with searching(tmp_path, tree) as opened_tree:
            answers = opened_tree.search_many([Query(text=text, k=3) for text, _ in questions])
        right = [
            [is_right(result, symbol) for result in answer.results]
            for answer, (_, symbol) in zip(answers, questions, strict=True)
        ]
        own = sum(each[0] for each in right), sum(map(any, right))
        first, among_three = first + own[0], among_three + own[1]
        with capsys.disabled():
            sys.stdout.write(f"\n{tree:16} first {own[0] / len(right):.2f}, among three {own[1] / len(right):.2f}")
    asked = sum(map(len, QUESTIONS.values()))
    with capsys.disabled():
        sys.stdout.write(f"\nall              first {first / asked:.2f}, among three {among_three / asked:.2f}\n")
    assert first / asked >= FIRST
    assert among_three / asked >= AMONG_THREE


def test_the_function_comes_with_its_header_its_type_what_it_calls_and_its_test(searcher: Searcher) -> None:
    """What is a result itself is not repeated in another one's context."""
    result = searcher.search(Query(text=WORKED, k=1, context=True)).results[0]
    assert result.symbol == "User.Validate"
    assert result.context is not None
    texts = {role: "".join(part.text for part in result.context.parts if part.role is role) for role in Role}
    assert "package auth" in texts[Role.HEADER]
    assert "type User struct" in texts[Role.TYPE]
    assert "func normalize" in texts[Role.DEPENDENCY]
    assert "func expired" in texts[Role.DEPENDENCY]
    assert "func Test" in texts[Role.TEST]


@pytest.mark.parametrize("budget", [150, 400, 4096])
def test_contexts_keep_to_the_budget(store: Path, budget: int) -> None:
    """In the encoder's own tokens, of all results together; the same each time."""
    assignments = [f"storage.root={store / 'go_auth'}", f"retrieval.context.max_context_tokens={budget}"]
    with opened(load_settings(assignments=assignments, environment={})) as bounded:
        one, again = (bounded.search(Query(text=WORKED, k=5, context=True)) for _ in range(2))
        counted = {
            place.chunk.chunk_id: place.chunk.tokens
            for content in bounded.snapshot.generation.chunks
            for place in content.occurrences
        }
    contexts = [result.context for result in one.results if result.context is not None]
    assert 0 < sum(context.tokens for context in contexts) <= budget
    assert all(part.tokens == counted[part.chunk_id] for context in contexts for part in context.parts)
    assert contexts == [result.context for result in again.results]


def test_what_is_said_about_code_says_what_it_lost(searcher: Searcher) -> None:
    """RET-18: and whoever asks how to use it finds the documentation as before."""
    about = searcher.search(Query(text=WORKED, k=10)).results
    lost = {part.name: part.amount for each in about if each.domain is Domain.HISTORY for part in each.contributions}
    assert lost[IMPLEMENTATION] < 0.0
    using = searcher.search(Query(text="how do I send a token with a request?", k=10)).results
    assert all(part.name != IMPLEMENTATION for each in using for part in each.contributions)


def test_the_command_prints_what_surrounds_a_result(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """OPS-4: with its lines as they are."""
    words = ["search", WORKED, "--store", str(store / "go_auth"), "--server", "none", "--context", "-k", "1"]
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any("go_auth/auth.go:" in line and "User.Validate" in line for line in lines)
    assert "          type User struct {" in lines
    assert "              Name    string" in lines
