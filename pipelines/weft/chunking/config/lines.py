"""Entries of configuration that no grammar reads, by its lines: INI, make, requirements, go.mod, directives (ING-9)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from weft.chunking.config.outline import DEEPEST, Entry, closed
from weft.chunking.units.splitting import decoded

_LINE = re.compile(rb"[^\n]*\n|[^\n]+")
_ESCAPED = re.compile(rb"\\(?=[ :=#!])")


@dataclass(frozen=True, slots=True)
class _Form:
    """A notation of keys in the first column, each with its value: lines further to the right go on with that."""

    entry: re.Pattern[bytes]  # what begins an entry; its "name"
    comments: tuple[bytes, ...] = (b"#",)
    head: re.Pattern[bytes] | None = None  # what begins a section, in which keys may stand to the right of it
    leading: re.Pattern[bytes] | None = None  # what is said of the entry below it, as a comment is
    continues: bool = True  # whether a line goes on after a backslash


_INI = _Form(
    re.compile(rb"[ \t]*(?P<name>(?:[^\s#;=:\[!\\]|\\.)(?:[^=:\n\\]|\\.){0,200}?)[ \t]*[=:]"),
    (b"#", b";", b"!"),
    re.compile(rb"[ \t]*\[\[?[ \t]*(?P<name>[^\]\n]{1,300}?)[ \t]*\]\]?[ \t]*(?:[#;][^\n]*)?\r?\n?\Z"),
    continues=False,
)
_MAKE = _Form(
    re.compile(rb"(?P<name>[^\s#:=][^#:=\n]{0,200}?)[ \t]*(?:::?(?!=)|[:?+!]?=)"),
    leading=re.compile(rb"\.[A-Z][A-Z_]+[ \t]*:(?!=)"),  # `.PHONY: clean` stands above the rule of that name
)
_REQUIREMENTS = _Form(re.compile(rb"(?P<name>[A-Za-z0-9][\w.-]*|-[^\s]+)"))

# What their grammars find errors in, or would crash on: the keys in the first column are told all the same.
_BROKEN_DOCKERFILE = _Form(
    re.compile(rb"[ \t]*(?P<name>[A-Za-z]{2,20})(?=\s)"),
    head=re.compile(rb"[ \t]*FROM\s+(?:--\S+\s+)*(?:\S+\s+AS\s+)?(?P<name>\S+)", re.IGNORECASE),
)
_BROKEN_YAML = _Form(
    re.compile(rb"[\"']?(?P<name>[^\s#&!|>\[\]{}?%\"'-][^:#\n]*?)[\"']?[ \t]*:(?=\s)"),
    head=re.compile(rb"---(?P<name>)(?=\s)"),
    continues=False,
)


def _keyed(form: _Form, source: bytes) -> list[Entry]:
    """Sections and keys; comments and blank lines go with what stands below them."""
    top: list[Entry] = []
    column: int | None = None  # of the key whose value may go on
    pending: int | None = None  # where the comments above the next entry begin
    continued = False
    for match in _LINE.finditer(source):
        line, start = match.group(), match.start()
        text, indent = line.strip(), _indent(line)
        if continued or (text and column is not None and indent > column):
            pending = None
        elif not text or text.startswith(form.comments) or (form.leading and form.leading.match(line)):
            pending = start if pending is None else pending
        else:
            lead, pending = start if pending is None else pending, None
            inside = bool(top) and top[-1].container
            if form.head and (head := form.head.match(line)):
                top.append(Entry(lead, start, decoded(head["name"]), container=True))
                column = None
            elif (inside or not indent) and (entry := form.entry.match(line)):
                (top[-1].children if inside else top).append(
                    Entry(lead, start, decoded(_ESCAPED.sub(b"", entry["name"])))
                )
                column = indent
        continued = form.continues and text.endswith(b"\\")
    return closed(top, len(source))


def _indent(line: bytes) -> int:
    return len(line) - len(line.lstrip(b" \t"))


# Directives: a word and its values on a line, and blocks of such lines. A block stands between `<VirtualHost …>` and
# `</VirtualHost>`, between brackets, or further to the right than the line that opens it.

_REMARKS = (b"#", b";", b"//", b"/*", b"*", b"!")
_SECTION = re.compile(rb"\[[^\]]+\]\s*(?:[#;].*)?$")
_ASSIGNED = re.compile(rb"[^\s=:{<]+[ \t]*(?:[:?+]?=|:(?=\s|$))")
_DIRECTIVE = re.compile(rb"</?[A-Za-z]|[^\s=:]+(?:[ \t]+[^\s=]|;?$)|[^\s{}]*[^{}]*\{$|\}")
_OPENS = re.compile(rb"(?P<name><(?!/)[^<>]*>?)$|(?P<head>[^{}]*?)[ \t]*[{(][ \t]*(?:[#;].*|//.*)?$")
_KEY = re.compile(rb"(?P<name>[^{}]+?)[ \t]*\{.*\}[ \t;]*$|(?P<word>\S+?);?(?:\s|$)")
_WITHOUT = re.compile(rb"#+[ \t]?(?P<name>[a-z][\w.-]*[-_.\w])(?:[ \t]+\S+){1,3}$")
_LOOKED_AT = 32_768  # bytes of a file that tell what it is
_LONGEST_HEAD = 80  # characters of a line that names what is indented below it
_LEAST_LINES = 3  # of a remark that stands for itself between blank lines


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


class _Directives:
    """Puts lines of directives, one after the other, into entries."""

    def __init__(self, source: bytes, *, grouped: bool) -> None:
        self.top: list[Entry] = []
        self._source = source
        self._grouped = grouped  # whether lines without a blank one between them are one entry: about one thing
        self._blocks: list[tuple[int | None, Entry]] = []  # each with its column where nothing closes it
        self._pending: int | None = None  # where the remarks above the next entry begin
        self._remarks: list[bytes] = []
        self._continued = False
        self._apart = True  # whether a blank line, or the end of a block, stands before this one

    def take(self, start: int, line: bytes) -> None:
        text = line.strip()
        if self._continued:
            self._continued = text.endswith(b"\\")
        elif not text:
            if len(self._remarks) >= _LEAST_LINES and self._pending is not None and not self._blocks:
                without = _WITHOUT.match(self._remarks[-1])  # a directive that is not in force
                self.top.append(Entry(self._pending, self._pending, decoded(without["name"]) if without else ""))
                self._pending = None
            self._remarks, self._apart = [], True
        elif text.startswith(_REMARKS):
            self._pending = start if self._pending is None else self._pending
            self._remarks.append(text)
        else:
            closes = text.startswith((b"</", b"}", b")"))
            if not closes:
                self._entry(start, text, _indent(line))
            elif self._blocks and self._blocks[-1][0] is None:
                self._blocks.pop()
            self._pending, self._remarks, self._apart = None, [], closes
            self._continued = text.endswith(b"\\")

    def _entry(self, start: int, text: bytes, column: int) -> None:
        while self._blocks and (within := self._blocks[-1][0]) is not None and column <= within:
            self._blocks.pop()
        siblings = self._blocks[-1][1].children if self._blocks else self.top
        before = siblings[-1] if siblings else None
        opens = _OPENS.match(text)
        named = opens or _KEY.match(text)
        key = decoded(named[named.lastgroup or 0]) if named else ""
        entry = Entry(start if self._pending is None else self._pending, start, key)
        if before is not None and text in {b"{", b"("}:
            self._open(before, None)
        elif opens is not None or before is None or self._blocks:
            siblings.append(entry)
            if opens is not None:
                self._open(entry, None)
        elif column > (above := _indent(self._source[before.at : before.at + _LONGEST_HEAD])):
            end = self._source.find(b"\n", before.at)
            before.key = decoded(self._source[before.at : end].strip())[:_LONGEST_HEAD]
            self._open(before, above)
            before.children.append(entry)
        elif self._grouped and self._pending is None and not self._apart and not before.container:
            before.children += [] if before.children else [Entry(start, before.at, before.key)]
            before.children.append(entry)
        else:
            siblings.append(entry)

    def _open(self, entry: Entry, column: int | None) -> None:
        entry.container = True
        if len(self._blocks) < DEEPEST:
            self._blocks.append((column, entry))


def _directive_entries(source: bytes, *, grouped: bool = True) -> list[Entry]:
    """Paragraphs of directives, and blocks with what they hold."""
    reader = _Directives(source, grouped=grouped)
    for match in _LINE.finditer(source):
        reader.take(match.start(), match.group())
    return closed(reader.top, len(source))


LINES: Mapping[str, Callable[[bytes], list[Entry]]] = {
    "directives": _directive_entries,
    "dockerfile": partial(_keyed, _BROKEN_DOCKERFILE),
    "gomod": partial(_directive_entries, grouped=False),
    "ini": partial(_keyed, _INI),
    "make": partial(_keyed, _MAKE),
    "requirements": partial(_keyed, _REQUIREMENTS),
    "toml": partial(_keyed, _INI),
    "yaml": partial(_keyed, _BROKEN_YAML),
}
"""Entries at the top of a source, in order, by its language."""
