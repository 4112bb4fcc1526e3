"""RET-21, FBK-2: what `jobs.search` reads, what it prints, and what it tells the feedback topic."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import typer

from tests.support.feedback_publisher import MemoryPublisher
from tests.support.printed import print_answer
from tests.support.retrieval_fakes import MemoryGeneration, a_query, a_searcher
from weft.cli.searches import here, search
from weft.domain.errors import SourceError
from weft.domain.event_fields import MOST_SHOWN
from weft.domain.events import Impression
from weft.domain.ids import QueryId
from weft.domain.ranking import Answer
from weft.domain.reasons import difference, sentence_of
from weft.feedback.events.producer import FeedbackProducer


@pytest.mark.parametrize("text", ["one\u2028two", "one\u0085two", "plain"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_line_of_queries_ends_where_a_line_ends(tmp_path: Path, text: str, encoding: str) -> None:
    """RET-21: JSON holds further characters that break lines of a text elsewhere, and some files begin with a mark."""
    records = [{"_id": "q1", "text": text}, {"_id": 2, "text": "b"}]
    path = tmp_path / "queries.jsonl"
    path.write_bytes("\r\n".join(json.dumps(each, ensure_ascii=False) for each in records).encode(encoding))
    assert list(here._read(path)) == [("q1", text), ("2", "b")]


@pytest.mark.parametrize("line", ['{"a":' * 100_000, '{"_id": "1", "text": null}', '{"_id": [], "text": "a"}', "{"])
def test_a_line_that_is_no_query_is_named(tmp_path: Path, line: str) -> None:
    """RET-21: in one line, and nothing is made up of it."""
    path = tmp_path / "queries.jsonl"
    path.write_text(f"a query\n{line}\nanother\n", encoding="utf-8")
    (_, text), refused, (_, after) = here._read(path)  # type: ignore[misc]
    assert (text, after) == ("a query", "another")
    assert isinstance(refused, SourceError)
    assert re.search(r"queries.jsonl:2: expected .* found", str(refused))


def test_a_query_whose_id_came_before_is_named(tmp_path: Path) -> None:
    """RET-21, EVA-5: of two answers under one id none could be told from the other."""
    path = tmp_path / "queries.jsonl"
    path.write_text('{"_id": 1, "text": "a"}\n{"_id": "1", "text": "b"}\n{"_id": "2", "text": "c"}\n')
    first, refused, last = here._read(path)
    assert (first, last) == (("1", "a"), ("2", "c"))
    assert "queries.jsonl:2: expected every query once, found '1' again, as in line 1" in str(refused)


@pytest.mark.parametrize("name", ["queries.txt", "queries", "queries.json"])
def test_a_line_in_braces_is_text_where_the_file_is_no_json_lines(tmp_path: Path, name: str) -> None:
    """OPS-15: somebody may look for a piece of code, or for JSON itself."""
    lines = ['{"_id": "q1", "text": "a"}', "{% raw %}", "{"]
    path = tmp_path / name
    path.write_text("\n".join(lines))
    assert [text for _, text in here._read(path)] == lines  # type: ignore[misc]


def test_a_file_without_one_query_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """RET-21: each line is told, and the command has failed."""
    path = tmp_path / "queries.jsonl"
    path.write_text('{"_id": 1}\n{\n')
    assert search.main(["--queries", str(path), "--store", str(tmp_path)]) == 1
    *lines, reason = capsys.readouterr().err.splitlines()
    assert [line.split(": expected")[0] for line in lines] == [f"{path}:1", f"{path}:2"]
    assert reason == f"jobs.search: expected queries in {path}, found none in any of its 2 lines: mend them"


@pytest.mark.parametrize("query", ["", " \n"])
def test_a_query_without_a_word_is_wrong_usage(query: str, capsys: pytest.CaptureFixture[str]) -> None:
    """RET-21: such as that of a shell variable that was never set; in a file of queries such lines are passed over."""
    assert search.main([query]) == 2
    assert "expected a query with words in it" in capsys.readouterr().err


def an_answer(results: int, query_id: str) -> Answer:
    generation = MemoryGeneration({f"d{number}": [f"red w{number}"] for number in range(results)})
    answer = a_searcher(generation, depth=results).search(a_query("red", k=results))
    return replace(answer, query=replace(answer.query, query_id=QueryId(query_id)))


def test_more_results_than_an_event_tells_of_are_told_up_to_there() -> None:
    """FBK-2: what was asked for with a large -k is an impression that updaters take."""
    answer, topic = an_answer(MOST_SHOWN + 20, "q1"), MemoryPublisher()
    here.tell([answer], FeedbackProducer(topic))
    (event,) = topic.events
    assert isinstance(event, Impression)
    assert [each.content_hash for each in event.results] == [each.content_hash for each in answer.results[:MOST_SHOWN]]


@pytest.mark.parametrize("name", ["x" * 129, "\ud800"])
def test_an_answer_that_is_no_event_does_not_take_others_along(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """FBK-2: a name that no event can carry costs its own impression, and is told."""
    topic = MemoryPublisher()
    here.tell([an_answer(2, name), an_answer(2, "q2")], FeedbackProducer(topic))
    assert [json.loads(value)["query_id"] for value in topic.values] == ["q2"]
    assert capsys.readouterr().err == "1 of 2 answers are not in the feedback topic\n"


def test_nothing_that_was_indexed_steers_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """OPS-11: texts, places and queries are shown as they are."""
    hostile = "[/b] :key: \x1b]0;owned\x07 apple"
    answer = a_searcher(MemoryGeneration({hostile: [hostile]})).search(a_query(hostile, context=True))
    print_answer(answer, explain=True)
    printed = capsys.readouterr().out
    assert printed.count("[/b] :key:") >= 3
    assert not {"\x1b", "\x07"} & set(printed)


def test_two_results_are_set_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    """RET-18: the greatest difference first, a sentence each, and last by how much their scores differ."""
    answer = a_searcher(MemoryGeneration({"a": ["red apple"], "b": ["red pear"]})).search(a_query("red apple"))
    print_answer(answer, why=(1, 2))
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    one, other = answer.results
    apart = difference(one, other)
    name, amount = apart[0]
    heading = lines.index(["1", "over", "2", "because"])
    assert lines[heading + 1] == [*name.split("_"), f"{amount:+.4f}", "1:", *sentence_of(name).split()]
    assert lines[heading + 1 + len(apart)] == ["score", f"{one.score - other.score:+.4f}"]


@pytest.mark.parametrize("ranks", [(1, 3), (0, 1)])
def test_ranks_that_are_not_shown_are_named(ranks: tuple[int, int]) -> None:
    """RET-18."""
    answer = a_searcher(MemoryGeneration({"a": ["red apple"], "b": ["red pear"]})).search(a_query("red apple"))
    with pytest.raises(typer.BadParameter, match=r"expected ranks from 1 to 2, found [03]"):
        print_answer(answer, why=ranks)
