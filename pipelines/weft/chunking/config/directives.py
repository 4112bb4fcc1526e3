"""Configuration of directives: a word and its values on a line, and blocks of such lines (ING-9).

A block stands between `<VirtualHost …>` and `</VirtualHost>`, between braces, or further to the right than the line
that opens it. Lines without a blank one between them are one entry, with the comment above: they are about one thing.
"""

from __future__ import annotations

import re

from weft.chunking.config.entries import DEEPEST, LINE, Entry, Open, closed
from weft.chunking.units.splitting import decoded

_COMMENTS = (b"#", b";", b"//", b"/*", b"*", b"!")
_SECTION = re.compile(rb"\[[^\]]+\]\s*(?:[#;].*)?$")
_ASSIGNED = re.compile(rb"[^\s=:{<]+[ \t]*(?:[:?+]?=|:(?=\s|$))")
_DIRECTIVE = re.compile(rb"</?[A-Za-z]|[^\s=:]+(?:[ \t]+[^\s=]|;?$)|[^\s{}]*[^{}]*\{$|\}")
_OPENS = re.compile(rb"<(?!/)(?P<name>[^<>]*)>?$")
_BRACE = re.compile(rb"(?P<name>[^{}]*?)[ \t]*\{[ \t]*(?:[#;].*|//.*)?$")
_ONE_LINE = re.compile(rb"(?P<name>[^{}]+?)[ \t]*\{.*\}[ \t;]*$")
_WITHOUT = re.compile(rb"#+[ \t]?(?P<name>[a-z][\w.-]*[-_.\w])(?:[ \t]+\S+){1,3}$")
_LOOKED_AT = 32_768  # bytes of a file that tell what it is
_LONGEST_KEY = 80  # bytes of a line that names what is indented below it
_LEAST_LINES = 3  # of a remark that stands for itself between blank lines


def is_of_directives(source: bytes) -> bool:
    r"""Whether most lines are a word and its values, without a sign between them; sections make it another notation.

    Examples:
        >>> is_of_directives(b"# a = b\nbind 127.0.0.1 -::1\nport 7\n"), is_of_directives(b"port = 7\nhost: a\n")
        (True, False)
    """
    texts = [line.strip() for line in source[:_LOOKED_AT].split(b"\n")]
    lines = [text for text in texts if text and not text.startswith(_COMMENTS)]
    if any(_SECTION.match(line) for line in lines):
        return False
    assigned = sum(_ASSIGNED.match(line) is not None for line in lines)
    return sum(_DIRECTIVE.match(line) is not None for line in lines) - assigned > assigned


def directive_entries(source: bytes) -> list[Entry]:
    r"""Paragraphs of directives, and blocks with what they hold.

    Examples:
        >>> [(entry.key, len(entry.children)) for entry in directive_entries(b"a 1\n\n# Why.\nb {\n  c 2\n  d 3\n}\n")]
        [('a', 0), ('b', 2)]
    """
    reader = _Reader(source)
    for match in LINE.finditer(source):
        reader.take(match.start(), match.group())
    return closed(reader.top, len(source))


class _Reader:
    """Puts lines, one after the other, into entries."""

    def __init__(self, source: bytes) -> None:
        self.top: list[Open] = []
        self._source = source
        self._blocks: list[tuple[int | None, Open]] = []  # each with its column where nothing closes it
        self._pending: int | None = None  # where the remarks above the next entry begin
        self._remarks: list[bytes] = []
        self._continued = False
        self._apart = True  # whether a blank line, or the end of a block, stands before this one

    def take(self, start: int, line: bytes) -> None:
        text = line.strip()
        if self._continued:
            self._continued = text.endswith(b"\\")
        elif not text:
            self._blank()
        elif text.startswith(_COMMENTS):
            self._pending = start if self._pending is None else self._pending
            self._remarks.append(text)
        elif text.startswith((b"</", b"}")):
            if self._blocks and self._blocks[-1][0] is None:
                self._blocks.pop()
            self._next(apart=True)
        else:
            self._entry(start, text, len(line) - len(line.lstrip(b" \t")))
            self._next(apart=False)
            self._continued = text.endswith(b"\\")

    def _next(self, *, apart: bool) -> None:
        self._pending, self._remarks, self._apart = None, [], apart

    def _blank(self) -> None:
        if len(self._remarks) >= _LEAST_LINES and self._pending is not None and not self._blocks:
            self.top.append(Open(self._pending, self._pending, _commented_out(self._remarks)))
            self._pending = None
        self._remarks, self._apart = [], True

    def _entry(self, start: int, text: bytes, column: int) -> None:
        while self._blocks and (within := self._blocks[-1][0]) is not None and column <= within:
            self._blocks.pop()
        siblings = self._blocks[-1][1].children if self._blocks else self.top
        before = siblings[-1] if siblings else None
        entry = Open(start if self._pending is None else self._pending, start, _key(text))
        opens = _OPENS.match(text) or _BRACE.match(text)
        if before is not None and text == b"{":
            self._open(before, None)
        elif opens is not None:
            siblings.append(entry)
            self._open(entry, None)
        elif before is None or self._blocks:
            siblings.append(entry)
        elif column > (above := _column(self._source, before.at)):
            before.key = self._line(before.at)
            self._open(before, above)
            before.children.append(entry)
        elif self._pending is None and not self._apart and not before.container:
            before.children += [] if before.children else [Open(start, before.at, before.key)]
            before.children.append(entry)
        else:
            siblings.append(entry)

    def _line(self, at: int) -> str:
        """What a line says that opens a block."""
        return decoded(self._source[at : at + _LONGEST_KEY].split(b"\n", 1)[0].strip())

    def _open(self, entry: Open, column: int | None) -> None:
        entry.container = True
        if len(self._blocks) < DEEPEST:
            self._blocks.append((column, entry))


def _column(source: bytes, at: int) -> int:
    line = source[at : at + 200]
    return len(line) - len(line.lstrip(b" \t"))


def _key(text: bytes) -> str:
    """What an entry is called: the whole head of a block, the first word of another line."""
    if match := _OPENS.match(text):
        return decoded(match.group())
    if match := _BRACE.match(text) or _ONE_LINE.match(text):
        return decoded(match["name"])
    return decoded(text.split(None, 1)[0].rstrip(b";"))


def _commented_out(remarks: list[bytes]) -> str:
    """The directive that a remark ends with, which is not in force; nothing where it ends in prose."""
    match = _WITHOUT.match(remarks[-1])
    return decoded(match["name"]) if match else ""
