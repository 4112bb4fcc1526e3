"""Entries of configuration whose structure is in its lines: TOML, INI, Dockerfiles, go.mod, make and their kin."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from weft.chunking.config.entries import LINE, Entry, Open, Scanner, closed
from weft.chunking.units.splitting import decoded

_INI_SECTION = re.compile(rb"[ \t]*\[\[?[ \t]*(?P<name>[^\]\n]{1,300}?)[ \t]*\]\]?[ \t]*(?:[#;][^\n]*)?\r?\n?\Z")
_TOML_NAME = rb"""(?P<name>(?:[\w-]|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+'|[ \t]*+\.[ \t]*+){1,200})[ \t]*"""
_TOML_TABLE = re.compile(rb"[ \t]*\[\[?[ \t]*" + _TOML_NAME + rb"\]\]?[ \t]*(?:#[^\n]*)?\r?\n?\Z")
_TOML_KEY = re.compile(rb"[ \t]*" + _TOML_NAME + rb"=[ \t]*(?P<value>[^\n]*)")
_TOML_TOKEN = re.compile(
    rb"""\"{3}|'{3}|(?P<bracket>[\[\]{}])|"(?:[^"\\\n]|\\.)*+"?|'[^'\n]*+'?|\#[^\n]*|[^"'\#\[\]{}]+"""
)
_TOML_REST = {
    b'"""': re.compile(rb'(?:[^"\\]|\\.?|"{1,2}(?!"))*+(?P<ended>"{3,5})?', re.DOTALL),
    b"'''": re.compile(rb"(?:[^']|'{1,2}(?!'))*+(?P<ended>'{3,5})?"),
}
"""Of a text that goes on over lines, by the quotes before it."""
_INI_KEY = re.compile(rb"[ \t]*(?P<name>(?:[^\s#;=:\[!\\]|\\.)(?:[^=:\n\\]|\\.){0,200}?)[ \t]*[=:]")
_ESCAPED = re.compile(rb"\\(?=[ :=#!])")
_DOCKER_STAGE = re.compile(rb"[ \t]*FROM\s+(?:--\S+\s+)*(?P<image>\S+)(?:\s+AS\s+(?P<name>\S+))?", re.IGNORECASE)
_DOCKER_INSTRUCTION = re.compile(rb"[ \t]*(?P<name>[A-Za-z]{2,20})(?=\s)")
_HEREDOC = re.compile(rb"<<[-~]?[\"']?(?P<end>\w+)[\"']?")
_GOMOD_DIRECTIVE = re.compile(rb"(?P<name>[a-z]{2,20})\b(?P<rest>[^\n]*)")
_MAKE_RULE = re.compile(rb"(?P<name>[^\s#:=][^#:=\n]{0,200}?)[ \t]*(?:::?(?!=)|[:?+!]?=)")
_HCL_BLOCK = re.compile(rb"(?P<name>[A-Za-z_][^\s{=]*(?:[ \t]+\"[^\"\n]*\")*)")
_REQUIREMENT = re.compile(rb"(?P<name>[A-Za-z0-9][\w.-]*|-[^\s]+)")
_LONGEST_VALUE = 2_000  # lines


class _Continuation(Protocol):
    """Which lines belong to the entry before them."""

    def goes_on(self, line: bytes, /) -> bool:
        """Whether a line belongs to the entry before it."""

    def begin(self, line: bytes, opened: re.Match[bytes] | None, /) -> None:
        """Note what a line leaves open that begins a table, an entry, or neither."""


@dataclass(frozen=True, slots=True)
class _Notation:
    """How a notation is read."""

    comments: bytes  # signs at the beginning of a line that says nothing
    entry: re.Pattern[bytes]  # what begins an entry; its "name"
    continuation: Callable[[], _Continuation]
    # what opens a table, which holds the entries after it; its last group is its name
    table: re.Pattern[bytes] | None = None
    first_column: bool = False  # whether entries outside tables begin in the first column
    named: Callable[[bytes], str] = decoded  # A key, from its bytes
    table_named: Callable[[bytes], str] = decoded  # the name of a table, from its bytes


def _scanned(notation: _Notation, source: bytes) -> list[Entry]:
    top: list[Open] = []
    open_value = notation.continuation()
    for start, line, pending in _content(source, notation.comments, open_value.goes_on):
        table = notation.table.match(line) if notation.table is not None else None
        entry = notation.entry.match(line) if table is None else None
        inside = bool(top) and top[-1].container
        if notation.first_column and not inside and _indent(line):
            entry = None
        if table is not None:
            top.append(Open(pending, start, notation.table_named(table[table.lastgroup or 0]), container=True))
        elif entry is not None:
            (top[-1].children if inside else top).append(Open(pending, start, notation.named(entry["name"])))
        open_value.begin(line, table or entry)
    return closed(top, len(source))


def _content(source: bytes, comments: bytes, goes_on: Callable[[bytes], bool]) -> Iterator[tuple[int, bytes, int]]:
    """Lines that say something: where each begins, itself, and where the comments and blanks above it begin."""
    pending: int | None = None
    for match in LINE.finditer(source):
        line, start = match.group(), match.start()
        text = line.strip()
        if goes_on(line):
            pending = None
        elif not text or text[0] in comments:
            pending = start if pending is None else pending
        else:
            yield start, line, start if pending is None else pending
            pending = None


class _TomlValue:
    """A quoted or bracketed value that goes on over lines."""

    def __init__(self) -> None:
        self._quote: bytes | None = None
        self._depth = 0
        self._lines = 0

    def begin(self, _line: bytes, opened: re.Match[bytes] | None) -> None:
        if opened is not None and opened.re is _TOML_KEY:
            self._lines = 0
            self._read(opened["value"])

    def goes_on(self, line: bytes) -> bool:
        if self._quote is None and not self._depth:
            return False
        self._lines += 1
        if self._lines > _LONGEST_VALUE:
            self._quote, self._depth = None, 0
        else:
            self._read(line)
        return True

    def _read(self, text: bytes) -> None:
        at = 0
        while at < len(text):
            token = (_TOML_TOKEN if self._quote is None else _TOML_REST[self._quote]).match(text, at)
            if token is None:
                return
            if self._quote is not None:
                self._quote = self._quote if token["ended"] is None else None
            elif token.group() in _TOML_REST:
                self._quote = token.group()
            elif token["bracket"]:
                self._depth = max(0, self._depth + (1 if token["bracket"] in b"[{" else -1))
            at = token.end()


class _IniValue:
    """A value that goes on over lines further to the right than its key, comments and brackets among them."""

    def __init__(self) -> None:
        self._column: int | None = None

    def begin(self, line: bytes, opened: re.Match[bytes] | None) -> None:
        if opened is not None:
            self._column = _indent(line) if opened.re is _INI_KEY else None

    def goes_on(self, line: bytes) -> bool:
        return self._column is not None and _indent(line) > self._column and bool(line.strip())


def _indent(line: bytes) -> int:
    return len(line) - len(line.lstrip(b" \t"))


class _Script:
    """Commands that go on after a backslash at the end of a line, or up to a word (here-documents)."""

    def __init__(self) -> None:
        self._continued = False
        self._until: bytes | None = None
        self._lines = 0

    def begin(self, line: bytes, _opened: re.Match[bytes] | None) -> None:
        self._lines = 0
        self._read(line)

    def goes_on(self, line: bytes) -> bool:
        if self._until is not None:
            self._lines += 1
            if line.strip() == self._until or self._lines > _LONGEST_VALUE:
                self._until = None
            return True
        if not self._continued:
            return False
        if not line.lstrip().startswith(b"#"):  # a comment between the lines of a command does not end it
            self._read(line)
        return True

    def _read(self, line: bytes) -> None:
        text = line.rstrip()
        self._continued = text.endswith(b"\\")
        here = _HEREDOC.search(text)
        self._until = here["end"] if here is not None else None


def _gomod_entries(source: bytes) -> list[Entry]:
    """Directives; those with a block in parentheses hold its lines."""
    top: list[Open] = []
    inside = False
    for start, line, pending in _content(source, b"/", lambda _line: False):
        text = line.strip()
        directive = None if inside else _GOMOD_DIRECTIVE.match(line)
        if inside and text != b")":
            top[-1].children.append(Open(pending, start, decoded(text.split()[0])))
        elif directive is not None:
            inside = directive["rest"].strip().endswith(b"(")
            top.append(Open(pending, start, decoded(directive["name"]), container=inside))
        inside = inside and text != b")"
    return closed(top, len(source))


def _toml_name(name: bytes) -> str:
    """A key as it is written, without the quotes around it where it is of one part."""
    quoted = _TOML_TOKEN.fullmatch(name) is not None and name[:1] in {b'"', b"'"}
    return decoded(name[1:-1] if quoted else name)


_NOTATIONS = {
    "dockerfile": _Notation(
        b"#", _DOCKER_INSTRUCTION, _Script, _DOCKER_STAGE, named=lambda name: decoded(name).upper()
    ),
    "hcl": _Notation(b"#", _HCL_BLOCK, _Script),
    "ini": _Notation(
        b"#;!",
        _INI_KEY,
        _IniValue,
        _INI_SECTION,
        first_column=True,
        named=lambda name: decoded(_ESCAPED.sub(b"", name)),
    ),
    "make": _Notation(b"#", _MAKE_RULE, _Script),
    "requirements": _Notation(b"#", _REQUIREMENT, _Script),
    "toml": _Notation(b"#", _TOML_KEY, _TomlValue, _TOML_TABLE, named=_toml_name, table_named=_toml_name),
}
LINE_SCANNERS: Mapping[str, Scanner] = {
    "gomod": _gomod_entries,
    **{language: partial(_scanned, notation) for language, notation in _NOTATIONS.items()},
}
"""By language; lines of a recipe or a script belong to the rule or the instruction before them."""
