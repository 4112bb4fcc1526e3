"""Configuration files: the file, its keys, and the larger objects in them, by known schemas or by size (ING-9).

What they point to are images, packages, and files beside them (ING-14).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePosixPath
from typing import Protocol

from weft.chunking.config.directives import directive_entries
from weft.chunking.config.entries import LINE, Entry, Open, Scanner, closed, json_entries
from weft.chunking.config.yaml import yaml_documents, yaml_entries
from weft.chunking.prose.text import chunk_text
from weft.chunking.units.hierarchy import PATH_SEPARATOR, assemble, fitted
from weft.chunking.units.joining import joined
from weft.chunking.units.parsed import NamePositions, ParsedUnit, SourceFacts
from weft.chunking.units.splitting import ChunkSizes, Cuts, SizedText, TokenCounter, decoded
from weft.domain.chunks import Chunk
from weft.domain.documents import Document
from weft.domain.links import Link, LinkKind

# Entries of configuration whose structure is in its lines: TOML, INI, Dockerfiles, go.mod, make and their kin.

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
_MAKE_SPECIAL = re.compile(rb"\.[A-Z][A-Z_]+[ \t]*:(?!=)")  # `.PHONY: clean` stands above the rule of that name
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
    leading: re.Pattern[bytes] | None = None  # what is said of the entry below it, as a comment is
    first_column: bool = False  # whether entries outside tables begin in the first column
    named: Callable[[bytes], str] = decoded  # A key, from its bytes
    table_named: Callable[[bytes], str] = decoded  # the name of a table, from its bytes


def _scanned(notation: _Notation, source: bytes) -> list[Entry]:
    top: list[Open] = []
    open_value = notation.continuation()
    for start, line, pending in _content(source, notation.comments, open_value.goes_on, notation.leading):
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


def _content(
    source: bytes, comments: bytes, goes_on: Callable[[bytes], bool], leading: re.Pattern[bytes] | None = None
) -> Iterator[tuple[int, bytes, int]]:
    """Lines that say something: where each begins, itself, and where the comments and blanks above it begin."""
    pending: int | None = None
    for match in LINE.finditer(source):
        line, start = match.group(), match.start()
        text = line.strip()
        if goes_on(line):
            pending = None
        elif not text or text[0] in comments or (leading is not None and leading.match(line)):
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
    "ini": _Notation(
        b"#;!",
        _INI_KEY,
        _IniValue,
        _INI_SECTION,
        first_column=True,
        named=lambda name: decoded(_ESCAPED.sub(b"", name)),
    ),
    "make": _Notation(b"#", _MAKE_RULE, _Script, leading=_MAKE_SPECIAL),
    "requirements": _Notation(b"#", _REQUIREMENT, _Script),
    "toml": _Notation(b"#", _TOML_KEY, _TomlValue, _TOML_TABLE, named=_toml_name, table_named=_toml_name),
}
LINE_SCANNERS: Mapping[str, Scanner] = {
    "gomod": _gomod_entries,
    **{language: partial(_scanned, notation) for language, notation in _NOTATIONS.items()},
}
"""By language; lines of a recipe or a script belong to the rule or the instruction before them."""


_MOST_BYTES = 1_000_000  # of a file whose structure is looked for; what is larger holds data, and is cut into lines
_BYTES_PER_TOKEN = 32  # more than tokens of configuration have: what is longer than so many bytes need not be counted
_FILE = "file"
_REMARK = "remark"  # what no key stands below
_DEEPEST_LEVEL = 2

SCANNERS: Mapping[str, Scanner] = {
    **LINE_SCANNERS,
    "directives": directive_entries,
    "json": json_entries,
    "yaml": yaml_entries,
}
"""How each notation is read; others are cut into windows of lines."""

_PACKAGE_UNITS = {
    *("scripts", "dependencies", "devDependencies", "peerDependencies", "optionalDependencies"),
    *("require", "require-dev"),  # PHP's composer.json has the same form
}
_KIND = re.compile(rb"^kind:[ \t]*[\"']?(?P<kind>[A-Za-z]+)", re.MULTILINE)
_API = re.compile(rb"^apiVersion:", re.MULTILINE)
_METADATA_NAME = re.compile(
    rb"^metadata:[^\n]*\n(?:[ \t]+[^\n]*\n){0,20}?[ \t]+name:[ \t]*[\"']?(?P<name>[\w.-]+)", re.MULTILINE
)
_COMPOSE = re.compile(r"(?:docker-)?compose(?:[.-].*)?\.ya?ml\Z")
_LOOKED_AT = 4_000  # bytes of a document that tell what it is

_IMAGE = re.compile(rb"^[ \t-]*[\"']?image[\"']?[ \t]*:[ \t]*[\"']?(?P<name>[\w./:@${}-]{2,200})", re.MULTILINE)
_FROM = re.compile(rb"[ \t]*FROM\s+(?:--\S+\s+)*(?P<name>\S{1,200})", re.IGNORECASE)
_COPY = re.compile(rb"^[ \t]*(?:COPY|ADD)[ \t]+(?P<rest>[^\n]{1,500})", re.MULTILINE | re.IGNORECASE)
_PATH = re.compile(
    rb"(?<![\w./:@$~-])(?P<path>\.{0,2}/?(?:[\w-][\w.-]{0,80}/){1,12}[\w-][\w.-]{0,80}\.[A-Za-z]\w{0,7}|\./[\w./-]{1,200}+"
    rb"|[\w-]{1,60}\.(?:py|json|ya?ml|toml|md|sh|cfg|ini|env|tsx?|jsx?|txt))(?![\w/@-])"
)
_QUOTED = re.compile(rb"[\"'](?P<name>[A-Za-z0-9][\w.-]*)[^\"'\n]*[\"']")
_PACKAGE_KEYS = {
    *("dependencies", "devDependencies", "peerDependencies", "optionalDependencies", "require", "require-dev"),
    *("dev-dependencies", "build-dependencies", "packages", "dev-packages"),
}
_LISTS = {("project", "dependencies"), ("build-system", "requires")}
_SURE, _LIKELY = 0.9, 0.5


@dataclass(frozen=True, slots=True)
class _File:
    """What all steps on one document need."""

    text: SizedText
    kinds: str
    attributes: dict[str, str]

    def above(self, entry: Entry, limit: int) -> bool:
        """Whether an entry has more than `limit` tokens."""
        return entry.end - entry.start > limit * _BYTES_PER_TOKEN or not self.text.fits(entry.start, entry.end, limit)


def chunk_configuration(document: Document, sizes: ChunkSizes, count_tokens: TokenCounter) -> list[Chunk]:
    """Keys of a configuration file, and objects below them that are long; a short file stays whole."""
    text = SizedText(document.text, sizes, count_tokens)
    source, language = text.source, document.language or ""
    if language not in SCANNERS or len(source) > _MOST_BYTES:
        return chunk_text(document, sizes, count_tokens)
    schema = schema_of(document.uri, language, source)
    entries = entries_of(source, language, schema)
    file = _File(text, _KINDS.get(schema or "", "key"), {"schema": schema} if schema else {})
    whole = min(sizes.target_tokens if sizes.whole_tokens is None else sizes.whole_tokens, sizes.max_tokens)
    if text.fits(0, len(source), whole):
        units = [ParsedUnit(start=0, end=len(source), path=_FILE, kind=_FILE, level=0, attributes=file.attributes)]
    elif not entries:
        return chunk_text(document, sizes, count_tokens)
    else:
        units = joined(text, list(_units(file, entries)))
    facts = SourceFacts(
        defines=NamePositions.of([(entry.at, entry.key) for entry in entries if entry.key]),
        links=NamePositions.of(links_of(source, language, entries)),
    )
    return assemble(document, text, units, facts)


_KINDS = {
    "compose": "key",
    "dockerfile": "stage",
    "gomod": "block",
    "kubernetes": "resource",
    "pyproject": "table",
}


def _units(file: _File, entries: Sequence[Entry]) -> Iterator[ParsedUnit]:
    """The file's own unit, which names its keys, and those of its entries."""
    source, first = file.text.source, entries[0].start
    head = first if source[:first].strip() else source.find(b"\n", entries[0].at) + 1 or len(source)
    keys = ", ".join(dict.fromkeys(entry.key for entry in entries if entry.key))
    root = ParsedUnit(start=0, end=head, path=_FILE, kind=_FILE, level=0, context=keys, attributes=file.attributes)
    yield from _fitted(file, root, ())
    # What stands before the first key and is blank would be in no span.
    yield from _siblings(file, [replace(entries[0], start=min(first, head)), *entries[1:]])


def _siblings(file: _File, entries: Sequence[Entry]) -> Iterator[ParsedUnit]:
    """Entries at the top, the short ones together with their neighbours up to the target."""
    text, sizes = file.text, file.text.sizes
    together: list[Entry] = []
    for entry in entries:
        own = entry.own or any(child.own for child in entry.children)
        short = not own and not file.above(entry, sizes.min_tokens)
        if together and (not short or not text.fits(together[0].start, entry.end, sizes.target_tokens)):
            yield from _together(file, together)
            together = []
        if short:
            together.append(entry)
        else:
            yield from _entry(file, entry, ())
    if together:
        yield from _together(file, together)


def _together(file: _File, entries: Sequence[Entry]) -> Iterator[ParsedUnit]:
    if len(entries) == 1:
        yield from _entry(file, entries[0], ())
    else:
        unit = _unit(file, entries[0], ())
        unit = replace(unit, end=entries[-1].end, kind="keys", symbol=None, heading_path=())
        yield from _fitted(file, unit, entries)


def _entry(file: _File, entry: Entry, outer: tuple[str, ...]) -> Iterator[ParsedUnit]:
    """An entry whole, or what is left of it beside the objects in it that are units of their own."""
    unit, sizes = _unit(file, entry, outer), file.text.sizes
    nested = sizes.min_tokens if sizes.nested_tokens is None else sizes.nested_tokens
    apart = {child.start for child in entry.children if child.own or (child.container and file.above(child, nested))}
    if entry.own and not file.above(entry, sizes.max_tokens) and not any(child.own for child in entry.children):
        apart = set()
    if not apart:
        yield from _fitted(file, unit, entry.children)
        return
    inside = (*outer, entry.key)
    keys = ", ".join(dict.fromkeys(child.key for child in entry.children))
    start, rest = entry.start, list[Entry]()
    head = replace(unit, context="\n".join(filter(None, (unit.context, f"{PATH_SEPARATOR.join(inside)}: {keys}"))))
    for child in entry.children:
        if child.start in apart:
            if child.start > start:
                yield from _fitted(file, _rest(head, start, child.start, rest), rest)
            yield from _entry(file, child, inside)
            start, rest = child.end, []
        else:
            rest.append(child)
    if start < entry.end:
        yield from _fitted(file, _rest(head, start, entry.end, rest), rest)


def _rest(head: ParsedUnit, start: int, end: int, entries: Sequence[Entry]) -> ParsedUnit:
    """What stands between units of their own: with the entry's key it is the entry itself."""
    if start == head.start:
        return replace(head, end=end)
    return replace(
        head,
        start=start,
        end=end,
        path=f"{head.path}/rest:{entries[0].key if entries else ''}",
        kind="keys",
        level=_DEEPEST_LEVEL,
        parents=(head.path, *head.parents),
        context=head.part_context,
    )


def _unit(file: _File, entry: Entry, outer: tuple[str, ...]) -> ParsedUnit:
    names = (*outer, *filter(None, [entry.key]))
    paths = ["/".join(f"key:{name}" for name in names[:depth]) for depth in range(len(names), 0, -1)]
    return ParsedUnit(
        start=entry.start,
        end=entry.end,
        path=paths[0] if entry.key else "/".join((*paths[:1], _REMARK)),
        kind=file.kinds if entry.own else "key",
        level=min(len(outer) + 1, _DEEPEST_LEVEL),
        parents=(*(paths[1:] if entry.key else paths), _FILE),
        context=PATH_SEPARATOR.join(outer),
        part_context=PATH_SEPARATOR.join(names),
        part_kind="keys",
        heading_path=names,
        symbol=".".join(names) or None,
        attributes=file.attributes,
    )


def _fitted(file: _File, unit: ParsedUnit, children: Sequence[Entry]) -> list[ParsedUnit]:
    sizes = file.text.sizes
    limit = sizes.max_tokens if unit.kind in _KINDS.values() and unit.kind != "key" else sizes.target_tokens
    return fitted(file.text, unit, lambda: Cuts.between(unit.start, unit.end, _starts(file, children)), limit=limit)


def _starts(file: _File, entries: Sequence[Entry]) -> Iterator[int]:
    """Where keys begin, and those inside the ones that are too long."""
    for entry in entries:
        yield entry.start
        if entry.children and file.above(entry, file.text.sizes.target_tokens):
            yield from _starts(file, entry.children)


def schema_of(uri: str, language: str | None, source: bytes) -> str | None:
    r"""The known schema of a file: by its name, or by what it holds.

    Examples:
        >>> schema_of("app/package.json", "json", b"{}"), schema_of("a.yml", "yaml", b"apiVersion: v1\nkind: Pod\n")
        ('package', 'kubernetes')
    """
    name = PurePosixPath(uri.rpartition("#")[0] or uri).name.lower()
    if name in {"package.json", "composer.json"}:
        return "package"
    if name == "pyproject.toml":
        return "pyproject"
    if language in {"directives", "dockerfile", "gomod"}:
        return language
    if language != "yaml":
        return None
    if _COMPOSE.match(name):
        return "compose"
    return "kubernetes" if all(mark.search(source, 0, _LOOKED_AT) for mark in (_API, _KIND)) else None


def entries_of(source: bytes, language: str, schema: str | None) -> list[Entry]:
    """Entries at the top of a file, of which those that are units of its schema say so."""
    if schema == "kubernetes":
        return [_resource(source, document) for document in yaml_documents(source)]
    entries = SCANNERS[language](source)
    return [_UNITS[schema](entry) for entry in entries] if schema in _UNITS else entries


def _resource(source: bytes, document: Entry) -> Entry:
    end = min(document.end, document.start + _LOOKED_AT)
    matches = (pattern.search(source, document.start, end) for pattern in (_KIND, _METADATA_NAME))
    names = [decoded(match[match.lastgroup or 0]) for match in matches if match is not None]
    return replace(document, key="/".join(names) or "document", own=True)


def _with_blocks(entry: Entry) -> Entry:
    return replace(entry, children=tuple(replace(child, own=child.container) for child in entry.children))


def _with_services(entry: Entry) -> Entry:
    if entry.key != "services":
        return entry
    return replace(entry, children=tuple(replace(child, own=True) for child in entry.children))


_UNITS: Mapping[str | None, Callable[[Entry], Entry]] = {
    "compose": _with_services,
    "directives": _with_blocks,
    "package": lambda entry: replace(entry, own=entry.key in _PACKAGE_UNITS),
    **dict.fromkeys(("dockerfile", "gomod", "pyproject"), lambda entry: replace(entry, own=entry.container)),
}
"""By schema, an entry at the top marked as a unit of its own, or not."""


def links_of(source: bytes, language: str, entries: Sequence[Entry]) -> list[tuple[int, Link]]:
    """Links by where they stand, in any order."""
    links = list(_dependencies(source, language, entries))
    if language == "dockerfile":
        links += _dockerfile(source, entries)
    else:
        links += [(match.start("name"), _reference(match["name"])) for match in _IMAGE.finditer(source)]
    taken = {at for at, _ in links}
    for match in _PATH.finditer(source):
        if match.start() not in taken:
            path = decoded(match["path"]).removeprefix("./")
            links.append((match.start(), Link(LinkKind.REFERENCES, path, _LIKELY)))
    return links


def _dockerfile(source: bytes, entries: Sequence[Entry]) -> Iterator[tuple[int, Link]]:
    stages: set[bytes] = set()
    for entry in entries:
        stage = _FROM.match(source, entry.at, entry.end)
        if stage is not None and stage["name"].lower() not in stages:
            yield stage.start("name"), _reference(stage["name"])
        stages.add(entry.key.lower().encode())
    for match in _COPY.finditer(source):
        words = match["rest"].split()
        if not any(word.startswith((b"--from=", b"[")) for word in words):
            for word in words[:-1]:
                if not word.startswith(b"--") and word != b".":
                    yield match.start("rest"), _reference(word)


def _reference(name: bytes) -> Link:
    return Link(LinkKind.REFERENCES, decoded(name), _SURE)


def _dependencies(source: bytes, language: str, entries: Sequence[Entry]) -> Iterator[tuple[int, Link]]:
    if language == "requirements":
        for entry in entries:
            if not entry.key.startswith("-"):
                yield _import(entry.at, entry.key)
    elif language == "gomod":
        yield from _go(source, entries)
    else:
        for entry in entries:
            yield from _declared(source, entry)


def _go(source: bytes, entries: Sequence[Entry]) -> Iterator[tuple[int, Link]]:
    for entry in entries:
        if entry.key == "require":
            for child in entry.children:
                yield _import(child.at, child.key)
            words = source[entry.at : entry.end].split(None, 2)
            if not entry.container and len(words) > 1:
                yield _import(entry.at, decoded(words[1]))


def _declared(source: bytes, entry: Entry) -> Iterator[tuple[int, Link]]:
    """Names of packages, as keys of an object or as the strings of a list."""
    table = entry.key.rpartition(".")[2]
    if table in _PACKAGE_KEYS:
        for child in entry.children:
            if child.key != "python":
                yield _import(child.at, child.key.strip("\"'"))
    for child in entry.children:
        if (entry.key, child.key) in _LISTS or entry.key in {"project.optional-dependencies", "dependency-groups"}:
            value = source.find(b"=", child.at, child.end) + 1
            for match in _QUOTED.finditer(source, value, child.end):
                yield _import(match.start(), decoded(match["name"]))


def _import(at: int, name: str) -> tuple[int, Link]:
    return at, Link(LinkKind.IMPORTS, name, _SURE)
