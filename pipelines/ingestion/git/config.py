"""The few of git's settings that decide which files are a project's, read from files that may be hostile (ING-40)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pipelines.ingestion.git.pattern import UnmatchableError, expression
from pipelines.ingestion.git.safe_files import read_bounded

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


def settings_in(paths: Iterable[Path], git_folder: Path | None, home: str) -> dict[str, str]:
    """Settings by name in lower case, those of later files before those of earlier ones.

    A name without a value is true. A damaged file counts up to the damage.

    Args:
        git_folder: What conditions on the place of a repository look at; without one none of them holds.
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
