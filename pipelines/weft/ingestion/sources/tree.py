"""Folder trees: which files are to be read, as git decides it, in a fixed order (ING-1, ING-40)."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from pathlib import Path

from weft.ingestion.git.files import ProjectFiles, files_of
from weft.ingestion.git.repository import Repository, repository_above, repository_at
from weft.ingestion.git.rules import PathRules
from weft.ingestion.git.safe_files import MAX_DEPTH, opened_folder

PathNames = tuple[str, ...]
"""A path as the names that lead to it."""


class SkipReason(StrEnum):
    """Why an entry of a tree is not read."""

    IGNORED = "ignored"
    """By rules as git obeys them."""
    SKIPPED = "skipped"
    """By its name."""
    SECRET = "secret"  # noqa: S105  no password
    """A file of passwords or keys, by its name."""
    WORKTREE = "worktree"
    """A further working tree of a repository that is read already."""
    DECLARED = "declared"
    """By the globs that its source declares."""
    STORE = "store"
    """The store that is written to."""


@dataclass(frozen=True, slots=True)
class TreeListing:
    """What a tree holds that is to be read."""

    # from the tree's root, in the order of their bytes, files of a folder before those of its folders; linked
    # working trees come last
    paths: Sequence[PathNames]
    # entries that were left out by reason; a folder counts once, since nothing looks into it
    left_out: Mapping[SkipReason, int]

    def __iter__(self) -> Iterator[PathNames]:
        return iter(self.paths)


def listed(
    root: Path, *, skipped: Sequence[str], left_out: PathNames | None = None, secrets: Sequence[str] = ()
) -> TreeListing:
    """Files below a folder that are to be read: in a repository those of `git ls-files -co --exclude-standard`.

    Links, devices and folders that cannot be listed are named too: reading them tells why they cannot be read.
    """
    walk = _Walk(root, frozenset(skipped), left_out, PathRules(secrets))
    return TreeListing(list(walk.paths()), dict(sorted(walk.left_out.items())))


@dataclass(frozen=True, slots=True)
class _Folder:
    """A folder to be listed."""

    path: PathNames
    start: int  # how many names lead to the folder that its files were asked of
    files: ProjectFiles


@dataclass(slots=True)
class _Walk:
    root: Path
    skipped: frozenset[str]
    store: PathNames | None
    secrets: PathRules
    left_out: Counter[SkipReason] = field(default_factory=Counter)
    _walked: set[Path] = field(default_factory=set)
    _linked: list[tuple[PathNames, Repository]] = field(default_factory=list)

    def paths(self) -> Iterator[PathNames]:
        yield from self._below(self._top((), repository_above(self.root)))
        while self._linked:
            # The working tree of the repository's own branch stands for all others.
            path, repository = next((one for one in self._linked if one[1].head == one[1].main_head), self._linked[0])
            self._linked.remove((path, repository))
            if repository.shared in self._walked:
                self.left_out[SkipReason.WORKTREE] += 1
            else:
                yield from self._below(self._top(path, repository))

    def _top(self, path: PathNames, repository: Repository | None) -> _Folder:
        if repository is not None:
            self._walked.add(repository.shared)
        return _Folder(path, len(path), files_of(repository, self.root.joinpath(*path)))

    def _below(self, start: _Folder) -> Iterator[PathNames]:
        waiting = [start]
        while waiting:
            folder = waiting.pop()
            try:
                with opened_folder(self.root, folder.path) as descriptor:
                    entries = sorted(_entries(descriptor), key=lambda entry: os.fsencode(entry[0]))
            except OSError:
                yield folder.path
                continue
            below = []
            for name, kind in entries:
                path = (*folder.path, name)
                reason = self._reason(folder, path, kind)
                if reason is not None:
                    self.left_out[reason] += 1
                elif kind is not _Kind.FOLDER or len(path) > MAX_DEPTH:
                    yield path
                elif (entered := self._entered(folder, path)) is not None:
                    below.append(entered)
            waiting.extend(reversed(below))

    def _reason(self, folder: _Folder, path: PathNames, kind: _Kind) -> SkipReason | None:
        """Why an entry is left out, if it is."""
        is_folder = kind is _Kind.FOLDER
        if path[-1] in self.skipped:
            return SkipReason.SKIPPED
        if path == self.store:
            return SkipReason.STORE
        if self.secrets.verdict("/".join(path), is_folder=is_folder):
            return SkipReason.SECRET
        # Git knows no devices.
        if kind is _Kind.OTHER or not folder.files.leaves_out(path[folder.start :], is_folder=is_folder):
            return None
        return SkipReason.IGNORED

    def _entered(self, folder: _Folder, path: PathNames) -> _Folder | None:
        """A folder as it is listed, in a repository of its own if it is one; None where that is not now, or never."""
        if not folder.files.is_apart(path[folder.start :]):
            return _Folder(path, folder.start, folder.files)
        repository = repository_at(self.root.joinpath(*path))
        if repository is None:
            return None
        if repository.shared in self._walked:
            self.left_out[SkipReason.WORKTREE] += 1
            return None
        if repository.is_linked:
            self._linked.append((path, repository))
            return None
        return self._top(path, repository)


class _Kind(Enum):
    FILE, FOLDER, OTHER = range(3)


def _entries(descriptor: int) -> list[tuple[str, _Kind]]:
    with os.scandir(descriptor) as entries:
        return [(entry.name, _kind_of(entry)) for entry in entries]


def _kind_of(entry: os.DirEntry[str]) -> _Kind:
    if entry.is_dir(follow_symlinks=False):
        return _Kind.FOLDER
    return _Kind.FILE if entry.is_symlink() or entry.is_file(follow_symlinks=False) else _Kind.OTHER
