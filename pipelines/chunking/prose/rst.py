"""reStructuredText by headings, with directives, literal blocks and tables whole (ING-6)."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

from pipelines.chunking.prose.outline import Outline
from pipelines.chunking.prose.rst_blocks import RstBlocks, label_of, rst_blocks
from pipelines.chunking.prose.sections import chunk_outline
from pipelines.chunking.units.hierarchy import NamePositions
from pipelines.chunking.units.sizes import ChunkSizes, TokenCounter
from pipelines.chunking.units.splitting import decoded, encoded
from pipelines.domain.chunks import Chunk
from pipelines.domain.documents import Document
from pipelines.domain.links import Link, LinkKind

# Lengths are bounded: each sign of a hostile page would read on to its end.
_LINK = re.compile(
    rb":(?P<role>[A-Za-z][\w.+:-]{0,60}):`(?P<named>[^`]{1,400})`"
    rb"|(?<![`\w:])`(?P<phrase>[^`]{1,400})`(?P<refers>__?)?(?!\w)"
    rb"|\[(?P<note>[#*\w.+:-]{1,80})\]_(?!\w)"
    rb"|(?<![\w`:.|-])(?P<word>\w[\w.+-]{0,80})_(?![\w`_])"
)
_TITLED = re.compile(r"^(.*?)\s*<([^<>]+)>$", re.DOTALL)
_ELSEWHERE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")
_INCLUDED = re.compile(rb"^[ \t]*\.\.[ \t]+(?:include|literalinclude)::[ \t]+(\S{1,500})", re.MULTILINE)
_PLACES = frozenset({"ref", "numref", "term", "keyword", "option", "envvar", "token"})
_FILES = frozenset({"doc", "download"})
_SYMBOL = re.compile(
    "func|meth|class|mod|attr|exc|data|obj|const|macro|type|struct|enum|member|any|var|cmember|decorator"
)


def chunk_rst(document: Document, sizes: ChunkSizes, count_tokens: TokenCounter) -> list[Chunk]:
    """Sections of a reStructuredText document; long ones in parts of whole blocks, one for each described object."""
    source = encoded(document.text)
    return chunk_outline(document, source, rst_outline(source), sizes, count_tokens)


def rst_outline(source: bytes) -> Outline:
    """Blocks of a source; labels and titles are its anchors, roles and references its links."""
    found = rst_blocks(source)
    return Outline(
        blocks=found.blocks,
        anchors=NamePositions.of(found.anchors),
        links=NamePositions.of(_links(source, found)),
        notes=NamePositions.of(_notes(source, found)),
    )


def _links(source: bytes, found: RstBlocks) -> Iterator[tuple[int, Link]]:
    anchors = {name for _, name in found.anchors}
    for match in _outside_literals(source, found):
        kind = LinkKind.CITES if match["note"] else LinkKind.REFERENCES
        target = _target(match, anchors)
        if target and not (kind is LinkKind.CITES and decoded(match["note"]) not in found.notes):
            yield match.start(), Link(kind, target)
    for at, name in found.objects:
        yield at, Link(LinkKind.REFERENCES, name)
    for match in _INCLUDED.finditer(source):
        yield match.start(), Link(LinkKind.REFERENCES, decoded(match[1]))


def _notes(source: bytes, found: RstBlocks) -> Iterator[tuple[int, tuple[str, str]]]:
    if found.notes:
        for match in _outside_literals(source, found):
            name = decoded(match["note"]) if match["note"] else ""
            if name in found.notes:
                yield match.start(), (f"cite:{name}", found.notes[name])


def _outside_literals(source: bytes, found: RstBlocks) -> Iterator[re.Match[bytes]]:
    literals = sorted(found.literals)
    for match in _LINK.finditer(source):
        before = bisect_right(literals, match.start(), key=lambda span: span[0])
        if before == 0 or literals[before - 1][1] <= match.start():
            yield match


def _target(match: re.Match[bytes], anchors: set[str]) -> str | None:
    if match["role"]:
        return _role_target(decoded(match["role"]).rpartition(":")[2], decoded(match["named"]))
    if match["note"]:
        return decoded(match["note"])
    if match["word"]:
        label = label_of(decoded(match["word"]))
        return f"#{label}" if label in anchors else None
    if not match["refers"]:
        return None
    phrase = decoded(match["phrase"])
    titled = _TITLED.match(phrase)
    if titled:
        return None if _ELSEWHERE.match(titled.group(2)) or titled.group(2).endswith("_") else titled.group(2)
    return f"#{label_of(phrase)}" if label_of(phrase) in anchors else None


def _role_target(role: str, text: str) -> str | None:
    """What a role points to: a label in any document, a path, or a symbol."""
    titled = _TITLED.match(text)
    target = (titled.group(2) if titled else text).strip()
    if role in _PLACES:
        return label_of(target) or None
    if role in _FILES:
        return target
    if _SYMBOL.fullmatch(role):
        return target.lstrip("~!.").removesuffix("()") or None
    return None
