"""FBK-3, EVA-3, LRN-17: what others wrote into a store is shown as it is: nothing in it is an order to a terminal."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.feedback_events import lesson_outcome
from tests.support.generations import publish
from tests.support.retrieval_fakes import MemoryGeneration, a_query, a_searcher
from tests.support.session_store import Partition, judged, phase
from weft.catalog.catalog import Catalog
from weft.cli.main import main
from weft.domain.ids import QueryId
from weft.domain.ranking import Channel
from weft.evaluation.queries.writer import QueryLog
from weft.feedback.events.codec import encode
from weft.settings import load_settings

MARKUP, ESCAPE = "[/b] [red] :key:", "\x1b]0;owned\x07"
HOSTILE = f"{MARKUP} {ESCAPE}"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store into which somebody wrote markup and control characters wherever text may stand."""
    root = tmp_path_factory.mktemp("store")
    names = {"principal": HOSTILE, "agent": HOSTILE, "model": HOSTILE}
    spoken = [*judged("s2", **names), lesson_outcome(HOSTILE, "success", session_id="s2", **names)]
    ill = json.dumps({**json.loads(encode(spoken[0])), "type": HOSTILE}).encode()
    partition = Partition(root)
    partition.feed([phase("start", HOSTILE, **names), *spoken, ill])  # type: ignore[list-item]
    partition.publish()
    answer = a_searcher(MemoryGeneration({HOSTILE: ["red apple"]})).search(a_query(f"{HOSTILE} apple", intent=HOSTILE))
    asked = replace(answer.query, query_id=QueryId(HOSTILE))
    named = {"generation": HOSTILE, "learned": HOSTILE, "fusion": HOSTILE}
    with QueryLog(root, load_settings(environment={}).query_log) as log:
        log.emit(replace(answer, query=asked, failed_channels={Channel.GRAPH: HOSTILE}, **named))  # type: ignore[arg-type]
    return root


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (("sessions", "list"), MARKUP),
        (("dlq", "list"), MARKUP),
        (("feedback", "status"), MARKUP),
        (("queries", "list"), MARKUP),
        (("queries", "show", HOSTILE), MARKUP),
        (("queries", "show", HOSTILE), f"without graph: {MARKUP}"),
        (("learned", "show"), MARKUP),
        (("learned", "diff", "priors"), MARKUP),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, tuple) else "",
)
def test_no_text_of_a_store_breaks_a_command_or_steers_a_terminal(
    store: Path, command: tuple[str, ...], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """FBK-3: whoever looks for what somebody has done sees it, whatever names were chosen for it."""
    assert main([*command, "--store", str(store)]) == 0
    printed = capsys.readouterr().out
    assert expected in printed
    assert not {"\x1b", "\x07"} & set(printed)


@pytest.mark.parametrize(
    "command",
    [
        ("list",),
        ("list", "--json"),
        ("show", "live"),
        ("verify", "live"),
        ("rollback", "{first}"),
        ("prune", "--keep", "0"),
    ],
    ids=" ".join,
)
def test_no_name_of_a_generation_is_markup_or_steers_a_terminal(
    tmp_path: Path, command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """OPS-11: a manifest is a file; a store may have been copied from anywhere."""
    names = [f"[red] {ESCAPE}\x9b {number}" for number in range(3)]
    for number, name in enumerate(names):
        publish(Catalog(tmp_path), name, created_at=float(number))
    arguments = [word.format(first=names[0]) for word in command]
    assert main(["generations", *arguments, "--store", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "[red]" in printed
    assert not {"\x1b", "\x07", "\x9b"} & set(printed)


def test_nothing_that_is_logged_steers_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """OPS-11: nor does it look like a line of its own."""
    monkeypatch.setattr(logging.root, "handlers", [])
    monkeypatch.setattr(logging.root, "level", logging.WARNING)
    (tmp_path / "generations" / f"a{ESCAPE}\nb").mkdir(parents=True)
    assert main(["generations", "list", "--store", str(tmp_path)]) == 0
    first, second, *more = capsys.readouterr().err.splitlines()
    assert first == "a\ufffd]0;owned\ufffd"
    assert second.startswith("    b is left out: ")
    assert all(line.startswith("    ") for line in more)


def test_what_is_piped_is_not_cut_to_a_terminal(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """LRN-17: an id in a list is whole, on one line, so that other commands can be told it."""
    name = f"session-{'x' * 60}"
    Partition(store).feed([phase("start", name, principal="p" * 40)])
    assert main(["sessions", "list", "--store", str(store)]) == 0
    assert any(name in line and "p" * 40 in line for line in capsys.readouterr().out.splitlines())


@pytest.mark.parametrize(
    "command",
    [
        ("generations", "list"),
        ("generations", "prune", "--keep", "1"),
        ("learned", "list"),
        ("sessions", "list"),
        ("dlq", "list"),
        ("feedback", "status"),
        ("queries", "list"),
    ],
    ids=" ".join,
)
def test_a_store_that_is_not_there_is_named_and_not_made(
    tmp_path: Path, command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """OPS-4: a name mistyped is no store in which nothing was ever done."""
    mistyped = tmp_path / "stroe"
    assert main([*command, "--store", str(mistyped)]) == 1
    assert f"expected a store in {mistyped}, found no such folder" in capsys.readouterr().err
    assert not mistyped.exists()
