"""Entries of YAML by its indentation: no value is built, so aliases and anchors cost nothing."""

from __future__ import annotations

import re

from weft.chunking.config.entries import DEEPEST, LINE, Entry, Open, closed, entries_within
from weft.chunking.units.splitting import decoded

_KEY = re.compile(
    rb"""(?P<indent>[ ]*)(?P<dashes>(?:-[ ]+)*-?(?=[ \r\n]|\Z)[ ]*|)"""
    rb"""(?P<key>"(?:[^"\\\n]|\\.){0,200}"|'(?:[^'\n]|''){0,200}'"""
    # What would mean something else before a blank belongs to the key before anything else.
    rb"""|(?:[^\s#\-\[\]{},&*!|>%@`"'?:]|[-?:](?=\S))(?:[^\n:#]|:(?=\S)|(?<=\S)#){0,200}?)"""
    rb"""[ ]*:(?=[ \t\r\n]|\Z)(?P<value>[^\n]*)"""
)
_DASH = re.compile(rb"(?P<indent>[ ]*)(?P<dashes>(?:-[ ]+)*)-(?=[ \r\n]|\Z)(?P<value>[^\n]*)")
_PROPERTIES = re.compile(rb"\A(?:[&!][^\s]*(?:[ ]+|\Z))+")
_BLOCK = re.compile(rb"[|>][-+0-9]*[ \t]*(?:#[^\n]*)?\Z")
_NAME = re.compile(rb"[ ]*(?:-[ ]+)?(?:name|id|key|title|uses)[ ]*:[ ]*[\"']?(?P<name>[^\n\"'#]{1,80})", re.MULTILINE)
_DOCUMENT = re.compile(rb"---(?=[ \r\n]|\Z)|\.\.\.[ \r]*(?:\n|\Z)")
_BEFORE_BRACES = re.compile(rb"(?:[ \t]*(?:#[^\n]*)?\r?\n|---(?=[ \r\n]))*+[ \t]*(?=\{(?![{%#]))")
_FLOW_TOKEN = re.compile(
    rb"""\"(?:[^"\\]|\\[\s\S])*+"?|'(?:[^']|'')*+'?|(?<!\S)\#[^\n]*|[{}\[\],]"""
    # A colon parts a key from its value before a blank, and behind quotes; elsewhere it belongs to a plain scalar.
    rb"""|:(?=[\s{}\[\],]|\Z)|(?<=["']):|[&!*][^\s,{}\[\]]*+"""
    # A plain scalar goes on over lines: what stands first in the next one is text, a quote, too.
    rb"""|[^\s{}\[\],](?:[^\n{}\[\],:\#]|:(?![\s{}\[\],]|\Z)|(?<=\S)\#|\n\s*+(?![\s{}\[\],\#]|:[\s{}\[\],]|\Z))*+"""
)
_NO_STRUCTURE = (b"#", b"&", b"!", b"*")  # comments, and what is said of a node or stands for one
_DEEPER = {b"{": 1, b"[": 1, b"}": -1, b"]": -1}
_NOTHING = re.compile(rb"(?:\s|\#[^\n]*|\.\.\.(?=\s|\Z))*+")
_NAMED_WITHIN = 400  # bytes at the beginning of an item that may tell its name
_LONGEST_SCALAR = 2_000  # lines of a quoted or bracketed value


def yaml_documents(source: bytes) -> list[Entry]:
    """The documents of a stream, in order; each holds its keys, or its items where it is a list."""
    starts = [0]
    contents: list[list[Open]] = [[]]
    reader = _Reader(source)
    for line in LINE.finditer(source):
        if _DOCUMENT.match(line.group()) and reader.outside(line.start()):
            if source[starts[-1] : line.start()].strip() and contents[-1]:
                starts.append(line.start() if line.group().startswith(b"---") else line.end())
                contents.append([])
            reader.reset(line.end())
            continue
        reader.take(line, contents[-1])
    if len(starts) > 1 and not contents[-1]:  # without a key it is told with the document before it
        del starts[-1], contents[-1]
    ends = [*starts[1:], len(source)]
    return [
        Entry(start, end, start, "", tuple(closed(content, end)), container=True)
        for start, end, content in zip(starts, ends, contents, strict=True)
        if content
    ]


def yaml_entries(source: bytes) -> list[Entry]:
    """Keys of a single document; the documents where there are several."""
    if (flow := _flow_entries(source)) is not None:
        return flow
    documents = yaml_documents(source)
    if len(documents) == 1:
        return list(documents[0].children)
    return documents


def _flow_entries(source: bytes) -> list[Entry] | None:
    r"""Keys of a document that is one mapping in braces; None where it is anything else, such as a template.

    Examples:
        >>> [(entry.key, [child.key for child in entry.children]) for entry in yaml_entries(b"{a: 1, 'b': {c: x:2}}\n")]
        [('a', []), ('b', ['c'])]
    """
    if (before := _BEFORE_BRACES.match(source)) is None:
        return None
    depth = 0
    for token in _FLOW_TOKEN.finditer(source, before.end()):
        depth += _DEEPER.get(token.group(), 0)
        if not depth:
            break
    else:
        return None
    if _NOTHING.fullmatch(source, token.end()) is None:
        return None
    return entries_within(source, _FLOW_TOKEN, _NO_STRUCTURE, lambda name: _name(name.strip()))


class _Reader:
    """Puts lines, one after the other, into entries."""

    def __init__(self, source: bytes) -> None:
        self._source = source
        self._open: list[tuple[int, Open]] = []
        self._pending: list[tuple[int, int]] = []  # place and column of the comments since the last entry
        self._block: int | None = None  # indentation of the key whose block of text is being read
        self._plain: int | None = None  # indentation of the key whose unquoted value may go on
        self._awaiting: int | None = None  # indentation of the key whose value may begin on the next line
        self._closing: list[bytes] = []  # what ends the value that goes on over lines
        self._lines = 0

    def reset(self, at: int) -> None:
        self._open.clear()
        self._pending, self._closing = [(at, 0)], []
        self._block = self._plain = self._awaiting = None

    def outside(self, at: int) -> bool:
        """Whether no quoted value is open; a document may end anywhere else."""
        return at == 0 or not self._closing

    def take(self, line: re.Match[bytes], top: list[Open]) -> None:
        data, start = line.group(), line.start()
        text = data.strip()
        if self._continues(data, text):
            return
        if not text or text.startswith((b"#", b"%")):
            self._pending.append((start, _indent(data) if text else 0))
            return
        key = _KEY.match(data)
        dash = _DASH.match(data) if key is None or key["dashes"] else None
        if dash is not None:
            self._add(top, start, 2 * len(dash["indent"]) + 1, None)
        elif key is not None:
            self._add(top, start, 2 * len(key["indent"]), _name(key["key"]))
        self._pending.clear()
        innermost = key or dash
        if innermost is not None:
            self._note(innermost["value"].strip(), len(innermost["indent"]) + len(innermost["dashes"]))
        elif self._awaiting is not None and _indent(data) > self._awaiting and text[:1] not in {b"{", b"["}:
            self._note(text, self._awaiting)

    def _continues(self, data: bytes, text: bytes) -> bool:
        indent = _indent(data)
        if self._block is not None:
            if not text or indent > self._block:
                return True
            self._block = None
        if self._plain is not None and text:
            if indent > self._plain and not text.startswith(b"#"):
                self._pending.clear()
                return True
            self._plain = None
        if self._closing:
            self._lines += 1
            self._closing = _unclosed(text, self._closing) if self._lines < _LONGEST_SCALAR else []
            return True
        return False

    def _note(self, value: bytes, column: int) -> None:
        """Note what a value leaves open on its first line; `column` is that of its key, or of the innermost dash."""
        content = _PROPERTIES.sub(b"", value)
        self._awaiting = None
        if not content or content.startswith(b"#"):
            self._awaiting = column
        elif _BLOCK.match(content):
            self._block = column
        elif content[:1] in _CLOSING:
            self._closing, self._lines = _unclosed(content, []), 0
        else:
            self._plain = column

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


def _name(key: bytes) -> str:
    """A key as it is written, without the quotes around it."""
    if key.startswith(b"'"):
        return decoded(key[1:-1].replace(b"''", b"'"))
    return decoded(key[1:-1] if key.startswith(b'"') else key)


def _indent(line: bytes) -> int:
    return len(line) - len(line.lstrip(b" "))


_PLAIN = b"plain"
_CLOSING = {b"{": b"}", b"[": b"]", b'"': b'"', b"'": b"'"}
_FLOW = re.compile(
    rb"""[ \t]*(?:(?P<open>[{\["'])|(?P<close>[}\]])|(?P<comment>\#.*)|[,:]|\?(?=[ ])"""
    rb"""|[&!*][^\s,{}\[\]]*|(?P<plain>[^ \t]))"""
)
_REST = {
    b'"': re.compile(rb'(?:[^"\\]|\\.?)*+(?P<ended>")?', re.DOTALL),
    b"'": re.compile(rb"(?:[^']|'')*+(?P<ended>')?"),  # a quote between single quotes is written twice
    # Quotes inside it mean themselves.
    _PLAIN: re.compile(rb"(?:[^,{}\[\]:\#]|:(?![\s,{}\[\]]|\Z)|(?<=\S)\#)*+(?P<ended>(?!\Z))?"),
}
"""By what is open, unless that is a bracket: what else belongs to it."""


def _unclosed(text: bytes, closing: list[bytes]) -> list[bytes]:
    """What still has to come, innermost last, after more text of a quoted or bracketed value."""
    stack, at = list(closing), 0
    while at < len(text) and (stack or not at):
        token = _REST.get(stack[-1] if stack else b"", _FLOW).match(text, at)
        if token is None:
            break  # only blanks are left
        match token.lastgroup:
            case "open":
                stack.append(_CLOSING[token["open"]])
            case "plain":
                stack.append(_PLAIN)
            case "close" if token["close"] == stack[-1]:
                stack.pop()
            case "ended":
                stack.pop()
        at = token.end()
    return stack
