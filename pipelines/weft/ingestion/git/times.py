"""When and by whom the files of a repository were last committed, without running anything that it configures (ING-2).

Git reads a repository's objects through a bare one of our own, made for the occasion. So neither settings, hooks,
filters, helpers nor remotes of the repository itself come into play: a tree may hold any of them, and a `.git/config`
may name programs.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import select
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from weft.ingestion.git.repository import Repository, repository_above
from weft.ingestion.git.safe_files import read_bounded
from weft.ingestion.metadata.assigned import calendar_seconds

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_LINE_BYTES = 4096  # of a file that holds one name
_REFS_BYTES = 1 << 24  # of packed-refs and shallow
_BLOCK = 1 << 16
_OUTPUT_BYTES = 1 << 30  # a history of a million commits names about ten million files
_MEMORY_BYTES = 1 << 32  # address space of git, into which it maps what it reads
_ULIMIT = 'ulimit -v "$1" && shift && exec "$@"'  # a repository may hold objects that take any amount of memory


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
    """Last commit of every file below a folder that the history tells of within the limits, by path from there.

    The folder may be the top of a repository, lie in one, or be a linked work tree. Empty where there is no
    repository, no git, or nothing to be read in time.
    """
    repository = repository_above(root)
    head = None if repository is None else _head(repository)
    if repository is None or head is None or within_s <= 0.0:
        return {}
    inside = os.fsencode(root.relative_to(repository.top))
    prefix = b"" if inside == b"." else inside + b"/"
    with tempfile.TemporaryDirectory(prefix="weft-git-") as folder, contextlib.suppress(OSError):
        _make_bare(Path(folder), head, _bytes(repository.shared / "shallow", _REFS_BYTES))
        git = _Git(Path(folder), repository.shared / "objects", within_s)
        blobs = _blobs(git, head, prefix)
        return {path.removeprefix(prefix): commit for path, commit in _commits(git, head, prefix, blobs)}
    return {}


def _blobs(git: _Git, head: str, prefix: bytes) -> dict[bytes, str]:
    blobs = {}
    for entry in git.records("ls-tree", "-r", "-z", "--full-tree", head, *_within(prefix)):
        facts, _, path = entry.partition(b"\t")
        kind = facts.split(b" ")
        if len(kind) == 3 and kind[0].startswith(b"100"):
            blobs[path] = kind[2].decode("ascii", "replace")
    return blobs


def _commits(git: _Git, head: str, prefix: bytes, blobs: Mapping[bytes, str]) -> Iterator[tuple[bytes, Commit]]:
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


class _Git:
    """Runs git on the objects of a repository, within limits of time, bytes and memory."""

    def __init__(self, folder: Path, objects: Path, within_s: float) -> None:
        self._ends = time.monotonic() + within_s
        others = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        self._environment = {
            **others,
            "HOME": str(folder),
            "LC_ALL": "C",
            "GIT_DIR": str(folder),
            "GIT_OBJECT_DIRECTORY": str(objects),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ALLOW_PROTOCOL": "none",  # a repository without all of its objects would have them fetched
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
        }

    def records(self, *arguments: str) -> Iterator[bytes]:
        """What git prints, up to each zero byte; what it prints beyond the limits is left out."""
        limits = ("/bin/sh", "-c", _ULIMIT, "sh", str(_MEMORY_BYTES >> 10))
        options = ("--literal-pathspecs", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")
        process = subprocess.Popen(
            [*limits, "git", *options, "-c", "core.packedGitLimit=256m", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=self._environment,
        )
        with process:
            try:
                rest = b""
                for block in self._blocks(process):
                    *whole, rest = (rest + block).split(b"\0")
                    yield from whole
            finally:
                process.kill()

    def _blocks(self, process: subprocess.Popen[bytes]) -> Iterator[bytes]:
        if process.stdout is None:
            return
        left_bytes = _OUTPUT_BYTES
        poll = select.poll()
        poll.register(process.stdout, select.POLLIN)
        while left_bytes > 0 and poll.poll(max(0.0, self._ends - time.monotonic()) * 1000):
            block = os.read(process.stdout.fileno(), _BLOCK)
            if not block:
                return
            left_bytes -= len(block)
            yield block


def _make_bare(folder: Path, head: str, shallow: bytes) -> None:
    for name in ("objects", "refs"):
        (folder / name).mkdir()
    (folder / "HEAD").write_text(f"{head}\n", encoding="ascii")
    wide = "[extensions]\nobjectformat = sha256\n" if len(head) > 40 else ""
    (folder / "config").write_text(f"[core]\nrepositoryformatversion = {int(bool(wide))}\nbare = true\n{wide}", "ascii")
    if shallow:
        (folder / "shallow").write_bytes(shallow)


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
