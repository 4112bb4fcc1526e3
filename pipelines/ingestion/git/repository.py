"""Repositories and what they say about their files, read without running git (ING-40).

No process of git is started. So nothing that a repository configures runs, git need not be there, and a repository of
another owner, which git would refuse, has its rules all the same.
"""

from __future__ import annotations

import logging
import os
import re
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipelines.ingestion.git.config import expanded, files_of_user, is_true, settings_in, user_folder
from pipelines.ingestion.git.ignore import IGNORE_FILE_BYTES, IgnoreRules
from pipelines.ingestion.git.index import INDEX_BYTES, IndexUnreadableError, Tracked, tracked_paths
from pipelines.ingestion.git.safe_files import read_bounded

log = logging.getLogger(__name__)

_MARK = ".git"
_LINE_BYTES = 8_192  # of a file that holds one path
_HEAD = re.compile(rb"ref:\s*refs/|[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class Repository:
    """A working tree.

    Attributes:
        top: The folder that its paths start from.
        own: What belongs to this working tree alone: its head and its index.
        shared: What all working trees of the repository have in common.
    """

    top: Path
    own: Path
    shared: Path

    @property
    def is_linked(self) -> bool:
        """Whether it is a further working tree of a repository, as `git worktree add` makes them."""
        return self.own != self.shared

    @property
    def head(self) -> bytes:
        """The name of its branch, or its commit."""
        return read_bounded(self.own / "HEAD", _LINE_BYTES).strip()

    @property
    def main_head(self) -> bytes:
        """The same of the repository's first working tree, or of the repository itself where that has none."""
        return read_bounded(self.shared / "HEAD", _LINE_BYTES).strip()


def repository_at(folder: Path) -> Repository | None:
    """The repository whose top a folder is, if it is one."""
    mark = folder / _MARK
    try:
        status = mark.stat()
    except (OSError, ValueError):
        return None
    own = mark if stat.S_ISDIR(status.st_mode) else _named_in(mark)
    if own is None or not _HEAD.match(read_bounded(own / "HEAD", _LINE_BYTES)):
        return None
    common = read_bounded(own / "commondir", _LINE_BYTES).rstrip(b"\r\n")
    own = own.resolve()
    shared = (own / os.fsdecode(common)).resolve() if common else own
    return Repository(folder, own, shared) if (shared / "objects").is_dir() and (shared / "refs").is_dir() else None


def repository_above(folder: Path) -> Repository | None:
    """The repository that a folder lies in, if whoever made it may decide about the folder.

    That are the folder's owner, who runs this, and root: others who may write to a folder above, such as /tmp, could
    leave out what they like. Like git, it looks no further than the folder's file system.
    """
    status = folder.stat()
    for above in (folder, *folder.parents):
        try:
            if above.stat().st_dev != status.st_dev:
                return None
            repository = repository_at(above)
            if repository is not None:
                trusted = {status.st_uid, os.geteuid(), 0}
                return repository if above == folder or (above / _MARK).stat().st_uid in trusted else None
        except OSError:
            return None
    return None


def _named_in(mark: Path) -> Path | None:
    line = read_bounded(mark, _LINE_BYTES).rstrip(b"\r\n")
    named = line.removeprefix(b"gitdir:").lstrip(b" ")
    if not line.startswith(b"gitdir:") or not named or b"\0" in named:
        return None
    return mark.parent / os.fsdecode(named)


@dataclass(frozen=True, slots=True)
class Checkout:
    """What one working tree says about its files; without a repository, what the user's own rules say.

    Attributes:
        rules: Those that hold below its top besides the files in its folders: the weakest first.
    """

    tracked: Tracked
    rules: Sequence[IgnoreRules]
    ignore_case: bool


def checkout_of(repository: Repository | None, environment: Mapping[str, str]) -> Checkout:
    """Read what a repository and the user's settings say."""
    settings = _settings(repository, environment)
    fold = is_true(settings.get("core.ignorecase", ""))
    if repository is None:
        return Checkout(Tracked(), _rules_in([_excludes_file(settings, Path("/"), environment)], fold), fold)
    places = [_excludes_file(settings, repository.top, environment), repository.shared / "info" / "exclude"]
    id_bytes = 32 if settings.get("extensions.objectformat", "").lower() == "sha256" else 20
    return Checkout(_tracked(repository, id_bytes), _rules_in(places, fold), fold)


def _settings(repository: Repository | None, environment: Mapping[str, str]) -> dict[str, str]:
    home = environment.get("HOME", "")
    users = files_of_user(environment)
    if repository is None:
        return settings_in(users, None, home)
    paths = (*users, repository.shared / "config")
    settings = settings_in(paths, repository.own, home)
    if not is_true(settings.get("extensions.worktreeconfig", "")):
        return settings
    return settings_in((*paths, repository.own / "config.worktree"), repository.own, home)


def _excludes_file(settings: Mapping[str, str], base: Path, environment: Mapping[str, str]) -> Path:
    named = settings.get("core.excludesfile")
    if named is None:
        return user_folder(environment) / "ignore"
    return base / expanded(named, environment.get("HOME", ""))


def _rules_in(places: Iterable[Path], ignore_case: bool) -> list[IgnoreRules]:
    contents = [read_bounded(place, IGNORE_FILE_BYTES + 1) for place in places]
    return [IgnoreRules(data, ignore_case=ignore_case) for data in contents if 0 < len(data) <= IGNORE_FILE_BYTES]


def _tracked(repository: Repository, id_bytes: int) -> Tracked:
    """The files in its index; none where that cannot be read."""
    data = read_bounded(repository.own / "index", INDEX_BYTES + 1)

    def shared_index(name: str) -> bytes:
        return read_bounded(repository.own / f"sharedindex.{name}", INDEX_BYTES)

    try:
        return Tracked(tracked_paths(data, id_bytes=id_bytes, shared_index=shared_index) if data else ())
    except IndexUnreadableError as error:
        log.warning("%s: tracked files are not told from others: %s", repository.top, error)
        return Tracked()
