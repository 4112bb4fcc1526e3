"""How a file would be read and cut, by the code that a run reads and cuts it with; nothing is written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from weft.catalog.catalog import Catalog
from weft.chunking.chunker import title_of
from weft.chunking.units.splitting import ActiveSizes
from weft.domain.chunks import Chunk
from weft.domain.documents import Document, Domain, Rejection
from weft.embedding.tokens import load_token_counter
from weft.ingestion.parser.parser import Parser
from weft.ingestion.sizing import sizes_in_force
from weft.ingestion.sources.files import why_of
from weft.ingestion.sources.items import FileItem, SourceItem
from weft.ingestion.sources.sources import list_items, read_item
from weft.ingestion.stages.read_and_chunk import bounded_cut
from weft.settings import Settings

MOST_DOCUMENTS = 200
"""Of a file that holds more, such as a corpus, the first ones are explained."""


@dataclass(frozen=True, slots=True)
class ExplainedUnit:
    """One piece of a document."""

    kind: str
    level: int
    lines: tuple[int, int]  # first and last, from 1
    tokens: int
    title: str  # its symbol, or the path of its headings, or how it begins
    anchor: str | None = None


@dataclass(frozen=True, slots=True)
class ExplainedDocument:
    """One document of a file, and how it is cut."""

    uri: str
    title: str | None
    content_type: str
    why: str  # what tells its type
    domain: str
    language: str | None
    trust: int
    authors: tuple[str, ...]
    characters: int
    facts: dict[str, str]
    sizes: tuple[str, ...]  # what it was cut with, as "name=value"
    units: tuple[ExplainedUnit, ...]


@dataclass(frozen=True, slots=True)
class ExplainedFile:
    """What would become of a file."""

    path: str
    documents: tuple[ExplainedDocument, ...]
    notes: tuple[Rejection, ...]  # what was rejected, and what was left out or done to read the rest


def explained(settings: Settings, path: Path, *, domain: Domain | None = None) -> ExplainedFile:
    """How a file would be read and cut with these settings, and the sizes in force in the store.

    Raises:
        SourceError: It cannot be read, or is a folder.
    """
    counter = load_token_counter(settings.embedding)
    catalog = Catalog(Path(settings.storage.root).absolute())
    sizes = sizes_in_force(settings.chunking, settings.priors, catalog, limit=counter.limit)
    notes: list[Rejection] = []
    documents: list[ExplainedDocument] = []
    with closing(Parser(settings.ingest.parser, settings.embedding)) as parser:
        for item in list_items(path, settings.ingest):
            read = list(read_item(_with_folder(item), settings.ingest, domain=domain, convert=parser.convert))
            notes += [each for each in read if isinstance(each, Rejection)]
            for document in (each for each in read if isinstance(each, Document)):
                explanation, problems = _document(settings, item, document, sizes, parser)
                documents.append(explanation)
                notes += problems
                if len(documents) == MOST_DOCUMENTS:
                    return ExplainedFile(str(path), tuple(documents), tuple(notes))
    return ExplainedFile(str(path), tuple(documents), tuple(notes))


def _with_folder(item: SourceItem) -> SourceItem:
    """The item from two folders above: a file may be explained by others around it, as a day of Slack by its users."""
    if not isinstance(item, FileItem) or len(item.path) != 1:
        return item
    root = Path(item.root)
    return replace(item, root=str(root.parent), path=(root.name, *item.path)) if root.name else item


def _document(
    settings: Settings, item: SourceItem, document: Document, sizes: ActiveSizes, parser: Parser
) -> tuple[ExplainedDocument, list[Rejection]]:
    most = settings.ingest.max_chunks_per_file
    cut, chunks, problems = bounded_cut(document, sizes.sizes_of(document), parser, most)
    explanation = ExplainedDocument(
        uri=cut.uri,
        title=title_of(cut, chunks),
        content_type=cut.content_type.value,
        why=why_of(item.path[-1], cut) if isinstance(item, FileItem) else "a record of a corpus or a table",
        domain=cut.domain.value,
        language=cut.language,
        trust=cut.trust_level,
        authors=cut.authors,
        characters=len(cut.text),
        facts={name: value[:200] for name, value in cut.metadata.items() if isinstance(value, str)},
        sizes=sizes.sizes_of(document).snapshot,
        units=tuple(_units(chunks)),
    )
    return explanation, problems


def _units(chunks: list[Chunk]) -> Iterator[ExplainedUnit]:
    for chunk in chunks:
        name = chunk.symbol or " > ".join(chunk.heading_path) or " ".join(chunk.text.split())[:80]
        lines = (chunk.start_line, chunk.end_line)
        yield ExplainedUnit(chunk.kind, chunk.level, lines, chunk.tokens, name, chunk.anchor)
