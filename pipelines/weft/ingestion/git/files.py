"""Which files of a folder are a project's: those of `git ls-files -co --exclude-standard` (ING-40)."""

from __future__ import annotations

import logging
import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from weft.ingestion.git.protected import ProtectedGit
from weft.ingestion.git.repository import Repository, repository_at
from weft.ingestion.git.rules import TreeRules
from weft.ingestion.git.safe_files import read_bounded

log = logging.getLogger(__name__)

LISTING_S = 30.0
"""Longer listings are given up: rules alone decide then. A tree may hold an ignore file that never ends."""

_RULES_BYTES = 1 << 20  # of one file of rules
_INDEX_BYTES = 1 << 27  # about a million files
_SHARED = 4  # second parts of an index that are looked at
_LIST = ("ls-files", "-z", "--exclude-standard")
_NAMED = ("--includes", "-z", "--type=path", "--get", "core.excludesFile")
_ANY = "z-never-named"  # a file that no rule means by its name
_SETTING = re.compile(rb'(?im)^\s*(objectformat|ignorecase|excludesfile)\s*=\s*"?([^"\n]*?)"?\s*$')


class ProjectFiles(Protocol):
    """Tells the entries of one working tree, from the folder in it that is read; its entries are asked from there down.

    `leaves_out` is asked of every entry whose folders are not left out, `is_apart` of every folder that is not.
    """

    def leaves_out(self, path: tuple[str, ...], *, is_folder: bool) -> bool:
        """Whether an entry is not the project's."""
        ...

    def is_apart(self, path: tuple[str, ...]) -> bool:
        """Whether a folder is of another repository, or was to be."""
        ...


def files_of(repository: Repository | None, folder: Path) -> ProjectFiles:
    """What git says about a folder, which lies in the repository if there is one; rules alone where it says nothing.

    The rules above a folder hold for what lies below it; those that exclude the folder itself do not: who names it
    means it.
    """
    if shutil.which("git") is not None:
        with tempfile.TemporaryDirectory(prefix="weft-git-") as own:
            listed = _Listing(Path(own), repository, folder).files()
        if listed is not None:
            return listed
        log.warning("%s: git lists no files: the rules of its ignore files alone decide, less exactly", folder)
    return _ByRules(folder)


class _ByRules(TreeRules):
    def is_apart(self, path: tuple[str, ...]) -> bool:
        return repository_at(self._root.joinpath(*path)) is not None


class _ByGit:
    def __init__(self, wanted: Sequence[bytes], ignored: Sequence[bytes]) -> None:
        self._wanted, self._ignored = frozenset(wanted), frozenset(ignored)

    def leaves_out(self, path: tuple[str, ...], *, is_folder: bool) -> bool:
        way = os.fsencode("/".join(path))
        return way + b"/" in self._ignored if is_folder else way not in self._wanted

    def is_apart(self, path: tuple[str, ...]) -> bool:
        way = os.fsencode("/".join(path))
        return not self._wanted.isdisjoint({way, way + b"/"})


class _Listing:
    """Asks git about a folder."""

    def __init__(self, own: Path, repository: Repository | None, folder: Path) -> None:
        self._repository, self._folder = repository, folder
        self._settings = {} if repository is None else _settings_in(repository.shared / "config")
        wide = self._settings.get(b"objectformat") == b"sha256"
        objects = own / "objects" if repository is None else repository.shared / "objects"
        self._git = ProtectedGit(own, LISTING_S, head="ref: refs/heads/main", wide=wide, objects=objects)
        self._index = own / "index"
        (own / "excludes").write_bytes(read_bounded(self._excludes(), _RULES_BYTES))
        fold = os.fsdecode(self._settings.get(b"ignorecase", b"false"))
        self._options = ("-c", f"core.excludesFile={own}/excludes", "-c", f"core.ignoreCase={fold}")
        if repository is not None:
            (own / "info" / "exclude").write_bytes(read_bounded(repository.shared / "info" / "exclude", _RULES_BYTES))
            for path in (repository.own / "index", *sorted(repository.own.glob("sharedindex.*"))[:_SHARED]):
                if data := read_bounded(path, _INDEX_BYTES):
                    (own / path.name).write_bytes(data)

    def files(self) -> ProjectFiles | None:
        """What it says; None where it says nothing, such as in time."""
        top = self._folder if self._repository is None else self._repository.top
        if (made := self._listed(top)) is None and self._index.exists():
            self._index.unlink()
            made = self._listed(top)
            if made is not None:
                log.warning("%s: its index cannot be read: tracked files are not told from others", top)
        return made

    def _listed(self, top: Path) -> ProjectFiles | None:
        tracked: list[bytes] | None = []
        named: tuple[str, ...] = ()
        if self._folder != top and self._is_excluded(top):
            way = self._folder.relative_to(top).parts
            named = tuple(f"--exclude=!/{_literal('/'.join(way[:depth]))}/" for depth in range(1, len(way) + 1))
            if TreeRules(top).leaves_out((*way, _ANY), is_folder=False):  # a rule such as `*` is not about a few below
                tracked, top, named = self._ask(top, "ls-files", "-z", "-c"), self._folder, ()
                self._index.unlink(missing_ok=True)
        wanted = self._ask(top, *_LIST, *named, "-co")
        ignored = self._ask(top, *_LIST, *named, "-oi", "--directory")
        if wanted is None or ignored is None or tracked is None:
            return None
        return _ByGit([*wanted, *tracked], ignored)

    def _is_excluded(self, top: Path) -> bool:
        way = os.fspath(self._folder.relative_to(top))
        asked = ("--no-literal-pathspecs", "check-ignore", "--quiet", "--no-index", "--", f"./{way}")
        return self._ask(top, *asked, cwd=top) is not None

    def _ask(self, top: Path, *arguments: str, cwd: Path | None = None) -> list[bytes] | None:
        tree = {"GIT_WORK_TREE": str(top)}
        return self._git.answer(*self._options, *arguments, cwd=cwd or self._folder, environment=tree)

    def _excludes(self) -> Path:
        """The file of the user's own rules, which their settings name; a repository may name another."""
        home = Path(os.environ.get("HOME", "/"))
        named = self._settings.get(b"excludesfile") or self._users_excludes()
        if not named:
            return Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "git" / "ignore"
        base = self._folder if self._repository is None else self._repository.top
        return base / os.path.expanduser(os.fsdecode(named))  # noqa: PTH111  of another user, too

    def _users_excludes(self) -> bytes:
        """What the user's and the system's settings say; conditions on the repository's place hold."""
        users = {name: os.environ.get(name) for name in ("HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM")}
        if self._repository is not None:
            users["GIT_DIR"] = str(self._repository.own)
        for scope in ("--global", "--system"):
            named = self._git.answer("config", scope, *_NAMED, environment=users)
            if named:
                return named[-1]
        return b""


def _literal(way: str) -> str:
    return re.sub(r"([\\*?\[])", r"\\\1", way)


def _settings_in(config: Path) -> dict[bytes, bytes]:
    """The settings that matter here, as git writes them into a repository; it may name programs in others."""
    return {name.lower(): value for name, value in _SETTING.findall(read_bounded(config, _RULES_BYTES))}
