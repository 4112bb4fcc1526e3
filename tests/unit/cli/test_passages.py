"""OPS-4: how passages are shown in a terminal: code as it is written, and where a terminal opens it."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs
from rich.console import Console

from tests.support.printed import print_answer
from tests.support.retrieval_fakes import MemoryGeneration, a_query, a_searcher
from weft.cli.searches import passages
from weft.domain.documents import Domain
from weft.retrieval.answer.trace import LINES, excerpt, line_in_document

RUST = """/// What a worker is told.
enum Message {
    /// A folder that should be read.
    Work(Folder),
    /// No more will come.
    Quit,
}"""
LONG = "def walk():\n" + "".join(f"    step_{number}()\n" for number in range(40)) + "    return the_total\n"


def printed(text: str, query: str, uri: str, capsys: pytest.CaptureFixture[str], *, domain: Domain) -> list[str]:
    answer = a_searcher(MemoryGeneration({uri: [text]})).search(a_query(query))
    (result,) = answer.results
    placed = structs.replace(result, domain=domain, start_line=11, end_line=10 + len(text.splitlines()))
    print_answer(replace(answer, results=(placed,)))
    return capsys.readouterr().out.splitlines()


def test_lines_of_code_are_shown_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    """What follows a comment is no part of it, and the indent is there."""
    lines = printed(RUST, "what is a worker told", "src/message.rs", capsys, domain=Domain.CODE)
    begun = lines.index("     /// What a worker is told.")
    assert lines[begun : begun + 7] == [f"     {line}" for line in RUST.splitlines()]


def test_the_line_that_matches_is_named_and_shown_with_few_around_it(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(LONG, "the_total", "src/walk.py", capsys, domain=Domain.CODE)
    matched = 11 + LONG.splitlines().index("    return the_total")
    assert any(f"src/walk.py:{matched} " in f"{line} " for line in lines)
    shown = [line for line in lines if line.startswith("     step_") or line == "     return the_total"]
    assert shown[-1] == "     return the_total"
    assert len(shown) == LINES


def test_prose_is_filled_and_tables_and_fences_are_not(capsys: pytest.CaptureFixture[str]) -> None:
    prose = printed("One bird\nand another.", "bird", "docs/birds.md", capsys, domain=Domain.GENERAL)
    assert any("One bird and another." in line for line in prose)
    table = "| Bird | Nest |\n|------|------|\n| gannet | cliff |"
    rows = printed(table, "gannet", "docs/birds.md", capsys, domain=Domain.GENERAL)
    assert f"     {table.splitlines()[2]}" in rows


def test_lines_above_a_part_are_not_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """A part of a long function carries its signature, which stands elsewhere in the file."""
    answer = a_searcher(MemoryGeneration({"a.py": ["def walk():\n    one()\n    two()"]})).search(a_query("two"))
    part = structs.replace(answer.results[0], start_line=71, end_line=72)
    assert line_in_document(part, excerpt(part.text, "two").matched) == 72
    assert line_in_document(part, 0) == 71


def test_a_terminal_has_colours_and_its_own_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """OPS-11: and no control character of what was indexed."""
    narrow = Console(file=io.StringIO(), force_terminal=True, width=30)
    monkeypatch.setattr(passages, "stdout", narrow)
    shown = passages.code(["def walk():", f"    return {'x' * 40} # \x1b]0;owned\x07"], "walk.py", indent=5)
    assert [len(line) for line in shown.plain.split("\n")] == [16, 30]
    assert any(span.style for span in shown.spans)
    assert not {"\x1b", "\x07"} & set(shown.plain)


def test_a_place_is_the_path_from_where_one_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "walk.py").touch()
    monkeypatch.chdir(tmp_path)
    assert passages.opened_here("tree/walk.py") == "tree/walk.py"
    monkeypatch.chdir(tmp_path / "tree")
    assert passages.opened_here("tree/walk.py") == "walk.py"
    assert passages.opened_here("other/walk.py") == "other/walk.py"
