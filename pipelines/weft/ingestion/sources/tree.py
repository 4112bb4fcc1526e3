"""Folder trees: which files are to be read, as git decides it, in a fixed order (ING-1, ING-40)."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from weft.ingestion.git.ignore import IGNORE_FILE, IGNORE_FILE_BYTES, IgnoreRules, excluded
from weft.ingestion.git.repository import Checkout, Repository, checkout_of, repository_above, repository_at
from weft.ingestion.git.safe_files import MAX_DEPTH, UnreadableError, content_of, opened_folder

# A folder above a source may let nobody list it.
_WAY = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC

QuotaSegments = tuple[str, ...]
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
    paths: Sequence[QuotaSegments]
    # entries that were left out by reason; a folder counts once, since nothing looks into it
    left_out: Mapping[SkipReason, int]

    def __iter__(self) -> Iterator[QuotaSegments]:
        return iter(self.paths)


def listed(
    root: Path, *, skipped: Sequence[str], left_out: QuotaSegments | None = None, secrets: Sequence[str] = ()
) -> TreeListing:
    """Files below a folder that are to be read: in a repository those of `git ls-files -co --exclude-standard`.

    Rules of ignore files hold from the top of the repository that the folder lies in, if it does. A repository below
    has rules of its own. Links, devices and folders that cannot be listed are named too: reading them tells why they
    cannot be read.
    """
    walk = _Walk(root, frozenset(skipped), left_out, IgnoreRules("\n".join(secrets).encode()))
    return TreeListing(list(walk.paths()), dict(sorted(walk.left_out.items())))


@dataclass(frozen=True, slots=True)
class _Folder:
    """A folder to be listed, or another entry."""

    path: QuotaSegments
    checkout: Checkout
    way: QuotaSegments = ()  # names from the top of its working tree
    # those in force for it, each with the length of the way to its base, the weakest first
    rules: tuple[tuple[int, IgnoreRules], ...] = ()
    only_tracked: bool = False  # whether rules exclude it, so that nothing but tracked files counts

    def inner(self, name: str, rules: tuple[tuple[int, IgnoreRules], ...], *, is_folder: bool) -> _Folder:
        """An entry of it, under its own rules too."""
        way = (*self.way, name)
        ignored = self.only_tracked or excluded(_joined(way), rules, is_folder=is_folder)
        return _Folder((*self.path, name), self.checkout, way, rules, ignored)


@dataclass(slots=True)
class _Walk:
    root: Path
    skipped: frozenset[str]
    store: QuotaSegments | None
    secrets: IgnoreRules
    left_out: Counter[SkipReason] = field(default_factory=Counter)
    _walked: set[Path] = field(default_factory=set)
    _linked: list[tuple[QuotaSegments, Repository]] = field(default_factory=list)

    def paths(self) -> Iterator[QuotaSegments]:
        yield from self._below(self._start())
        while self._linked:
            # The working tree of the repository's own branch stands for all others.
            path, repository = next((one for one in self._linked if one[1].head == one[1].main_head), self._linked[0])
            self._linked.remove((path, repository))
            if repository.shared in self._walked:
                self.left_out[SkipReason.WORKTREE] += 1
            else:
                yield from self._below(self._top(path, repository))

    def _start(self) -> _Folder:
        """The root, with the rules of folders above, unless these exclude it: who names such a folder means it."""
        repository = repository_above(self.root)
        top = self._top((), repository)
        if repository is None:
            return top
        way = self.root.relative_to(repository.top).parts
        rules = top.rules
        for depth in range(len(way)):
            rules += _with_length(way[:depth], _rules_above(repository.top.joinpath(*way[:depth]), top.checkout))
            if excluded(_joined(way[: depth + 1]), rules, is_folder=True):
                rules = ()
                break
        return _Folder((), top.checkout, way, rules)

    def _top(self, path: QuotaSegments, repository: Repository | None) -> _Folder:
        checkout = checkout_of(repository, os.environ)
        if repository is not None:
            self._walked.add(repository.shared)
        return _Folder(path, checkout, rules=tuple((0, one) for one in checkout.rules))

    def _below(self, start: _Folder) -> Iterator[QuotaSegments]:
        waiting = [start]
        while waiting:
            folder = waiting.pop()
            try:
                with opened_folder(self.root, folder.path) as descriptor:
                    entries = sorted(_entries(descriptor), key=lambda entry: os.fsencode(entry[0]))
                    rules = folder.rules + _with_length(folder.way, _rules(descriptor, folder.checkout))
            except OSError:
                yield folder.path
                continue
            below = []
            for name, is_folder in entries:
                inner = folder.inner(name, rules, is_folder=is_folder)
                reason = self._reason(inner, is_folder=is_folder)
                if reason is not None:
                    self.left_out[reason] += 1
                elif not is_folder or len(inner.path) > MAX_DEPTH:
                    yield inner.path
                elif (entered := self._entered(inner)) is not None:
                    below.append(entered)
            waiting.extend(reversed(below))

    def _reason(self, inner: _Folder, *, is_folder: bool) -> SkipReason | None:
        """Why an entry is left out, if it is."""
        if inner.path[-1] in self.skipped:
            return SkipReason.SKIPPED
        if inner.path == self.store:
            return SkipReason.STORE
        if self.secrets.verdict(_joined(inner.path), is_folder=is_folder):
            return SkipReason.SECRET
        tracked, way = inner.checkout.tracked, _joined(inner.way)
        is_tracked = tracked.has_below(way) if is_folder else tracked.has(way)
        return SkipReason.IGNORED if inner.only_tracked and not is_tracked else None

    def _entered(self, inner: _Folder) -> _Folder | None:
        """A folder as it is listed, in a repository of its own if it is one; None where that is not now, or never."""
        tracked, way = inner.checkout.tracked, _joined(inner.way)
        is_submodule = tracked.has_submodule(way)
        if tracked.has_below(way) and not is_submodule:
            return inner
        repository = repository_at(self.root.joinpath(*inner.path))
        if repository is None:
            return replace(inner, only_tracked=True) if is_submodule else inner
        if repository.shared in self._walked:
            self.left_out[SkipReason.WORKTREE] += 1
            return None
        if repository.is_linked:
            self._linked.append((inner.path, repository))
            return None
        return self._top(inner.path, repository)


def _joined(path: QuotaSegments) -> bytes:
    return os.fsencode("/".join(path))


def _with_length(way: QuotaSegments, rules: IgnoreRules | None) -> tuple[tuple[int, IgnoreRules], ...]:
    """Rules of one folder, with the length of the way there and the slash behind it."""
    return ((len(_joined(way)) + bool(way), rules),) if rules else ()


def _entries(descriptor: int) -> list[tuple[str, bool]]:
    with os.scandir(descriptor) as entries:
        return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]


def _rules_above(folder: Path, checkout: Checkout) -> IgnoreRules | None:
    try:
        descriptor = os.open(folder, _WAY)
    except OSError:
        return None
    try:
        return _rules(descriptor, checkout)
    finally:
        os.close(descriptor)


def _rules(folder: int, checkout: Checkout) -> IgnoreRules | None:
    try:
        data, _ = content_of(IGNORE_FILE, folder, IGNORE_FILE_BYTES)
    except (OSError, UnreadableError):
        return None
    return IgnoreRules(data, ignore_case=checkout.ignore_case)
