"""Repositories and what they say about their files, read without running git (ING-40).

No process of git is started. So nothing that a repository configures runs, git need not be there, and a repository of
another owner, which git would refuse, has its rules all the same.
"""

from __future__ import annotations

import logging
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from weft.ingestion.git.ignore import IGNORE_FILE_BYTES, IgnoreRules, UnmatchableError, expression
from weft.ingestion.git.index import INDEX_BYTES, IndexUnreadableError, Tracked, tracked_paths
from weft.ingestion.git.safe_files import read_bounded

log = logging.getLogger(__name__)

_MARK = ".git"
_LINE_BYTES = 8_192  # of a file that holds one path
_HEAD = re.compile(rb"ref:\s*refs/|[0-9a-f]{40}")
_FILE_BYTES = 1 << 20
_MOST_FILES = 64  # with all that include each other
_DEEPEST = 10  # inclusions within each other, as git has it
_SYSTEM = "/etc/gitconfig"
_SECTION = re.compile(rb'\[\s*([A-Za-z0-9.-]+)(?:[ \t]+"((?:[^"\\\n]|\\.)*)")?\s*\]')
_KEY = re.compile(rb"([A-Za-z][A-Za-z0-9-]*)[ \t]*(=?)[ \t]*")
_BLANK = re.compile(rb"(?:\s+|[#;][^\n]*)*")
_PIECE = re.compile(rb'[ \t\r\f\v]+|\\\r?\n|\\.|"|[#;][^\n]*|[^\\"#;\s]+')
_ESCAPES = {b"n": b"\n", b"t": b"\t", b"b": b"\b"}
_WILDCARD = re.compile(r"[*?\[\\]")


@dataclass(frozen=True, slots=True)
class Repository:
    """A working tree."""

    top: Path  # the folder that its paths start from
    own: Path  # what belongs to this working tree alone: its head and its index
    shared: Path  # what all working trees of the repository have in common

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
    """What one working tree says about its files; without a repository, what the user's own rules say."""

    tracked: Tracked
    rules: Sequence[IgnoreRules]  # those that hold below its top besides the files in its folders: the weakest first
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


def settings_in(paths: Iterable[Path], git_folder: Path | None, home: str) -> dict[str, str]:
    """Settings by name in lower case, those of later files before those of earlier ones.

    A name without a value is true. A damaged file counts up to the damage.
    """
    reader = _Reader(git_folder, home)
    return {name: value for path in paths for name, value in reader.values(path, 0)}


@dataclass(slots=True)
class _Reader:
    git_folder: Path | None
    home: str
    left: int = _MOST_FILES

    def values(self, path: Path, depth: int) -> Iterator[tuple[str, str]]:
        if depth > _DEEPEST or self.left == 0:
            return
        self.left -= 1
        for section, condition, name, value in parsed(read_bounded(path, _FILE_BYTES)):
            if name == "path" and (section == "include" or (section == "includeif" and self._holds(condition, path))):
                yield from self.values(path.parent / expanded(value, self.home), depth + 1)
            elif not condition:
                yield f"{section}.{name}", value

    def _holds(self, condition: str, path: Path) -> bool:
        """Whether a condition on the place of the repository holds; no other kind does here."""
        kind, _, pattern = condition.partition(":")
        if kind not in {"gitdir", "gitdir/i"} or self.git_folder is None or not pattern:
            return False
        if pattern.startswith("./"):
            pattern = f"{path.parent.resolve()}/{pattern[2:]}"
        pattern = expanded(pattern, self.home)
        pattern = pattern if pattern.startswith("/") else f"**/{pattern}"
        pattern += "**" if pattern.endswith("/") else ""
        fold = kind == "gitdir/i"
        places = self.git_folder.absolute(), self.git_folder.resolve()
        return any(_matches(pattern, str(place), ignore_case=fold) for place in places)


def _matches(pattern: str, path: str, *, ignore_case: bool) -> bool:
    wildcard = _WILDCARD.search(pattern)
    start = len(os.fsencode(pattern[: wildcard.start()])) if wildcard else len(os.fsencode(pattern))
    try:
        matched = expression(os.fsencode(pattern), start=start, ignore_case=ignore_case)
    except UnmatchableError:
        return False
    return re.fullmatch(matched, os.fsencode(path.lower() if ignore_case else path)) is not None


def expanded(path: str, home: str) -> str:
    """A path whose `~` is spelled out.

    Examples:
        >>> expanded("~/ignore", "/home/ann"), expanded("/etc/ignore", "/home/ann")
        ('/home/ann/ignore', '/etc/ignore')
    """
    if path == "~" or path.startswith("~/"):
        return home + path[1:]
    return os.path.expanduser(path)  # noqa: PTH111  of another user; Path would normalise what git does not


def parsed(data: bytes) -> Iterator[tuple[str, str, str, str]]:
    r"""Section, subsection, name and value of each setting, up to the first place that is no setting.

    Examples:
        >>> list(parsed(b'[core]\n\tignoreCase\n[remote "Mine"] url = "a;b" # why\n'))
        [('core', '', 'ignorecase', 'true'), ('remote', 'Mine', 'url', 'a;b')]
    """
    at, section, subsection = 3 if data.startswith(b"\xef\xbb\xbf") else 0, "", ""
    while True:
        blank = _BLANK.match(data, at)
        at = at if blank is None else blank.end()
        if at == len(data):
            return
        if opening := _SECTION.match(data, at):
            section, at = os.fsdecode(opening[1]).lower(), opening.end()
            subsection = os.fsdecode(re.sub(rb"\\(.)", rb"\1", opening[2] or b"", flags=re.DOTALL))
        elif (key := _KEY.match(data, at)) and section:
            value, at = _value(data, key.end()) if key[2] else (b"true", key.end())
            if value is None:
                return
            yield section, subsection, os.fsdecode(key[1]).lower(), os.fsdecode(value)
        else:
            return


def _value(data: bytes, at: int) -> tuple[bytes | None, int]:
    """A value up to the end of its line, and where that is; None where a quote is never closed."""
    value, blanks, quoted = b"", b"", False
    while at < len(data) and (data[at : at + 1] != b"\n" or quoted):
        piece = _PIECE.match(data, at)
        if piece is None:
            return None, at
        text = piece[0][:1] if quoted and piece[0][:1] in b"#;" else piece[0]
        at += len(text)
        if text == b'"':
            quoted = not quoted
        elif text.isspace() and not quoted:
            blanks += text if value else b""
        elif (text[:1] in b"#;" and not quoted) or (text[:1] == b"\\" and text.endswith(b"\n")):
            continue
        else:
            value += blanks + (_ESCAPES.get(text[1:], text[1:]) if text[:1] == b"\\" else text)
            blanks = b""
    return (None if quoted else value), at


def files_of_user(environment: Mapping[str, str]) -> tuple[Path, ...]:
    """Where the system and the user keep settings for all repositories, as git's own variables name them."""
    system: tuple[str, ...] = (environment.get("GIT_CONFIG_SYSTEM", _SYSTEM),)
    if environment.get("GIT_CONFIG_NOSYSTEM", "").lower() in {"1", "true", "yes", "on"}:
        system = ()
    if "GIT_CONFIG_GLOBAL" in environment:
        return tuple(map(Path, (*system, environment["GIT_CONFIG_GLOBAL"])))
    home = environment.get("HOME", "")
    return (*map(Path, system), user_folder(environment) / "config", *([Path(home) / ".gitconfig"] if home else []))


def user_folder(environment: Mapping[str, str]) -> Path:
    """The user's folder of settings and of rules for all repositories."""
    return Path(environment.get("XDG_CONFIG_HOME") or f"{environment.get('HOME', '')}/.config") / "git"


def is_true(value: str) -> bool:
    """Whether a setting is on."""
    return value.lower() in {"true", "yes", "on"} or (value.isdecimal() and int(value) != 0)
