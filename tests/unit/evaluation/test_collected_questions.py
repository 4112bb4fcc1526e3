"""EVA-5: the committed real questions can be read, and plain baselines see pages as they are headed."""

from __future__ import annotations

import hashlib
import io
import json
import re
import tarfile
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from tests.support.code_issues import CODE, Part, read_tree, trees, windows_of
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

TREES = trees()
COLLECTIONS = sorted(path.name for path in folders(Path("nowhere")).values())
PINNED_PAGE = "docs/page.md"
CODE_FILES = ("src/code.py", "src/words.txt", "src/other/code.py", "tests/test_code.py")


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


def test_issues_of_code_name_their_thread_and_the_files_of_their_fix() -> None:
    """EVA-5: at least sixty, over three trees, of which a third is held out."""
    issues = {name: list(read_questions(folder)) for name, folder in TREES.items()}
    every = [question for questions in issues.values() for question in questions]
    assert len(every) >= 60
    assert len({question.question_id for question in every}) == len(every)
    assert len({question.text for question in every}) == len(every)
    assert len({question.thread for question in every}) == len(every)
    for question in every:
        assert 5 <= len(question.text.split()) <= 25, question
        assert question.kind in {"question", "error"}
        assert question.named_by in {"m", "f"}
        assert re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", question.thread), question
        assert 1 <= len(question.grades) <= 3, question
        assert set(question.grades.values()) == {1}
    held_out = [name for name in TREES if source_of(name)["part"] == Part.HELD_OUT]
    assert len(TREES) == 3
    assert 3 * sum(len(issues[name]) for name in held_out) >= len(every)


@pytest.mark.parametrize("name", TREES)
def test_judged_code_is_in_the_folders_of_a_pinned_distribution(name: str) -> None:
    """EVA-5: and the code itself is not committed."""
    pinned = source_of(name)
    assert set(pinned) == {"project", "file", "sha256", "folders", "without", "part"}
    assert len(pinned["sha256"]) == 64
    assert {path.name for path in TREES[name].iterdir()} == {"queries.jsonl", "judgements.jsonl", "source.json"}
    for question in read_questions(TREES[name]):
        for path in map(PurePosixPath, question.grades):
            assert not path.is_absolute()
            assert ".." not in path.parts
            assert path.suffix in CODE
            assert any(path.is_relative_to(folder) for folder in pinned["folders"])
            assert not any(path.is_relative_to(folder) for folder in pinned["without"])
            assert not re.search(r"\btests?\b", str(path), re.IGNORECASE)


def source_of(name: str) -> dict[str, Any]:
    pinned: dict[str, Any] = json.loads((TREES[name] / "source.json").read_text("utf-8"))
    return pinned


def test_judgements_name_no_question_that_is_not_asked() -> None:
    """EVA-5."""
    for folder in TREES.values():
        asked = {question.question_id for question in read_questions(folder)}
        lines = (folder / "judgements.jsonl").read_text("utf-8").splitlines()
        assert {json.loads(line)["query"] for line in lines} == asked


def test_windows_overlap_by_half_and_start_with_the_path(tmp_path: Path) -> None:
    """EVA-5: every line stands in one, and short and empty files have one."""
    (tmp_path / "a.py").write_text("\n".join(str(line) for line in range(61)))
    (tmp_path / "b.py").write_text("")
    windows = [(path, text.splitlines()) for path, text in windows_of(tmp_path)]
    assert [(path, lines[0], lines[1:2], lines[-1]) for path, lines in windows] == [
        ("a.py", "a.py", ["0"], "39"),
        ("a.py", "a.py", ["20"], "59"),
        ("a.py", "a.py", ["40"], "60"),
        ("b.py", "b.py", [], "b.py"),
    ]


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
        for path in (PINNED_PAGE, "docs/picture.png", "setup.py", *CODE_FILES):
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


def test_code_is_unpacked_of_the_folders_named_without_what_is_left_out(pinned: dict[str, str], tmp_path: Path) -> None:
    """EVA-5: and a file that is judged and not there is refused."""
    told = {"kind": "question", "thread": "owner/project#1", "by": "f"}
    source = {**pinned, "folders": ["src", "tests"], "without": ["src/other"], "part": "held-out"}
    (tmp_path / "source.json").write_text(json.dumps(source))
    (tmp_path / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": "words", "metadata": told}))
    judged = {"query": "q", "path": "src/code.py", "score": 1}
    (tmp_path / "judgements.jsonl").write_text(json.dumps(judged))
    tree = read_tree(tmp_path, tmp_path / "cache")
    root = tree.collection.root
    files = sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())
    assert files == ["src/code.py", "tests/test_code.py"]
    assert tree.part is Part.HELD_OUT
    assert tree.collection.qrels == {"q": {"src/code.py": 1}}
    (tmp_path / "judgements.jsonl").write_text(json.dumps({**judged, "path": "src/other/code.py"}))
    with pytest.raises(WrongContentError, match="expected file src/other/code"):
        read_tree(tmp_path, tmp_path / "cache")


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
        ({"docs": "doc"}, "expected files in doc"),
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
