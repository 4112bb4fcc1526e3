"""Entries of YAML by its indentation: no value is built, so aliases and anchors cost nothing."""

from __future__ import annotations

import re

from pipelines.chunking.configuration_entries import DEEPEST, Entry, Open, closed
from pipelines.chunking.splitting import decoded

_LINE = re.compile(rb"[^\n]*\n|[^\n]+")
_KEY = re.compile(
    rb"""(?P<indent>[ ]*)(?P<dashes>(?:-[ ]+)*-?(?=[ \r\n]|\Z)[ ]*|)"""
    rb"""(?P<key>"(?:[^"\\\n]|\\.){0,200}"|'[^'\n]{0,200}'|[^\s#\-\[\]{},&*!|>%@`"'?][^\n:]{0,200}?|-[^\s:][^\n:]{0,200}?)"""
    rb"""[ ]*:(?=[ \r\n]|\Z)(?P<value>[^\n]*)"""
)
_DASH = re.compile(rb"(?P<indent>[ ]*)-(?=[ \r\n]|\Z)(?P<value>[^\n]*)")
_BLOCK = re.compile(rb"(?:[&!][^\s]*[ ]+)*[|>][-+0-9]*[ \t]*(?:#[^\n]*)?\Z")
_NAME = re.compile(rb"[ ]*(?:-[ ]+)?(?:name|id|key|title|uses)[ ]*:[ ]*[\"']?(?P<name>[^\n\"'#]{1,80})", re.MULTILINE)
_DOCUMENT = re.compile(rb"---(?=[ \r\n]|\Z)|\.\.\.[ \r]*(?:\n|\Z)")
_NAMED_WITHIN = 400  # bytes at the beginning of an item that may tell its name
_LONGEST_SCALAR = 2_000  # lines of a quoted or bracketed value


def yaml_documents(source: bytes) -> list[Entry]:
    """The documents of a stream, in order; each holds its keys, or its items where it is a list."""
    starts = [0]
    contents: list[list[Open]] = [[]]
    reader = _Reader(source)
    for line in _LINE.finditer(source):
        if _DOCUMENT.match(line.group()) and reader.outside(line.start()):
            if source[starts[-1] : line.start()].strip() and contents[-1]:
                starts.append(line.start() if line.group().startswith(b"---") else line.end())
                contents.append([])
            reader.reset(line.end())
            continue
        reader.take(line, contents[-1])
    ends = [*starts[1:], len(source)]
    return [
        Entry(start, end, start, "", tuple(closed(content, end)), container=True)
        for start, end, content in zip(starts, ends, contents, strict=True)
        if content
    ]


def yaml_entries(source: bytes) -> list[Entry]:
    r"""Keys of a single document; the documents where there are several.

    Examples:
        >>> [(each.key, [child.key for child in each.children]) for each in yaml_entries(b"a:\n  b: 1\n# on c\nc: 2\n")]
        [('a', ['b']), ('c', [])]
    """
    documents = yaml_documents(source)
    if len(documents) == 1:
        return list(documents[0].children)
    return documents


class _Reader:
    """Puts lines, one after the other, into entries."""

    def __init__(self, source: bytes) -> None:
        self._source = source
        self._open: list[tuple[int, Open]] = []
        self._pending: list[tuple[int, int]] = []  # place and column of the comments since the last entry
        self._block: int | None = None  # indentation of the key whose block of text is being read
        self._closing: list[bytes] = []  # what ends the value that goes on over lines
        self._lines = 0

    def reset(self, at: int) -> None:
        self._open.clear()
        self._pending, self._block, self._closing = [(at, 0)], None, []

    def outside(self, at: int) -> bool:
        """Whether no quoted value is open; a document may end anywhere else."""
        return at == 0 or not self._closing

    def take(self, line: re.Match[bytes], top: list[Open]) -> None:
        data, start = line.group(), line.start()
        text = data.strip()
        if self._continues(data, text):
            return
        if not text or text.startswith((b"#", b"%")):
            self._pending.append((start, len(data) - len(data.lstrip(b" ")) if text else 0))
            return
        found = _KEY.match(data)
        dash = _DASH.match(data) if found is None or found["dashes"] else None
        if dash is not None:
            self._add(top, start, 2 * len(dash["indent"]) + 1, None)
        elif found is not None:
            self._add(top, start, 2 * len(found["indent"]), decoded(found["key"].strip(b"\"'")))
        self._pending.clear()
        value = (found["value"] if found is not None else dash["value"] if dash is not None else b"").strip()
        self._note(value, len(data) - len(data.lstrip(b" ")), len(found["dashes"]) if found is not None else 0)

    def _continues(self, data: bytes, text: bytes) -> bool:
        if self._block is not None:
            if not text or len(data) - len(data.lstrip(b" ")) > self._block:
                return True
            self._block = None
        if self._closing:
            self._lines += 1
            self._closing = _unclosed(text, self._closing) if self._lines < _LONGEST_SCALAR else []
            return True
        return False

    def _note(self, value: bytes, indent: int, dashes: int) -> None:
        if _BLOCK.match(value):
            self._block = indent + dashes
        elif value[:1] in {b"{", b"[", b'"', b"'"}:
            self._closing, self._lines = _unclosed(value, []), 0

    def _add(self, top: list[Open], start: int, indent: int, key: str | None) -> None:
        while self._open and self._open[-1][0] >= indent:
            self._open.pop()
        if len(self._open) >= DEEPEST:
            return
        siblings = self._open[-1][1].children if self._open else top
        if self._open:
            self._open[-1][1].container = True
        name = key if key is not None else self._item(start, len(siblings))
        column = indent // 2
        # A comment further to the right goes on about what stands above it.
        above = next((place for place, at in self._pending if at <= column), start)
        entry = Open(above, start, name)
        siblings.append(entry)
        self._open.append((indent, entry))

    def _item(self, start: int, number: int) -> str:
        named = _NAME.match(self._source, start, start + _NAMED_WITHIN)
        return decoded(named["name"].strip()) if named else str(number)


_CLOSING = {ord("{"): b"}", ord("["): b"]"}


def _unclosed(text: bytes, closing: list[bytes]) -> list[bytes]:
    """What still has to come, innermost last, after more text of a quoted or bracketed value."""
    stack = list(closing)
    escaped = False
    for place, byte in enumerate(text):
        sign = bytes([byte])
        quote = stack[-1] if stack and stack[-1] in {b'"', b"'"} else None
        if escaped:
            escaped = False
        elif quote is not None:
            # Between single quotes a quote is written twice.
            escaped = byte == ord("\\") if quote == b'"' else text[place : place + 2] == b"''"
            if sign == quote and not escaped:
                stack.pop()
        elif sign in {b'"', b"'"}:
            stack.append(sign)
        elif byte in _CLOSING:
            stack.append(_CLOSING[byte])
        elif stack and sign == stack[-1]:
            stack.pop()
        if not stack:
            return []
    return stack
