"""Papers by sections; equations, figures, tables, algorithms and theorems whole (ING-7)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import itemgetter
from pathlib import PurePosixPath

from weft.chunking.paper.citations import Bibliography, BibliographyEntry, entry, links_of_citations
from weft.chunking.paper.latex import latex_names, latex_outline
from weft.chunking.prose.markdown import markdown_outline
from weft.chunking.prose.outline import HEADING, LIST, PARAGRAPH, WHOLE, Block, Outline
from weft.chunking.prose.sections import chunk_outline
from weft.chunking.units.splitting import ChunkSizes, SizedText, TokenCounter, decoded, encoded
from weft.domain.chunks import Chunk
from weft.domain.documents import Document

_ORDINAL = r"^(?:[0-9]{1,3}(?:\.[0-9]{1,3}){0,4}\.?|[IVXivx]{1,5}\.)?\s*"
_FRONT = re.compile(
    _ORDINAL + r"(?:abstract|summary|authors?|affiliations?|keywords|key words|index terms)\W*$", re.IGNORECASE
)
_LISTED = re.compile(_ORDINAL + r"(?:references|bibliography|works cited|literature(?: cited)?)\W*$", re.IGNORECASE)
_STATEMENT = re.compile(
    rb"[>*_\s]{0,9}(theorem|lemma|proposition|corollary|definition|assumption|conjecture|claim|remark|proof|algorithm)"
    rb"(?:\s{1,2}([0-9A-Z]+(?:\.[0-9]+){0,3}))?(?:\s{1,2}of\s[^\n.:*]{1,60})?(?:\s{0,2}\([^)\n]{1,80}\))?\s{0,2}[.:*_]",
    re.IGNORECASE,
)
_CAPTION = re.compile(
    rb"[>*_\s]{0,9}(figure|fig|table|algorithm|listing)s?\.?\s{0,2}([0-9A-Z]+(?:\.[0-9]+){0,3})\s{0,2}[.:*_|\xe2-]",
    re.IGNORECASE,
)
_IMAGE = re.compile(rb"!\[|<img\b|<figure\b", re.IGNORECASE)
_PROOF_END = re.compile(
    rb"(?:\xe2\x96\xa1|\xe2\x88\x8e|\xe2\x96\xa0|\xe2\x97\xbb|\\(?:qed|square|blacksquare|Box)\b|Q\.?E\.?D\.?)\s*\$?[*_\s.]*$"
)
_LONGEST_PROOF = 12  # blocks: one whose end is not marked must not take in the rest of the section
_ENTRY = re.compile(r"^[ \t]*(?:[-*+][ \t]+)?(?=\[[^\]]{1,80}\][ \t:]|[0-9]{1,4}[.)][ \t]|\[\^)", re.MULTILINE)


def _paper_outline(text: str, source: bytes) -> Outline:
    """The outline of a Markdown text as a paper's."""
    outline = markdown_outline(text, source)
    blocks = _with_special_units(_ranked(outline.blocks), source)
    bibliography = Bibliography(_references(blocks, source))
    cited = list(_cited(blocks, source, bibliography))
    return replace(
        outline,
        blocks=blocks,
        links=[*outline.links, *links_of_citations(cited)],
        notes=[(at, reference.note) for at, reference in cited],
    )


def _ranked(blocks: Sequence[Block]) -> list[Block]:
    """Headings with the title on rank 0 and sections from rank 1; an abstract belongs to the title."""
    headings = [block.heading for block in blocks if block.heading is not None]
    title = headings[0] if headings and not _FRONT.match(headings[0].title) else None
    if title is not None and any(heading.rank < title.rank for heading in headings):
        title = None
    widest = min((heading.rank for heading in headings if heading is not title), default=1)
    ranked: list[Block] = []
    front = False  # whether only the title and its authors came so far
    for block in blocks:
        if block.heading is None:
            ranked.append(block)
        elif block.heading is title:
            front = True
            ranked.append(replace(block, heading=replace(block.heading, rank=0)))
        elif front and _FRONT.match(block.heading.title):
            ranked.append(Block(block.start, block.end, HEADING))
        else:
            front = False
            ranked.append(replace(block, heading=replace(block.heading, rank=block.heading.rank - widest + 1)))
    return ranked


def _with_special_units(blocks: Sequence[Block], source: bytes) -> list[Block]:
    """The blocks, with statements and proofs, and figures and tables beside their captions, as units of their own."""
    units: list[Block] = []
    index = 0
    while index < len(blocks):
        special, index = _special(blocks, index, source)
        units.append(special)
    return units


def _special(blocks: Sequence[Block], index: int, source: bytes) -> tuple[Block, int]:
    block = blocks[index]
    following = blocks[index + 1] if index + 1 < len(blocks) else None
    caption = _caption(block, source)
    if caption and following is not None and _shows(following, source):
        return _joined([block, following], caption), index + 2
    if _shows(block, source) and following is not None and (caption := _caption(following, source)):
        return _joined([block, following], caption), index + 2
    statement = _STATEMENT.match(source, block.start, block.end) if block.kind in {PARAGRAPH, "quote"} else None
    if statement is None:
        return block, index + 1
    kind = decoded(statement.group(1)).lower()
    end = index + 1
    if kind == "proof":
        end = _end_of_proof(blocks, index, source)
    elif kind == "algorithm" and following is not None and following.kind in {WHOLE, LIST}:
        end = index + 2
    held = blocks[index:end]
    name = decoded(statement.group(2)) if statement.group(2) else None
    return Block(block.start, held[-1].end, kind, inner=tuple(held), special=True, name=name), end


def _joined(blocks: Sequence[Block], caption: tuple[str, str]) -> Block:
    start, end = blocks[0].start, blocks[-1].end
    return Block(start, end, caption[0], uncut=((start, end),), special=True, name=caption[1])


def _caption(block: Block, source: bytes) -> tuple[str, str] | None:
    """What a paragraph is the caption of, and its number."""
    match = _CAPTION.match(source, block.start, block.end) if block.kind == PARAGRAPH else None
    if match is None:
        return None
    kind = decoded(match.group(1)).lower()
    return {"fig": "figure"}.get(kind, kind), decoded(match.group(2))


def _shows(block: Block, source: bytes) -> bool:
    """Whether a block is a table, a figure or a listing, which a caption belongs to."""
    return block.kind == WHOLE or (block.kind == PARAGRAPH and bool(_IMAGE.match(source, block.start, block.end)))


def _end_of_proof(blocks: Sequence[Block], index: int, source: bytes) -> int:
    """The index after the block that ends a proof; after its first where no mark ends it."""
    for end in range(index, min(len(blocks), index + _LONGEST_PROOF)):
        if blocks[end].heading is not None:
            break
        tail = source[max(blocks[end].start, blocks[end].end - 80) : blocks[end].end]
        if _PROOF_END.search(tail.rstrip()):
            return end + 1
    return index + 1


def _references(blocks: Sequence[Block], source: bytes) -> Iterator[BibliographyEntry]:
    """The entries of the list of references."""
    listed = False
    ordinal = 0
    for block in blocks:
        if block.heading is not None:
            listed = bool(_LISTED.match(block.heading.title))
        elif listed:
            for text in _entries(block, source):
                ordinal += 1
                yield entry(text, ordinal)


def _entries(block: Block, source: bytes) -> Iterator[str]:
    for part in block.inner or (block,):
        text = decoded(source[part.start : part.end])
        starts = [match.end() for match in _ENTRY.finditer(text)]
        if not starts:
            yield text.strip().lstrip("-*+ ")
        for start, end in pairwise([*starts, len(text)]):
            yield text[start:end].strip().rstrip("-*+ \n")


def _cited(
    blocks: Sequence[Block], source: bytes, bibliography: Bibliography
) -> Iterator[tuple[int, BibliographyEntry]]:
    """Where the text cites what, outside the list of references."""
    listed = False
    for block in blocks:
        if block.heading is not None:
            listed = bool(_LISTED.match(block.heading.title))
        if listed or not bibliography.references:
            continue
        text = decoded(source[block.start : block.end])
        done, offset = 0, block.start
        for at, reference in sorted(bibliography.cited(text), key=itemgetter(0)):
            offset += len(encoded(text[done:at]))
            done = at
            yield offset, reference


LATEX = "latex"
MARKDOWN = "markdown"
PART_OF = "part_of"
"""The fact that a file is a part of the paper or book of that title (ING-35)."""

_LATEX_SUFFIXES = frozenset({".tex", ".ltx", ".latex"})
_MARKDOWN_SUFFIXES = frozenset({".md", ".markdown", ".txt", ""})
_COMMAND = re.compile(r"^[^%\n]{0,200}\\(?:documentclass|documentstyle|section|chapter|begin)\b", re.MULTILINE)
_CLASS = re.compile(r"^[ \t]{0,20}\\(?:documentclass|documentstyle)\b", re.MULTILINE)
_HEADING = r"^(?:#{1,4}[ \t]+|\*\*)?(?:[0-9IVX]{1,5}\.?[ \t]+)?"
_ABSTRACT = re.compile(
    _HEADING + r"abstract\b[^\n]{0,9}$|^\*{0,2}abstract\*{0,2}[.:\u2014-]", re.MULTILINE | re.IGNORECASE
)
_REFERENCES = re.compile(
    r"^#{1,4}[ \t]+(?:[0-9IVX]{1,5}\.?[ \t]+)?(?:references|bibliography|works cited|literature)\b[^\n]{0,20}$",
    re.MULTILINE | re.IGNORECASE,
)

_LONGEST_HEAD = 8000  # characters: what stands before the abstract of a paper
_TITLE = re.compile(r"^#[ \t]+([^\n]{1,400}?)[ \t#]*$", re.MULTILINE)
_AUTHORS = re.compile(r"^\**authors?:?\**:?[ \t]+([^\n]{1,4000})$", re.MULTILINE | re.IGNORECASE)
_NUMBER = re.compile(
    r"^\**(doi|arxiv)\**[ \t]*[:/][ \t]*(?:https?://doi\.org/)?(\S{1,200})", re.MULTILINE | re.IGNORECASE
)


def is_paper(text: str, name: str) -> str | None:
    """The language of a paper, "latex" or "markdown"; None for anything else.

    LaTeX has its own suffixes, or begins with a class; a paper in Markdown has an abstract and a list of references.
    """
    suffix = PurePosixPath(name.lower()).suffix
    if suffix in _LATEX_SUFFIXES:
        return LATEX if _COMMAND.search(text) else None
    if suffix not in _MARKDOWN_SUFFIXES:
        return None
    if _CLASS.search(text) and "\\begin{document}" in text:
        return LATEX
    abstract = _ABSTRACT.search(text)
    return MARKDOWN if abstract and _REFERENCES.search(text, abstract.end()) else None


@dataclass(frozen=True, slots=True)
class PaperFacts:
    """What a paper says of itself: by this others that cite it find it."""

    title: str | None
    authors: tuple[str, ...]
    numbers: Mapping[str, str]  # its DOI and arXiv number, by "doi" and "arxiv"


def paper_facts(text: str, language: str) -> PaperFacts:
    r"""Title, authors and numbers from the head of a paper.

    Examples:
        >>> head = "# On reeds\n\nAuthors: A. Writer; B. Other\n\nDOI: 10.1000/reeds\n\n## Abstract\n"
        >>> facts = paper_facts(head, "markdown")
        >>> facts.title, facts.authors, dict(facts.numbers)
        ('On reeds', ('A. Writer', 'B. Other'), {'doi': '10.1000/reeds'})
    """
    if language == LATEX:
        return PaperFacts(*latex_names(encoded(text)), {})
    abstract = _ABSTRACT.search(text)
    head = text[: min(abstract.start() if abstract else _LONGEST_HEAD, _LONGEST_HEAD)]
    title, authors = _TITLE.search(head), _AUTHORS.search(head)
    listed = (name.strip(" *_") for name in authors.group(1).split(";")) if authors else ()
    numbers = {match.group(1).lower(): match.group(2).rstrip(".,;") for match in _NUMBER.finditer(head)}
    return PaperFacts(title.group(1).strip() if title else None, tuple(filter(None, listed)), numbers)


def chunk_paper(document: Document, sizes: ChunkSizes, count_tokens: TokenCounter) -> list[Chunk]:
    """Sections of a paper: 0 title, authors and abstract, 1 sections, 2 subsections, 3 what is below or stands apart.

    A section above the target is cut into its special units and runs of paragraphs. What a chunk cites is among its
    links, and what the bibliography says of it among its attributes, as "cite:<key>".
    """
    text = SizedText(document.text, sizes, count_tokens)
    if document.language == LATEX:
        outline = latex_outline(text.source, document.metadata.get(PART_OF, ""))
    else:
        outline = _paper_outline(document.text, text.source)
    return chunk_outline(document, text, outline)
