"""Entries of a configuration file by its grammar: keys with what they hold, and no value built (ING-9).

A query for each notation says which nodes are entries; aliases cost nothing, and no more than `DEEPEST` levels count.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from math import inf
from operator import itemgetter

from tree_sitter import Node, Parser, Query, QueryCursor
from tree_sitter_language_pack import get_language

from weft.chunking.units.splitting import decoded

DEEPEST = 12
"""Levels of nesting that are told apart; deeper ones belong to their ancestor."""


@dataclass(slots=True)
class Entry:
    """One key with its value, one table, stage, document or item; its end is known once what follows it is."""

    start: int  # Bytes: from the comments above it to where its next sibling, or what follows its parent, begins
    at: int  # where the entry itself begins, after those comments
    key: str
    container: bool = False  # whether its value holds others, rather than being a scalar or a list of scalars
    children: list[Entry] = field(default_factory=list)  # what stands in it, in order
    end: int = 0
    own: bool = False  # whether it is a unit of its own however short it is


def closed(entries: list[Entry], end: int) -> list[Entry]:
    """Entries with their ends: each runs to the next one, the last to `end`."""
    for entry in reversed(entries):
        entry.end, end = end, entry.start
        entry.container = entry.container or bool(entry.children)
        closed(entry.children, entry.end)
    return entries


QUERIES: Mapping[str, str] = {
    "dockerfile": """
        (from_instruction (image_spec) @key as: (image_alias)? @key) @head
        (source_file (_ ["ADD" "ARG" "CMD" "COPY" "ENTRYPOINT" "ENV" "EXPOSE" "HEALTHCHECK" "LABEL" "MAINTAINER"
            "ONBUILD" "RUN" "SHELL" "STOPSIGNAL" "USER" "VOLUME" "WORKDIR"] @key) @entry)
        (comment) @comment
    """,
    "json": """
        (document [(object "{" @open) (array "[" @open)])
        (pair key: (_) @key) @entry
        (array [(object) (array)] @item)
        (comment) @comment
    """,
    "toml": """
        (table . (_) @key) @head
        (table_array_element . (_) @key) @head
        (pair . (_) @key) @entry
        (array [(inline_table) (array)] @item)
        (comment) @comment
    """,
    "yaml": """
        (document) @head
        (block_mapping_pair key: (_) @key) @entry
        (flow_pair key: (_) @key) @entry
        (block_sequence_item) @item
        (flow_sequence (flow_node [(flow_mapping) (flow_sequence)]) @item)
        (document (flow_node [(flow_mapping "{" @open) (flow_sequence "[" @open)]))
        (comment) @comment
    """,
}
"""By language: an @entry with its @key, an @item of a list, and a @head, which holds what follows up to the next."""

_LEVELS_OF_NODES = 5 * DEEPEST  # YAML has five for one of its own
# The grammar of YAML keeps the columns of open blocks in 1,024 bytes, which are 253 levels, and crashes beyond. Two may
# begin in one column: a key's, and that of the items below it.
_TOO_DEEP = re.compile(rb"^[ \t?:-]{100}", re.MULTILINE)
_MOST_IN_ERROR = 2_000  # children: a query takes quadratic time in those of an error
_TEMPLATE = rb"|".join(
    rb"%b(?:(?!%b|%b).)*+%b" % (opening, opening, closing, closing)
    for opening, closing in ((rb"\{\{", rb"\}\}"), (rb"\{%", rb"%\}"), (rb"\{#", rb"#\}"), (rb"<%", rb"%>"))
)
_TEMPLATES_ALONE = re.compile(rb"^[ \t]*(?:(?:%b)[ \t]*)++\r?$" % _TEMPLATE, re.MULTILINE | re.DOTALL)
_FOREIGN = re.compile(_TEMPLATE + rb"|\xed[\xa0-\xbf][\x80-\xbf]", re.DOTALL)  # halves of surrogate pairs, too
_INK = re.compile(rb"[^\n]")
_QUOTED = re.compile(rb"'(?:[^'\n]|'')*+'|\"(?:[^\"\\\n]|\\.)*+\"")
_NAME = re.compile(rb"-[ ]+(?:name|id|key|title|uses)[ ]*:[ ]*[\"']?(?P<name>[^\n\"'#]+)")  # what tells of an item
_LONGEST_NAME = 80  # characters


def outline(source: bytes, language: str) -> list[Entry] | None:
    r"""Entries at the top of a source, in order; of YAML its documents. None where its grammar is of no use.

    Examples:
        >>> [(entry.key, [child.key for child in entry.children]) for entry in outline(b'{"a": {"b": 1}}', "json")]
        [('a', ['b'])]
    """
    root = _parsed(source, language)
    if root is None:
        return None
    cursor = QueryCursor(_grammar(language)[1])
    cursor.set_max_start_depth(_LEVELS_OF_NODES)
    marks = [
        (nodes[0].start_byte, -nodes[0].end_byte, role, captured.get("key", [None])[-1])
        for _, captured in cursor.matches(root)
        for role, nodes in captured.items()
        if role != "key"
    ]
    marks.sort(key=itemgetter(0, 1))
    reader = _Reader(source)
    for start, end, role, key in marks:
        reader.take(role, start, -end, key)
    # A document without a key is told with the one before it.
    return closed([entry for entry in reader.top if entry.key or entry.children], len(source))


@cache
def _grammar(language: str) -> tuple[Parser, Query]:
    grammar = get_language(language)
    return Parser(grammar), Query(grammar, QUERIES[language])


def _parsed(source: bytes, language: str) -> Node | None:
    """The tree of a source without errors but for commas, if need be without what is foreign to its notation."""
    if language == "yaml" and _TOO_DEEP.search(source):
        return None
    parser = _grammar(language)[0]
    root = parser.parse(source + b"\n").root_node
    if _is_wrong(root, source):
        root = parser.parse(_without_foreign(source) + b"\n").root_node
    # Of JSON the keys outside of errors hold: nothing depends on lines. An error in YAML takes half of them along.
    holds = language == "json" and not (root.is_error and root.child_count > _MOST_IN_ERROR)
    return root if holds or not _is_wrong(root, source) else None


def _is_wrong(root: Node, source: bytes) -> bool:
    waiting = [root] if root.has_error else []
    while waiting:
        node = waiting.pop()
        if node.is_missing or (node.is_error and source[node.start_byte : node.end_byte].strip(b", \t\r\n")):
            return True
        waiting += [child for child in node.children if child.has_error]
    return False


def _without_foreign(source: bytes) -> bytes:
    """The same, every place where it was: with blanks for templates that have lines of their own, else with letters."""
    source = _TEMPLATES_ALONE.sub(lambda match: _INK.sub(b" ", match.group()), source)
    source = _FOREIGN.sub(lambda match: _INK.sub(b"x", match.group()), source)
    return source.replace(b"\\\r\n", b" \\\n")  # where the grammar of Dockerfiles sees no line that goes on


class _Reader:
    """Puts nodes, in order, into entries."""

    def __init__(self, source: bytes) -> None:
        self.top: list[Entry] = []
        self._source = source
        self._open: list[tuple[float, Entry]] = []  # each with where it ends
        self._upto = -1  # where the last that was read ends: what follows is said of the next
        self._comments: dict[int, int] = {}  # where each begins, by where it ends

    def take(self, role: str, start: int, end: int, key: Node | None) -> None:
        while self._open and (self._open[-1][0] <= start or role == "head"):
            self._upto = max(self._upto, self._content_end(int(min(self._open.pop()[0], start))))
        if role == "comment":
            self._comments[end] = start
        elif role == "open":
            self._upto = end
        elif len(self._open) <= DEEPEST:
            self._open.append((inf if role == "head" else end, self._entry(role, start, key)))
            self._upto = max(self._upto, start + 1 if key is None else key.end_byte)

    def _content_end(self, end: int) -> int:
        """Where what ends at `end` ends without the comments there, which are said of what follows."""
        while end and (self._source[end - 1 : end].isspace() or end in self._comments):
            end = self._comments.get(end, end - 1)
        return end

    def _entry(self, role: str, start: int, key: Node | None) -> Entry:
        source, upto = self._source, self._upto
        line = source.rfind(b"\n", 0, start) + 1
        at = start if source[line:start].strip(b"-? \t") else line
        lead = 0 if upto < 0 else source.find(b"\n", upto, at) + 1 or at
        # A comment further to the right goes on about what is above it.
        while (stop := source.find(b"\n", lead, at)) >= 0 and indent_of(source[lead:stop]) > start - at:
            lead = stop + 1
        within = self._open[-1][1] if self._open else None
        if within is not None and within.at == at == line:
            lead = within.start  # on the line of the item that it stands in
        siblings = self.top if within is None else within.children
        name = "" if key is None else unquoted(source[key.start_byte : key.end_byte])
        if role == "item":
            match = _NAME.match(source, start)
            name = decoded(match["name"])[:_LONGEST_NAME].strip() if match else str(len(siblings))
        siblings.append(Entry(lead, at, name, role == "head"))
        return siblings[-1]


def indent_of(line: bytes) -> int:
    """The column in which a line begins."""
    return len(line) - len(line.lstrip(b" \t"))


def unquoted(text: bytes) -> str:
    """A key as it is written, without the quotes around it."""
    name = text.split(b"\n", 1)[0]
    if _QUOTED.fullmatch(name):
        name = name[1:-1].replace(b"''", b"'") if name[:1] == b"'" else name[1:-1]
    return decoded(name)[: 3 * _LONGEST_NAME]
