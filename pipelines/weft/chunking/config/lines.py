"""Entries of configuration by its lines: of notations that no grammar reads, and of files it finds errors in (ING-9).

Lines of keys: each key stands in the first column, or in a section, and lines further to the right go on with it.
Lines of directives, a word and its values: blocks stand between `<VirtualHost …>` and `</VirtualHost>`, between
brackets, or further to the right than the line that opens them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from weft.chunking.config.outline import DEEPEST, Entry, closed, indent_of, unquoted
from weft.chunking.units.splitting import decoded

_LINE = re.compile(rb"[^\n]*\n|[^\n]+")
_ESCAPED = re.compile(rb"\\(?=[ :=#!])")
_REMARKS = (b"#", b";", b"//", b"/*", b"*", b"!")
_SECTION = re.compile(rb"[ \t]*\[\[?[ \t]*(?P<name>[^\]\n]{1,300}?)[ \t]*\]\]?[ \t]*(?:[#;][^\n]*)?\r?\n?\Z")
_ASSIGNED = re.compile(rb"[^\s=:{<]+[ \t]*(?:[:?+]?=|:(?=\s|$))")
_DIRECTIVE = re.compile(rb"</?[A-Za-z]|[^\s=:]+(?:[ \t]+[^\s=]|;?$)|[^\s{}]*[^{}]*\{$|\}")
_OPENS = re.compile(rb"(?P<name><(?!/)[^<>]*>?)$|(?P<head>[^{}(]*?)[ \t]*[{(][ \t]*(?:[#;].*|//.*)?$")
_WORD = re.compile(rb"(?P<head>[^{}]+?)[ \t]*\{.*\}[ \t;]*$|(?P<name>[^\s;]+|;)")
_WITHOUT = re.compile(rb"#+[ \t]?(?P<name>[a-z][\w.-]*[-_.\w])(?:[ \t]+\S+){1,3}$")
_LOOKED_AT = 32_768  # bytes of a file that tell what it is
_LONGEST_HEAD = 80  # characters of a line that names what is indented below it
_LEAST_REMARKS = 3  # lines of a remark that stands for itself between blank lines


@dataclass(frozen=True, slots=True)
class _Form:
    """How lines are read."""

    entry: re.Pattern[bytes]  # what begins an entry; its "name"
    head: re.Pattern[bytes] | None = None  # what begins a section, which holds all up to the next
    leading: re.Pattern[bytes] | None = None  # what is said of the entry below it, as a comment is
    comments: tuple[bytes, ...] = (b"#",)
    continues: bool = True  # whether a line goes on after a backslash
    blocks: bool = False  # whether these are directives
    text: re.Pattern[bytes] | None = None  # where keys hold those to the right of them: what ends a line before a text
    grouped: bool = False  # whether directives without a blank line between them are one entry: about one thing


_INI = _Form(
    re.compile(rb"[ \t]*(?P<name>(?:[^\s#;=:\[!\\]|\\.)(?:[^=:\n\\]|\\.){0,200}?(?=[ \t]*[=:])|\w[\w.-]*(?=\s*\Z))"),
    head=_SECTION,
    comments=(b"#", b";", b"!"),
    continues=False,
)
FORMS: Mapping[str, _Form] = {
    "directives": _Form(_WORD, comments=_REMARKS, blocks=True, grouped=True),
    "dockerfile": _Form(
        re.compile(rb"[ \t]*(?P<name>[A-Z]{2,20})(?=\s)"),
        head=re.compile(rb"[ \t]*FROM\s+(?:--\S+\s+)*(?:\S+\s+AS\s+)?(?P<name>\S+)", re.IGNORECASE),
    ),
    "gomod": _Form(_WORD, comments=(b"//",), blocks=True),
    "ini": _INI,
    "make": _Form(
        re.compile(rb"(?P<name>[^\s#:=][^#:=\n]{0,200}?)[ \t]*(?:::?(?!=)|[:?+!]?=)"),
        leading=re.compile(rb"\.[A-Z][A-Z_]+[ \t]*:(?!=)"),  # `.PHONY: clean` stands above the rule of that name
    ),
    "requirements": _Form(re.compile(rb"(?P<name>[A-Za-z0-9][\w.-]*|-[^\s]+)")),
    "toml": _INI,
    "yaml": _Form(
        re.compile(
            rb"""[ ]*(?:-[ ]+)*(?P<name>"(?:[^"\\\n]|\\.){0,200}"|'(?:[^'\n]|''){0,200}'"""
            rb"""|(?:[^\s#\-\[\]{},&*!|>%@`"'?:]|[-?:](?=\S))(?:[^\n:#]|:(?=\S)|(?<=\S)#){0,200}?)[ ]*:(?=\s|\Z)"""
        ),
        head=re.compile(rb"---(?P<name>)(?=\s|\Z)"),
        text=re.compile(rb"[|>][-+0-9]*\s*\Z"),
        continues=False,
    ),
}
"""By language; Dockerfiles, TOML and YAML have a grammar, and are read so where that finds errors."""


def is_of_directives(source: bytes) -> bool:
    r"""Whether most lines are a word and its values, without a sign between them; sections make it another notation.

    Examples:
        >>> is_of_directives(b"# a = b\nbind 127.0.0.1 -::1\nport 7\n"), is_of_directives(b"port = 7\nhost: a\n")
        (True, False)
    """
    texts = [line.strip() for line in source[:_LOOKED_AT].split(b"\n")]
    lines = [text for text in texts if text and not text.startswith(_REMARKS)]
    if any(_SECTION.match(line) for line in lines):
        return False
    assigned = sum(_ASSIGNED.match(line) is not None for line in lines)
    return sum(_DIRECTIVE.match(line) is not None for line in lines) - assigned > assigned


def entries_by_lines(source: bytes, language: str) -> list[Entry]:
    r"""Entries at the top of a source, in order.

    Examples:
        >>> [(entry.key, len(entry.children)) for entry in entries_by_lines(b"a 1\n\nb {\n  c 2\n}\n", "directives")]
        [('a', 0), ('b', 1)]
    """
    reader = _Reader(source, FORMS[language])
    for match in _LINE.finditer(source):
        reader.take(match.start(), match.group())
    return closed(reader.top, len(source))


class _Reader:
    """Puts lines, one after the other, into entries."""

    def __init__(self, source: bytes, form: _Form) -> None:
        self.top: list[Entry] = []
        self._source, self._form = source, form
        self._blocks: list[tuple[float, Entry]] = []  # each with its column, infinite where something closes it
        self._column = inf  # of the key whose value may go on
        self._pending: int | None = None  # where the comments above the next entry begin
        self._remarks: list[bytes] = []  # those since the last blank line
        self._continued = False
        self._apart = True  # whether a blank line, or the end of a block, stands before this one

    def take(self, start: int, line: bytes) -> None:
        form, text = self._form, line.strip()
        column = indent_of(line)
        if self._continued or (text and column > self._column):
            self._pending = None
        elif not text:
            if form.grouped and len(self._remarks) >= _LEAST_REMARKS and self._pending is not None and not self._blocks:
                without = _WITHOUT.match(self._remarks[-1])  # a directive that is not in force
                self.top.append(Entry(self._pending, self._pending, decoded(without["name"]) if without else ""))
                self._pending = None
            self._pending = start if self._pending is None and not form.blocks else self._pending
            self._remarks, self._apart = [], True
        elif text.startswith(form.comments) or (form.leading and form.leading.match(line)):
            self._pending = start if self._pending is None else self._pending
            self._remarks.append(text)
        else:
            closes = form.blocks and text.startswith((b"</", b"}", b")"))
            if not closes:
                lead = start if self._pending is None else self._pending
                (self._directive if form.blocks else self._key)(lead, start, line, column)
            elif self._blocks and self._blocks[-1][0] == inf:
                self._blocks.pop()
            self._pending, self._remarks, self._apart = None, [], closes
        within = self._continued and text.startswith(form.comments)  # a comment between lines of a command ends none
        self._continued = form.continues and (within or text.endswith(b"\\"))

    def _key(self, lead: int, start: int, line: bytes, column: int) -> None:
        form = self._form
        inside = bool(self.top) and self.top[-1].container
        if form.head and (head := form.head.match(line)):
            self.top.append(Entry(lead, start, decoded(head["name"]), container=True))
            self._blocks, self._column = [], inf
        elif (inside or form.text or not column) and (match := form.entry.match(line)):
            entry = Entry(lead, start, unquoted(_ESCAPED.sub(b"", match["name"])))
            while self._blocks and self._blocks[-1][0] >= match.start("name"):
                self._blocks.pop()
            siblings = self.top[-1].children if inside else self.top
            (self._blocks[-1][1].children if self._blocks else siblings).append(entry)
            if form.text and len(self._blocks) < DEEPEST:
                self._blocks.append((match.start("name"), entry))
            self._column = match.start("name") if form.text is None or form.text.search(line) else inf

    def _directive(self, lead: int, start: int, line: bytes, column: int) -> None:
        while self._blocks and column <= self._blocks[-1][0] < inf:
            self._blocks.pop()
        siblings = self._blocks[-1][1].children if self._blocks else self.top
        before, text = siblings[-1] if siblings else None, line.strip()
        opens = _OPENS.match(text)
        named = opens or self._form.entry.match(text)
        entry = Entry(lead, start, decoded(named[named.lastgroup or 0]) if named else "")
        if before is not None and text in {b"{", b"("}:
            self._open(before, inf)
        elif opens is not None or before is None or self._blocks:
            siblings.append(entry)
            if opens is not None:
                self._open(entry, inf)
        elif column > indent_of(above := self._source[before.at : self._source.find(b"\n", before.at)]):
            before.key = decoded(above.strip())[:_LONGEST_HEAD]
            self._open(before, indent_of(above))
            before.children.append(entry)
        elif self._form.grouped and self._pending is None and not self._apart and not before.container:
            before.children += [] if before.children else [Entry(start, before.at, before.key)]
            before.children.append(entry)
        else:
            siblings.append(entry)

    def _open(self, entry: Entry, column: float) -> None:
        entry.container = True
        if len(self._blocks) < DEEPEST:
            self._blocks.append((column, entry))
