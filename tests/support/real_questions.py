"""Questions that people really asked of a documentation, with the pages that answer them, and the documentation itself.

A collection is a folder with `queries.jsonl`, `judgements.jsonl` and either the documentation beside them (`docs/`) or
`source.json`, which pins a source distribution on a package index: it is fetched once, its hash is compared, and its
documentation is unpacked below a cache, outside of the repository. Documentation is never committed.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import tarfile
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urljoin, urlsplit

from tests.support.plain_search import sections_of, unmarked
from weft.evaluation.measures.beir import Qrels, numbered_lines

COMMITTED = Path(__file__).resolve().parents[1] / "evaluation" / "realq"
INDEX_URL = "https://pypi.org/simple/"
"""Where source distributions are looked for, unless PIP_INDEX_URL names another package index."""
PATIENCE_S = 60.0
IMAGES = frozenset({".png", ".jpg", ".jpeg", ".gif", ".svg", ".ico", ".webp"})
UNANSWERED = "none"
_LINE = "a JSON object"


class WrongContentError(Exception):
    """A source distribution is not the one that is pinned, or its documentation is not there."""


class UnreachableError(Exception):
    """A source distribution could not be fetched."""


@dataclass(frozen=True)
class RealQuestion:
    """One question, reworded with the asker's words and mistakes.

    Attributes:
        kind: question, error (an error message or identifiers), or none (the documentation does not answer it).
        thread: Where it was asked, as owner/repository#number.
        named_by: Who named the page: m a maintainer, u a user, f it was written to close the thread, v chosen by
            reading; "-" where there is none.
        headings: By page, the headings under which the answer stands; none where the whole page answers.
    """

    question_id: str
    text: str
    kind: str
    thread: str
    named_by: str
    grades: Mapping[str, int]
    headings: Mapping[str, tuple[str, ...]]

    @property
    def answerable(self) -> bool:
        return self.kind != UNANSWERED


@dataclass(frozen=True)
class RealCollection:
    """The questions of one documentation, and where it lies; pages are named by their path from `root`."""

    name: str
    root: Path
    documentation: Path
    questions: tuple[RealQuestion, ...]

    @property
    def qrels(self) -> Qrels:
        """Grades of the questions that have an answer."""
        return {each.question_id: each.grades for each in self.questions if each.answerable}


def folders(data_root: Path) -> dict[str, Path]:
    """Every collection by its name: those at hand below WEFT_DATA, and those whose questions are committed."""
    found = [path.parent for root in (data_root / "realq", COMMITTED) for path in sorted(root.glob("*/queries.jsonl"))]
    return {folder.name: folder for folder in found}


def read_collection(folder: Path, cache: Path) -> RealCollection:
    """The questions of a folder, with their documentation, which is fetched where it is not at hand.

    Raises:
        WrongContentError: What was fetched is not what is pinned, or a judged page or heading is not in it.
    """
    if (folder / "docs").is_dir():
        root, documentation = folder, folder / "docs"
    else:
        pinned = json.loads((folder / "source.json").read_text("utf-8"))
        root = fetched(pinned, cache)
        documentation = root / pinned["docs"]
    collection = RealCollection(folder.name, root, documentation, tuple(read_questions(folder)))
    for question in collection.questions:
        _require_pages(collection, question)
    return collection


def read_questions(folder: Path) -> Iterator[RealQuestion]:
    """The questions of a folder, in the order of its file."""
    grades: dict[str, dict[str, int]] = defaultdict(dict)
    headings: dict[str, dict[str, tuple[str, ...]]] = defaultdict(dict)
    for _, line in numbered_lines(folder / "judgements.jsonl", _LINE):
        row = json.loads(line)
        query, page = row["query"], row["path"]
        grades[query][page] = max(row["score"], grades[query].get(page, 0))
        headings[query][page] = (*headings[query].get(page, ()), *filter(None, [unmarked(row.get("heading", ""))]))
    for _, line in numbered_lines(folder / "queries.jsonl", _LINE):
        row = json.loads(line)
        told, name = row["metadata"], row["_id"]
        yield RealQuestion(name, row["text"], told["kind"], told["thread"], told["by"], grades[name], headings[name])


def fetched(pinned: Mapping[str, Any], cache: Path) -> Path:
    """The folder of an unpacked source distribution: its documentation without images.

    Args:
        pinned: project, file, sha256, and docs, the folder of the documentation in it.

    Raises:
        UnreachableError: The package index does not answer.
        WrongContentError: It has no such file, or one with another hash, or without such a folder.
    """
    return unpacked(pinned, cache, [pinned["docs"]], lambda path: path.suffix.lower() not in IMAGES)


def unpacked(
    pinned: Mapping[str, Any], cache: Path, folders: Sequence[str], wanted: Callable[[PurePosixPath], bool]
) -> Path:
    """The folder of an unpacked source distribution: what is wanted of some of its folders.

    Args:
        pinned: project, file and sha256.
        wanted: Whether a file is kept, by its path in the distribution.

    Raises:
        UnreachableError: The package index does not answer.
        WrongContentError: It has no such file, or one with another hash, or without such a folder.
    """
    root = cache / f"{pinned['file']}-{pinned['sha256'][:12]}"
    if not root.is_dir():
        content = _downloaded(pinned)
        staged = cache / f".{root.name}.{os.getpid()}"
        shutil.rmtree(staged, ignore_errors=True)
        _unpack(content, folders, wanted, staged)
        staged.replace(root)
    return root


def _downloaded(pinned: Mapping[str, Any]) -> bytes:
    try:
        return _from_index(pinned)
    except OSError as error:
        raise UnreachableError(f"{pinned['file']}: {error}") from error


def _from_index(pinned: Mapping[str, Any]) -> bytes:
    index = urljoin(os.environ.get("PIP_INDEX_URL", INDEX_URL).rstrip("/") + "/", f"{pinned['project']}/")
    with urllib.request.urlopen(index, timeout=PATIENCE_S) as page:
        links = re.findall(r'href="([^"]+)"', page.read().decode("utf-8"))
    link = next((link for link in links if PurePosixPath(urlsplit(link).path).name == pinned["file"]), None)
    if link is None:
        raise WrongContentError(f"{index}: expected {pinned['file']}, found {len(links)} other files")
    with urllib.request.urlopen(urljoin(index, link), timeout=PATIENCE_S) as file:
        content = bytes(file.read())
    if (found := hashlib.sha256(content).hexdigest()) != pinned["sha256"]:
        raise WrongContentError(f"{pinned['file']}: expected SHA-256 {pinned['sha256']}, found {found}")
    return content


def _unpack(content: bytes, folders: Sequence[str], wanted: Callable[[PurePosixPath], bool], root: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        for member in archive:
            path = PurePosixPath(*PurePosixPath(member.name).parts[1:])
            if member.isfile() and any(path.is_relative_to(folder) for folder in folders) and wanted(path):
                source = archive.extractfile(member)
                assert source is not None
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_bytes(source.read())
    if missing := [folder for folder in folders if not (root / folder).is_dir()]:
        raise WrongContentError(f"expected files in {missing[0]}, found no such folder")


def _require_pages(collection: RealCollection, question: RealQuestion) -> None:
    for page, headings in question.headings.items():
        path = collection.root / page
        if not path.is_file():
            raise WrongContentError(f"{question.question_id}: expected page {page}, found none")
        there = {section.heading for section in sections_of(page, path.read_text("utf-8"))}
        if missing := set(headings) - there:
            raise WrongContentError(f"{question.question_id}: {page} has no heading {sorted(missing)}")
