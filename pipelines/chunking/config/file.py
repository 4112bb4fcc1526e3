"""Configuration files: the file, its keys, and the larger objects in them (ING-9)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pipelines.chunking.config.entries import Entry
from pipelines.chunking.config.links import links_of
from pipelines.chunking.config.schemas import SCANNERS, entries_of, schema_of
from pipelines.chunking.prose.text import chunk_text
from pipelines.chunking.units.hierarchy import PATH_SEPARATOR, assemble, fitted
from pipelines.chunking.units.parsed import NamePositions, ParsedUnit, SourceFacts
from pipelines.chunking.units.splitting import ChunkSizes, Cuts, SizedText, TokenCounter
from pipelines.domain.chunks import Chunk
from pipelines.domain.documents import Document

_MOST_BYTES = 1_000_000  # of a file whose structure is looked for; what is larger holds data, and is cut into lines
_BYTES_PER_TOKEN = 32  # more than tokens of configuration have: what is longer than so many bytes need not be counted
_FILE = "file"
_DEEPEST_LEVEL = 2


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
    """Keys of a configuration file, and objects below them that are long; a short file stays whole.

    Neighbouring short keys at the top are one chunk. What is in a notation without a scanner, or is very large, is cut
    into windows of lines.
    """
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
        units = list(_units(file, entries))
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
    names = (*outer, entry.key)
    paths = ["/".join(f"key:{name}" for name in names[:depth]) for depth in range(len(names), 0, -1)]
    return ParsedUnit(
        start=entry.start,
        end=entry.end,
        path=paths[0],
        kind=file.kinds if entry.own else "key",
        level=min(len(names), _DEEPEST_LEVEL),
        parents=(*paths[1:], _FILE),
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
