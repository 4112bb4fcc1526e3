"""Configuration files: the file, its keys, and the larger objects in them (ING-9)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from pipelines.chunking.config.entries import Entry
from pipelines.chunking.config.links import links_of
from pipelines.chunking.config.schemas import SCANNERS, entries_of, schema_of
from pipelines.chunking.prose.text import chunk_text
from pipelines.chunking.units.hierarchy import NamePositions, ParsedUnit, SourceFacts, assemble, fitted
from pipelines.chunking.units.sizes import ChunkSizes, TokenCounter
from pipelines.chunking.units.splitting import Cuts, Meter, encoded
from pipelines.domain.chunks import Chunk
from pipelines.domain.documents import Document

_MOST_BYTES = 1_000_000  # of a file whose structure is looked for; what is larger holds data, and is cut into lines
_BYTES_PER_TOKEN = 32  # more than tokens of configuration have: what is longer than so many bytes need not be counted
_SEPARATOR = " > "
_FILE = "file"
_DEEPEST_LEVEL = 2


@dataclass(frozen=True, slots=True)
class _File:
    """What all steps on one document need."""

    source: bytes
    sizes: ChunkSizes
    meter: Meter
    kinds: str
    attributes: dict[str, str]

    def above(self, entry: Entry, limit: int) -> bool:
        """Whether an entry has more than `limit` tokens."""
        return entry.end - entry.start > limit * _BYTES_PER_TOKEN or not self.meter.fits(entry.start, entry.end, limit)

    @property
    def nested(self) -> int:
        """Above so many tokens an object inside another is a unit of its own."""
        return self.sizes.min_tokens if self.sizes.nested_tokens is None else self.sizes.nested_tokens


def chunk_configuration(document: Document, sizes: ChunkSizes, count_tokens: TokenCounter) -> list[Chunk]:
    """Keys of a configuration file, and objects below them that are long; a short file stays whole.

    Neighbouring short keys at the top are one chunk. What is in a notation without a scanner, or is very large, is cut
    into windows of lines.
    """
    source = encoded(document.text)
    language = document.language or ""
    if language not in SCANNERS or len(source) > _MOST_BYTES:
        return chunk_text(document, sizes, count_tokens)
    schema = schema_of(document.uri, language, source)
    entries = entries_of(source, language, schema)
    meter = Meter(source, count_tokens)
    file = _File(source, sizes, meter, _KINDS.get(schema or "", "key"), {"schema": schema} if schema else {})
    whole = min(sizes.target_tokens if sizes.whole_tokens is None else sizes.whole_tokens, sizes.max_tokens)
    if meter.fits(0, len(source), whole):
        units = [ParsedUnit(start=0, end=len(source), path=_FILE, kind=_FILE, level=0, attributes=file.attributes)]
    elif not entries:
        return chunk_text(document, sizes, count_tokens)
    else:
        units = [part for unit in _units(file, entries) for part in unit]
    facts = SourceFacts(
        defines=NamePositions.of([(entry.at, entry.key) for entry in entries if entry.key]),
        links=NamePositions.of(links_of(source, language, entries)),
    )
    return assemble(document, source, units, facts=facts, sizes=sizes, count_tokens=count_tokens)


_KINDS = {
    "compose": "key",
    "dockerfile": "stage",
    "gomod": "block",
    "kubernetes": "resource",
    "pyproject": "table",
}


def _units(file: _File, entries: Sequence[Entry]) -> Iterator[list[ParsedUnit]]:
    """The file's own unit, which tells its keys, and those of its entries."""
    first = entries[0].start
    head = first if file.source[:first].strip() else _line_end(file.source, entries[0].at)
    keys = ", ".join(dict.fromkeys(entry.key for entry in entries if entry.key))
    root = ParsedUnit(start=0, end=head, path=_FILE, kind=_FILE, level=0, context=keys, attributes=file.attributes)
    yield _fitted(file, root, ())
    # What stands before the first key and is blank would be in no span.
    yield from _siblings(file, [replace(entries[0], start=min(first, head)), *entries[1:]], ())


def _siblings(file: _File, entries: Sequence[Entry], outer: tuple[str, ...]) -> Iterator[list[ParsedUnit]]:
    """Entries at the top, the short ones together with their neighbours up to the target."""
    together: list[Entry] = []
    for entry in entries:
        short = not (entry.own or any(child.own for child in entry.children))
        short = short and not file.above(entry, file.sizes.min_tokens)
        if together and (not short or not file.meter.fits(together[0].start, entry.end, file.sizes.target_tokens)):
            yield from _together(file, together, outer)
            together = []
        if short:
            together.append(entry)
        else:
            yield from _entry(file, entry, outer)
    if together:
        yield from _together(file, together, outer)


def _together(file: _File, entries: Sequence[Entry], outer: tuple[str, ...]) -> Iterator[list[ParsedUnit]]:
    if len(entries) == 1:
        yield from _entry(file, entries[0], outer)
        return
    unit = _unit(file, entries[0], outer)
    yield _fitted(file, replace(unit, end=entries[-1].end, kind="keys", symbol=None, heading_path=outer), entries)


def _entry(file: _File, entry: Entry, outer: tuple[str, ...]) -> Iterator[list[ParsedUnit]]:
    """An entry whole, or what is left of it beside the objects in it that are units of their own."""
    unit = _unit(file, entry, outer)
    apart = {
        child.start: child
        for child in entry.children
        if child.own or (child.container and file.above(child, file.nested))
    }
    if entry.own and not file.above(entry, file.sizes.max_tokens) and not any(each.own for each in apart.values()):
        apart = {}
    if not apart:
        yield _fitted(file, unit, entry.children)
        return
    inside = (*outer, entry.key)
    held = ", ".join(dict.fromkeys(child.key for child in entry.children))
    start, rest = entry.start, list[Entry]()
    head = replace(unit, context="\n".join(filter(None, (unit.context, f"{_SEPARATOR.join(inside)}: {held}"))))
    for child in entry.children:
        if child.start in apart:
            if child.start > start:
                yield _fitted(file, _rest(head, start, child.start, rest), rest)
            yield from _entry(file, child, inside)
            start, rest = child.end, []
        else:
            rest.append(child)
    if start < entry.end:
        yield _fitted(file, _rest(head, start, entry.end, rest), rest)


def _rest(head: ParsedUnit, start: int, end: int, held: Sequence[Entry]) -> ParsedUnit:
    """What stands between units of their own: with the entry's key it is the entry itself."""
    if start == head.start:
        return replace(head, end=end)
    path = f"{head.path}/rest:{held[0].key if held else ''}"
    parents = (head.path, *head.parents)
    return replace(
        head,
        start=start,
        end=end,
        path=path,
        kind="keys",
        level=_DEEPEST_LEVEL,
        parents=parents,
        context=head.part_context,
    )


def _unit(file: _File, entry: Entry, outer: tuple[str, ...]) -> ParsedUnit:
    names = (*outer, entry.key)
    paths = ["/".join(f"key:{name}" for name in names[:depth]) for depth in range(len(names), 0, -1)]
    return ParsedUnit(
        start=entry.start,
        end=entry.end,
        path=paths[0],
        kind=file.kinds if entry.own else "key",
        level=min(len(names), _DEEPEST_LEVEL),
        parents=(*paths[1:], _FILE),
        context=_SEPARATOR.join(outer),
        part_context=_SEPARATOR.join(names),
        part_kind="keys",
        heading_path=names,
        symbol=".".join(names) or None,
        attributes=file.attributes,
    )


def _fitted(file: _File, unit: ParsedUnit, children: Sequence[Entry]) -> list[ParsedUnit]:
    limit = file.sizes.max_tokens if unit.kind in _KINDS.values() and unit.kind != "key" else file.sizes.target_tokens
    cuts = partial(_cuts, file, unit, children)
    return fitted(unit, cuts, limit=limit, source=file.source, sizes=file.sizes, meter=file.meter)


def _cuts(file: _File, unit: ParsedUnit, children: Sequence[Entry]) -> Cuts:
    """Cuts before keys, and before those inside the ones that are too long."""
    return Cuts.between(unit.start, unit.end, _starts(file, children))


def _starts(file: _File, entries: Sequence[Entry]) -> Iterator[int]:
    for entry in entries:
        yield entry.start
        if entry.children and file.above(entry, file.sizes.target_tokens):
            yield from _starts(file, entry.children)


def _line_end(source: bytes, at: int) -> int:
    return source.find(b"\n", at) + 1 or len(source)
