"""Papers by sections; equations, figures, tables, algorithms and theorems whole (ING-7)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from weft.chunking.paper.latex import latex_names, latex_outline
from weft.chunking.paper.markdown import markdown_paper_outline
from weft.chunking.prose.sections import chunk_outline
from weft.chunking.units.splitting import ChunkSizes, SizedText, TokenCounter, encoded
from weft.domain.chunks import Chunk
from weft.domain.documents import Document

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
        outline = markdown_paper_outline(document.text, text.source)
    return chunk_outline(document, text, outline)
