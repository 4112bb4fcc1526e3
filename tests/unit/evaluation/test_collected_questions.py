"""EVA-5: the committed real questions can be read, and plain baselines see pages as they are headed."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.support.plain_search import fused, sections_of
from tests.support.real_questions import (
    COMMITTED,
    UNANSWERED,
    RealQuestion,
    UnreachableError,
    WrongContentError,
    fetched,
    folders,
    read_collection,
    read_questions,
)

COLLECTIONS = sorted(path.name for path in folders(Path("nowhere")).values())
PINNED_PAGE = "docs/page.md"


@pytest.fixture(scope="module")
def questions() -> list[RealQuestion]:
    return [question for name in COLLECTIONS for question in read_questions(COMMITTED / name)]


def test_questions_name_their_thread_and_who_named_the_page(questions: list[RealQuestion]) -> None:
    """EVA-5."""
    for question in questions:
        assert question.text.strip()
        assert question.kind in {"question", "error", UNANSWERED}
        assert question.named_by in ({"m", "u", "f", "v"} if question.answerable else {"-"}), question
        assert "#" in question.thread or question.thread == "(made)", question


def test_only_answerable_questions_have_judgements(questions: list[RealQuestion]) -> None:
    """EVA-5: those with an answer have a page that answers them or answers in part."""
    for question in questions:
        assert bool(question.grades) == question.answerable, question
        assert set(question.grades.values()) <= {1, 2}


def test_no_question_stands_twice(questions: list[RealQuestion]) -> None:
    """EVA-5."""
    assert len({question.question_id for question in questions}) == len(questions)
    assert len({question.text for question in questions}) == len(questions)


@pytest.mark.parametrize("name", COLLECTIONS)
def test_documentation_is_pinned_and_not_committed(name: str) -> None:
    """EVA-5."""
    pinned = json.loads((COMMITTED / name / "source.json").read_text("utf-8"))
    assert set(pinned) == {"project", "file", "sha256", "docs"}
    assert len(pinned["sha256"]) == 64
    files = {path.name for path in (COMMITTED / name).iterdir()} - {"former.json"}
    assert files == {"queries.jsonl", "judgements.jsonl", "source.json"}


def test_sections_nest_and_fences_hold_no_headings() -> None:
    """EVA-5."""
    text = "# Top\n\n```\n# in: code\n```\n\n## Below { #anchor }\n\nwords\n"
    assert [(each.heading, each.end) for each in sections_of("a.md", text)] == [("Top", 9), ("Below", 9)]


def test_underlined_titles_are_headings_in_the_order_of_their_styles() -> None:
    """EVA-5."""
    text = "Title\n=====\n\nFirst\n-----\n\n.. note::\n\n   no\n\nSecond\n-----"
    assert [(each.heading, each.level) for each in sections_of("a.rst", text)] == [("Title", 1), ("First", 2)]


def test_fusion_by_rank_prefers_what_both_found() -> None:
    """EVA-5."""
    assert next(iter(fused([{"a": 3.0, "b": 2.0}, {"b": 9.0, "c": 1.0}]))) == "b"


def archive_of(content: str) -> bytes:
    kept = io.BytesIO()
    with tarfile.open(fileobj=kept, mode="w:gz") as archive:
        for path in (PINNED_PAGE, "docs/picture.png", "setup.py"):
            member = tarfile.TarInfo(f"project-1/{path}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content.encode()))
    return kept.getvalue()


@pytest.fixture
def pinned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """A package index of one project, and what pins its file."""
    content = archive_of("# Page\n\nwords\n")
    folder = tmp_path / "simple" / "project"
    folder.mkdir(parents=True)
    (folder / "project-1.tar.gz").write_bytes(content)
    (folder / "index.html").write_text('<a href="project-1.tar.gz#sha256=0">project-1.tar.gz</a>')
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.server_port}/simple")
        sha256 = hashlib.sha256(content).hexdigest()
        yield {"project": "project", "file": "project-1.tar.gz", "sha256": sha256, "docs": "docs"}
        server.shutdown()


def test_documentation_is_unpacked_without_pictures_and_code(pinned: dict[str, str], tmp_path: Path) -> None:
    """EVA-5."""
    root = fetched(pinned, tmp_path / "cache")
    assert [path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()] == [PINNED_PAGE]


def test_documentation_is_fetched_once(pinned: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """EVA-5."""
    first = fetched(pinned, tmp_path / "cache")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/nothing")
    assert fetched(pinned, tmp_path / "cache") == first


def test_an_index_that_does_not_answer_is_told(
    pinned: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """EVA-5: whoever measures can leave it."""
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/nothing")
    with pytest.raises(UnreachableError, match="project-1"):
        fetched(pinned, tmp_path / "cache")


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"sha256": "0" * 64}, "expected SHA-256 0000"),
        ({"file": "project-2.tar.gz"}, "expected project-2.tar.gz, found 1 other"),
        ({"docs": "doc"}, "expected documentation in doc"),
    ],
)
def test_what_is_not_as_pinned_is_refused(
    pinned: dict[str, str], tmp_path: Path, changed: dict[str, str], reason: str
) -> None:
    """EVA-5."""
    with pytest.raises(WrongContentError, match=reason):
        fetched(pinned | changed, tmp_path / "cache")


@pytest.mark.parametrize(
    ("judged", "reason"),
    [
        ({"path": "docs/other.md", "heading": ""}, "expected page docs/other.md"),
        ({"path": PINNED_PAGE, "heading": "Pages"}, "has no heading"),
    ],
)
def test_judgements_of_what_is_not_there_are_refused(
    pinned: dict[str, str], tmp_path: Path, judged: dict[str, str], reason: str
) -> None:
    """EVA-5."""
    told = {"kind": "question", "thread": "owner/project#1", "by": "m"}
    (tmp_path / "source.json").write_text(json.dumps(pinned))
    (tmp_path / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": "words", "metadata": told}))
    (tmp_path / "judgements.jsonl").write_text(json.dumps({"query": "q", "score": 2, **judged}))
    with pytest.raises(WrongContentError, match=reason):
        read_collection(tmp_path, tmp_path / "cache")
