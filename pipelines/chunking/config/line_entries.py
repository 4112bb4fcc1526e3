"""Entries of configuration whose structure is in its lines: TOML, INI, Dockerfiles, go.mod, make and their kin."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from pipelines.chunking.config.entries import Entry, Open, closed
from pipelines.chunking.units.splitting import decoded

_LINE = re.compile(rb"[^\n]*\n|[^\n]+")
_TABLE = re.compile(rb"[ \t]*\[\[?[ \t]*(?P<name>[^\]\n]{1,300}?)[ \t]*\]\]?[ \t]*(?:[#;][^\n]*)?\r?\n?\Z")
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
_STAGE = re.compile(rb"[ \t]*FROM\s+(?:--\S+\s+)*(?P<image>\S+)(?:\s+AS\s+(?P<name>\S+))?", re.IGNORECASE)
_INSTRUCTION = re.compile(rb"[ \t]*(?P<name>[A-Za-z]{2,20})(?=\s)")
_HEREDOC = re.compile(rb"<<[-~]?[\"']?(?P<end>\w+)[\"']?")
_DIRECTIVE = re.compile(rb"(?P<name>[a-z]{2,20})\b(?P<rest>[^\n]*)")
_RULE = re.compile(rb"(?P<name>[^\s#:=][^#:=\n]{0,200}?)[ \t]*(?:::?(?!=)|[:?+!]?=)")
_BLOCK = re.compile(rb"(?P<name>[A-Za-z_][^\s{=]*(?:[ \t]+\"[^\"\n]*\")*)")
_REQUIREMENT = re.compile(rb"(?P<name>[A-Za-z0-9][\w.-]*|-[^\s]+)")
_LONGEST_VALUE = 2_000  # lines

_Opens = list[Open]


def toml_entries(source: bytes) -> list[Entry]:
    r"""Keys before the first table, then tables with their keys.

    Examples:
        >>> [entry.key for entry in toml_entries(b"a = 1\n[b.c]\nd = 2\n[[e]]\n")]
        ['a', 'b.c', 'e']
    """
    top: _Opens = []
    value = _Value()
    for start, line, pending in _content(source, b"#", value.goes_on):
        table = _TOML_TABLE.match(line)
        key = _TOML_KEY.match(line)
        if table is not None:
            top.append(Open(pending, start, _toml_name(table["name"]), container=True))
        elif key is not None:
            holder = top[-1].children if top and top[-1].container else top
            holder.append(Open(pending, start, _toml_name(key["name"])))
            value.begin(key["value"])
    return closed(top, len(source))


def _toml_name(name: bytes) -> str:
    """A key as it is written, without the quotes around it where it is of one part."""
    quoted = _TOML_TOKEN.fullmatch(name) is not None and name[:1] in {b'"', b"'"}
    return decoded(name[1:-1] if quoted else name)


def ini_entries(source: bytes) -> list[Entry]:
    """Sections with their keys; keys alone where there are no sections, as in properties."""
    top: _Opens = []
    value = _Hanging()
    for start, line, pending in _content(source, b"#;!", value.goes_on):
        section = _TABLE.match(line)
        key = _INI_KEY.match(line)
        sections = bool(top) and top[-1].container
        if section is not None:
            top.append(Open(pending, start, decoded(section["name"]), container=True))
            value.column = None
        elif key is not None and (sections or not _indent(line)):
            holder = top[-1].children if sections else top
            holder.append(Open(pending, start, decoded(_ESCAPED.sub(b"", key["name"]))))
            value.column = _indent(line)
    return closed(top, len(source))


def dockerfile_entries(source: bytes) -> list[Entry]:
    """Stages with their instructions; what stands before the first one is an entry for each instruction."""
    top: _Opens = []
    script = _Script()
    for start, line, pending in _content(source, b"#", script.goes_on):
        stage = _STAGE.match(line)
        instruction = _INSTRUCTION.match(line)
        if stage is not None:
            top.append(Open(pending, start, decoded(stage["name"] or stage["image"]), container=True))
        elif instruction is not None:
            holder = top[-1].children if top and top[-1].container else top
            holder.append(Open(pending, start, decoded(instruction["name"]).upper()))
        script.begin(line)
    return closed(top, len(source))


def gomod_entries(source: bytes) -> list[Entry]:
    """Directives; those with a block in parentheses hold its lines."""
    top: _Opens = []
    inside = False
    for start, line, pending in _content(source, b"/"):
        text = line.strip()
        directive = None if inside else _DIRECTIVE.match(line)
        if inside and text != b")":
            top[-1].children.append(Open(pending, start, decoded(text.split()[0])))
        elif directive is not None:
            block = directive["rest"].strip().endswith(b"(")
            top.append(Open(pending, start, decoded(directive["name"]), container=block))
            inside = block
        inside = inside and text != b")"
    return closed(top, len(source))


def make_entries(source: bytes) -> list[Entry]:
    """Rules and variables; the lines of a recipe belong to their rule."""
    return _outline(source, _RULE)


def hcl_entries(source: bytes) -> list[Entry]:
    """Blocks and attributes in the first column."""
    return _outline(source, _BLOCK)


def requirement_entries(source: bytes) -> list[Entry]:
    """A line for each requirement."""
    return _outline(source, _REQUIREMENT)


def _outline(source: bytes, pattern: re.Pattern[bytes]) -> list[Entry]:
    """What begins in the first column."""
    script = _Script()
    top: _Opens = []
    for start, line, pending in _content(source, b"#", script.goes_on):
        found = pattern.match(line)
        if found is not None:
            top.append(Open(pending, start, decoded(found["name"])))
        script.begin(line)
    return closed(top, len(source))


def _content(
    source: bytes, comments: bytes, goes_on: Callable[[bytes], bool] = lambda _line: False
) -> Iterator[tuple[int, bytes, int]]:
    """Lines that say something: where each begins, itself, and where the comments and blanks above it begin."""
    pending: int | None = None
    for match in _LINE.finditer(source):
        line, start = match.group(), match.start()
        text = line.strip()
        if goes_on(line):
            pending = None
        elif not text or text[0] in comments:
            pending = start if pending is None else pending
        else:
            yield start, line, start if pending is None else pending
            pending = None


class _Value:
    """A value of TOML that may go on over lines."""

    def __init__(self) -> None:
        self._quote: bytes | None = None
        self._depth = 0
        self._lines = 0

    def begin(self, text: bytes) -> None:
        """Note what a value's first line leaves open."""
        self._lines = 0
        self._read(text)

    def goes_on(self, line: bytes) -> bool:
        """Whether a line belongs to the value before it."""
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


class _Hanging:
    """A value of INI that goes on over lines further to the right than its key, comments and brackets among them."""

    def __init__(self) -> None:
        self.column: int | None = None

    def goes_on(self, line: bytes) -> bool:
        """Whether a line belongs to the value before it."""
        return self.column is not None and _indent(line) > self.column and bool(line.strip())


def _indent(line: bytes) -> int:
    return len(line) - len(line.lstrip(b" \t"))


class _Script:
    """Commands that go on after a backslash at the end of a line, or up to a word (here-documents)."""

    def __init__(self) -> None:
        self._continued = False
        self._until: bytes | None = None
        self._lines = 0

    def begin(self, line: bytes) -> None:
        """Note what a command's first line leaves open."""
        self._lines = 0
        self._read(line)

    def goes_on(self, line: bytes) -> bool:
        """Whether a line belongs to the command before it."""
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
