"""Configuration files: the file, its keys, and the larger objects in them, by known schemas or by size (ING-9).

What they point to are images, packages, and files beside them (ING-14).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from weft.chunking.config.lines import FORMS, entries_by_lines
from weft.chunking.config.outline import QUERIES, Entry, outline
from weft.chunking.prose.text import chunk_text
from weft.chunking.units.hierarchy import PATH_SEPARATOR, assemble, fitted
from weft.chunking.units.joining import joined
from weft.chunking.units.parsed import NamePositions, ParsedUnit, SourceFacts
from weft.chunking.units.splitting import ChunkSizes, Cuts, SizedText, TokenCounter, decoded
from weft.domain.chunks import Chunk
from weft.domain.documents import Document
from weft.domain.links import Link, LinkKind

_MOST_BYTES = 1_000_000  # of a file whose structure is looked for; what is larger holds data, and is cut into lines
_BYTES_PER_TOKEN = 32  # more than tokens of configuration have: what is longer than so many bytes need not be counted
_FILE = "file"
_REMARK = "remark"  # what no key stands below
_DEEPEST_LEVEL = 2

NOTATIONS = frozenset({*QUERIES, *FORMS})
"""What is read by its keys; files in other notations are cut into windows of lines."""

_COMPOSE = re.compile(r"(?:docker-)?compose(?:[.-].*)?\.ya?ml\Z")
_VALUE = re.compile(rb"[^:\n]*:[ \t]*[\"']?(?P<value>[\w.-]+)")

_IMAGE = re.compile(rb"^[ \t-]*[\"']?image[\"']?[ \t]*:[ \t]*[\"']?(?P<name>[\w./:@${}-]{2,200})", re.MULTILINE)
_FROM = re.compile(rb"[ \t]*FROM\s+(?:--\S+\s+)*(?P<name>\S{1,200})", re.IGNORECASE)
_COPY = re.compile(rb"[ \t]*(?:COPY|ADD)[ \t]+(?P<rest>[^\n]{1,500})", re.IGNORECASE)
_PATH = re.compile(
    rb"(?<![\w./:@$~-])(?P<path>\.{0,2}/?(?:[\w-][\w.-]{0,80}/){1,12}[\w-][\w.-]{0,80}\.[A-Za-z]\w{0,7}|\./[\w./-]{1,200}+"
    rb"|[\w-]{1,60}\.(?:py|json|ya?ml|toml|md|sh|cfg|ini|env|tsx?|jsx?|txt))(?![\w/@-])"
)
_QUOTED = re.compile(rb"[\"'](?P<name>[A-Za-z0-9][\w.-]*)[^\"'\n]*[\"']")
_PACKAGES = {
    *("dependencies", "devDependencies", "peerDependencies", "optionalDependencies"),
    *("require", "require-dev"),  # PHP's composer.json has the same form
}
_PACKAGE_UNITS = _PACKAGES | {"scripts"}
_PACKAGE_KEYS = _PACKAGES | {"dev-dependencies", "build-dependencies", "packages", "dev-packages"}
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
    if language not in NOTATIONS or len(source) > _MOST_BYTES:
        return chunk_text(document, sizes, count_tokens)
    schema, entries = entries_of(document.uri, language, source)
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


_KINDS = {"dockerfile": "stage", "gomod": "block", "kubernetes": "resource", "pyproject": "table"}


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
    sizes, groups, joins = file.text.sizes, list[list[Entry]](), False
    for entry in entries:
        own = entry.own or any(child.own for child in entry.children)
        short = not own and not file.above(entry, sizes.min_tokens)
        if short and joins and file.text.fits(groups[-1][0].start, entry.end, sizes.target_tokens):
            groups[-1].append(entry)
        else:
            groups.append([entry])
        joins = short
    for group in groups:
        if len(group) == 1:
            yield from _entry(file, group[0], ())
        else:
            unit = _unit(file, group[0], ())
            yield from _fitted(file, replace(unit, end=group[-1].end, kind="keys", symbol=None, heading_path=()), group)


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
    limit = sizes.max_tokens if unit.kind in _KINDS.values() else sizes.target_tokens
    return fitted(file.text, unit, lambda: Cuts.between(unit.start, unit.end, _starts(file, children)), limit=limit)


def _starts(file: _File, entries: Sequence[Entry]) -> Iterator[int]:
    """Where keys begin, and those inside the ones that are too long."""
    for entry in entries:
        yield entry.start
        if entry.children and file.above(entry, file.text.sizes.target_tokens):
            yield from _starts(file, entry.children)


def entries_of(uri: str, language: str, source: bytes) -> tuple[str | None, list[Entry]]:
    r"""The known schema of a file, by its name or by what it holds, and its entries: those that are its units say so.

    Examples:
        >>> entries_of("app/package.json", "json", b"{}"), entries_of("a", "yaml", b"apiVersion: v1\nkind: Pod\n")[0]
        (('package', []), 'kubernetes')
    """
    entries = outline(source, language) if language in QUERIES else None
    if entries is None:
        entries = entries_by_lines(source, language) if language in FORMS else []
    name = PurePosixPath(uri.rpartition("#")[0] or uri).name.lower()
    schema = _SCHEMAS.get(name) or (language if language in _UNITS else None)
    if _COMPOSE.match(name):
        schema = "compose"
    if language == "yaml":
        if schema is None and any(
            {"apiVersion", "kind"} <= {child.key for child in document.children} for document in entries
        ):
            schema = "kubernetes"
            for document in entries:
                document.key = "/".join(_names(source, document)) or "document"
        elif len(entries) == 1 and not entries[0].key:
            entries = entries[0].children
    for entry in entries:
        for unit in _UNITS[schema](entry) if schema else ():
            unit.own = True
    return schema, entries


def _names(source: bytes, document: Entry) -> Iterator[str]:
    """The kind of a resource, and its name."""
    metadata = (child for entry in document.children if entry.key == "metadata" for child in entry.children)
    for key, entries in (("kind", document.children), ("name", metadata)):
        values = (_VALUE.match(source, entry.at, entry.end) for entry in entries if entry.key == key)
        yield from (decoded(value["value"]) for value in values if value is not None)


def _containers(entries: Iterable[Entry]) -> list[Entry]:
    return [entry for entry in entries if entry.container]


_SCHEMAS = {"package.json": "package", "composer.json": "package", "pyproject.toml": "pyproject"}
_UNITS: Mapping[str, Callable[[Entry], Iterable[Entry]]] = {
    "compose": lambda entry: entry.children if entry.key == "services" else (),
    "directives": lambda entry: _containers(entry.children),
    "kubernetes": lambda entry: (entry,),
    "package": lambda entry: (entry,) if entry.key in _PACKAGE_UNITS else (),
    **dict.fromkeys(("dockerfile", "gomod", "pyproject"), lambda entry: _containers([entry])),
}
"""By schema, what is a unit of its own of an entry at the top."""


def links_of(source: bytes, language: str, entries: Sequence[Entry]) -> list[tuple[int, Link]]:
    """Links by where they stand, in any order: packages, images, files that are copied, and what looks like a path."""
    links = [(at, Link(LinkKind.IMPORTS, name, _SURE)) for at, name in _packages(source, language, entries)]
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
        for copied in filter(None, (_COPY.match(source, step.at, step.end) for step in entry.children)):
            words = copied["rest"].split()
            if not any(word.startswith((b"--from=", b"[")) for word in words):
                names = (word for word in words[:-1] if not word.startswith(b"--") and word != b".")
                yield from ((copied.start("rest"), _reference(name)) for name in names)


def _reference(name: bytes) -> Link:
    return Link(LinkKind.REFERENCES, decoded(name), _SURE)


def _packages(source: bytes, language: str, entries: Sequence[Entry]) -> Iterator[tuple[int, str]]:
    """Names of packages: of requirements, as keys of an object, and as the strings of a list."""
    for entry in entries:
        if language == "requirements" and not entry.key.startswith("-"):
            yield entry.at, entry.key
        elif language == "gomod" and entry.key == "require" and not entry.children:
            yield from ((entry.at, decoded(word)) for word in source[entry.at : entry.end].split(None, 2)[1:2])
        if entry.key.rpartition(".")[2] in _PACKAGE_KEYS:
            yield from ((child.at, child.key.strip("\"'")) for child in entry.children if child.key != "python")
        for child in entry.children:
            if (entry.key, child.key) in _LISTS or entry.key in {"project.optional-dependencies", "dependency-groups"}:
                value = source.find(b"=", child.at, child.end) + 1
                yield from (
                    (match.start(), decoded(match["name"])) for match in _QUOTED.finditer(source, value, child.end)
                )
