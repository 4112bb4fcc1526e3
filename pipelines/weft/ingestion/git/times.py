"""When and by whom the files of a repository were last committed (ING-2)."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from weft.ingestion.git.protected import ProtectedGit
from weft.ingestion.git.repository import Repository, repository_above
from weft.ingestion.git.safe_files import read_bounded
from weft.ingestion.metadata.assigned import calendar_seconds

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_LINE_BYTES = 4096  # of a file that holds one name
_REFS_BYTES = 1 << 24  # of packed-refs and shallow


@dataclass(frozen=True, slots=True)
class Commit:
    """The last commit that touched a file."""

    time: float  # seconds since the epoch
    author: str
    blob: str  # what the file holds in it, as git names it: a file that holds something else was changed since

    def is_of(self, data: bytes) -> bool:
        """Whether a file with this content is as it was committed."""
        digest = hashlib.sha1 if len(self.blob) == 40 else hashlib.sha256
        return digest(b"blob %d\0" % len(data) + data).hexdigest() == self.blob


def last_commits(root: Path, *, within_s: float) -> dict[bytes, Commit]:
    """Last commit of every file below a folder that the history tells of within the limits, by path from there."""
    repository = repository_above(root)
    head = None if repository is None else _head(repository)
    if repository is None or head is None or within_s <= 0.0:
        return {}
    inside = os.fsencode(root.relative_to(repository.top))
    prefix = b"" if inside == b"." else inside + b"/"
    with tempfile.TemporaryDirectory(prefix="weft-git-") as folder, contextlib.suppress(OSError):
        git = ProtectedGit(
            Path(folder), within_s, head=head, wide=len(head) > 40, objects=repository.shared / "objects"
        )
        if shallow := _bytes(repository.shared / "shallow", _REFS_BYTES):
            (Path(folder) / "shallow").write_bytes(shallow)
        blobs = _blobs(git, head, prefix)
        return {path.removeprefix(prefix): commit for path, commit in _commits(git, head, prefix, blobs)}
    return {}


def _blobs(git: ProtectedGit, head: str, prefix: bytes) -> dict[bytes, str]:
    blobs = {}
    for entry in git.records("ls-tree", "-r", "-z", "--full-tree", head, *_within(prefix)):
        facts, _, path = entry.partition(b"\t")
        kind = facts.split(b" ")
        if len(kind) == 3 and kind[0].startswith(b"100"):
            blobs[path] = kind[2].decode("ascii", "replace")
    return blobs


def _commits(git: ProtectedGit, head: str, prefix: bytes, blobs: Mapping[bytes, str]) -> Iterator[tuple[bytes, Commit]]:
    """Newest first, until every file was seen; the mark is the head's own name, which no path can know."""
    unseen = dict(blobs)
    mark = f"{head}\t".encode()
    command = ("log", "-z", "--name-only", "--no-renames", f"--format={head}%x09%ct%x09%an", head, *_within(prefix))
    when: float | None = None
    author = ""
    for record in git.records(*command) if unseen else ():
        if record.startswith(mark):
            _, seconds, name = record.split(b"\t", 2)
            when = calendar_seconds(float(seconds)) if seconds else None  # a damaged commit says none
            author = name.decode("utf-8", "replace").strip()
        elif (blob := unseen.pop(record.removeprefix(b"\n"), None)) is not None and when is not None:
            yield record.removeprefix(b"\n"), Commit(when, author, blob)
            if not unseen:
                return


def _within(prefix: bytes) -> tuple[str, ...]:
    return ("--", os.fsdecode(prefix)) if prefix else ()


def _head(repository: Repository) -> str | None:
    """The head commit; None where there is none, or where one tree could name another's repository.

    A `.git` that is a file counts only where the repository that it names names it too.
    """
    mark = repository.top / ".git"
    back = _first_line(repository.own / "gitdir")
    if mark.is_symlink() or (mark.is_file() and (repository.own / back).resolve() != mark.resolve()):
        return None
    head = _first_line(repository.own / "HEAD")
    if head.startswith("ref:"):
        head = _resolved(head.removeprefix("ref:").strip(), repository.own, repository.shared)
    return head if _COMMIT.fullmatch(head) else None


def _resolved(name: str, own: Path, shared: Path) -> str:
    parts = name.split("/")
    if parts[0] != "refs" or not all(parts) or {".", ".."} & set(parts):
        return ""
    for folder in (own, shared):
        if commit := _first_line(folder.joinpath(*parts)):
            return commit
    packed = _bytes(shared / "packed-refs", _REFS_BYTES).decode("utf-8", "replace")
    return next((line.split(" ")[0] for line in packed.splitlines() if line.endswith(f" {name}")), "")


def _first_line(path: Path) -> str:
    return _bytes(path, _LINE_BYTES).decode("utf-8", "surrogateescape").partition("\n")[0].strip()


def _bytes(path: Path, limit: int) -> bytes:
    return read_bounded(path, limit, flags=os.O_NOFOLLOW)
