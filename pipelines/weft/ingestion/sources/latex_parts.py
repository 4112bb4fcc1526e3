r"""Papers and books in LaTeX over several files: which one takes a file in, by `\input` and its kin (ING-35)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from weft.chunking.paper.paper import LATEX, paper_facts
from weft.ingestion.git.safe_files import UnreadableError, read_bytes
from weft.ingestion.sources.encodings import decoded

_MOST_FILES = 64  # of a folder that are looked at
_MOST_BYTES = 1_000_000  # of a file that is looked at
_FOLDERS = 3  # its own, and those around it
_DEEPEST = 8  # files that take in one another
_TAKES_IN = re.compile(
    r"^[^%\n]{0,200}?\\(?:input|include|subfile|import\{[^{}]{0,200}\})\s{0,3}\{([^{}\n]{1,300})\}", re.MULTILINE
)
_CLASS = re.compile(r"^[^%\n]{0,20}\\document(?:class|style)\b", re.MULTILINE)


def title_of_whole(root: Path, path: tuple[str, ...]) -> str | None:
    """The title of the paper or the book that a file of a tree is a part of; None where no file takes it in."""
    texts = dict(_beside(root, path))
    wanted = "/".join(path)
    for _ in range(_DEEPEST):
        others = ((name, text) for name, text in texts.items() if name != wanted)
        holder = next((name for name, text in others if wanted in _taken_in(name, text)), None)
        if holder is None:
            return None
        if _CLASS.search(texts[holder]):
            return paper_facts(texts[holder], LATEX).title
        wanted = holder
    return None


def _beside(root: Path, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """LaTeX in the folder of a file and those around it, by path."""
    for depth in range(len(path) - 1, max(-1, len(path) - 1 - _FOLDERS), -1):
        folder = root.joinpath(*path[:depth])
        try:
            names = sorted(each.name for each in folder.iterdir() if each.suffix == ".tex")[:_MOST_FILES]
        except OSError:
            continue
        for name in names:
            try:
                data, _ = read_bytes(root, (*path[:depth], name), limit=_MOST_BYTES)
                yield "/".join((*path[:depth], name)), decoded(data)[0]
            except UnreadableError:
                continue


def _taken_in(name: str, text: str) -> set[str]:
    """Paths that a file takes in: from its own folder, or from those around it, where the first of them stands."""
    folders = [PurePosixPath(name).parent, *PurePosixPath(name).parent.parents]
    taken = (match[1].strip().removeprefix("./") for match in _TAKES_IN.finditer(text))
    named = [each if each.endswith(".tex") else f"{each}.tex" for each in taken]
    return {(folder / each).as_posix() for folder in folders for each in named}
