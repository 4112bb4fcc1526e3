"""Documents: the items of a source, and the items that could not become documents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, overload

from weft.domain.links import Link


class Domain(StrEnum):
    """The kind of knowledge a document holds; weights, decay and sizes are learned per domain."""

    CODE = "code"
    ACADEMIC = "academic"
    HISTORY = "history"
    GENERAL = "general"


if TYPE_CHECKING:

    class DomainField:
        """A field that takes the name of a domain as plain text, too, and holds the domain: for type checkers alone."""

        @overload
        def __get__(self, holder: None, kind: type) -> DomainField: ...
        @overload
        def __get__(self, holder: object, kind: type) -> Domain | None: ...
        def __get__(self, holder: object | None, kind: type) -> DomainField | Domain | None: ...
        def __set__(self, holder: object, domain: str | None) -> None: ...

    NO_DOMAIN = DomainField()
else:
    DomainField, NO_DOMAIN = Domain | None, None


COMMITTED_AT = "committed_at"
"""Fact of a document taken from a file that a later commit touched: its time, as ISO 8601 writes it (LRN-6)."""


class ContentType(StrEnum):
    """How a document is cut into chunks."""

    CODE = "code"  # `Document.language` names the grammar
    MARKDOWN = "markdown"
    RST = "rst"
    MARKUP = "markup"  # `Document.language`: "html", "asciidoc" or "org"
    PAPER = "paper"  # `Document.language`: "latex" or "markdown"; papers in JSON are written out as Markdown
    CONVERSATION = "conversation"  # one session: a turn begins with the name of its speaker
    CONFIGURATION = "configuration"  # `Document.language` names the notation
    TEXT = "text"
    RECORD = "record"  # one item of a corpus that its author already cut into retrieval units


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One source item, decoded."""

    uri: str  # where it stands: a path relative to its source root prefixed by the source's name, or a corpus id
    content_type: ContentType
    domain: Domain
    text: str  # the whole content, decoded, line ends as found
    title: str | None = None
    language: str | None = None
    modified_at: float | None = None  # seconds since the epoch, or None where the source does not say
    trust_level: int  # 0 to 100 by kind of source (ING-2)
    # declared facts as strings. "folder" is the path of folders above a file; `COMMITTED_AT` names a later
    # commit; "source_type" is what trust is learned by
    metadata: Mapping[str, str] = field(default_factory=dict)
    summary: str | None = None  # at most 200 tokens on what it says: declared, or extracted (ING-18)
    authors: tuple[str, ...] = ()  # who wrote it, persons or agents
    intent: str | None = None  # why it was stored, as declared
    tier: str | None = None  # how important it is, as declared
    validation: str | None = None  # how far it was checked, as declared
    citations: int | None = None  # how often others cite it, where that is known
    triggers: tuple[str, ...] = ()  # phrases that a query may hold when this document is wanted
    # what it points to, as declared beside the text; what the text itself says stands in the chunks
    links: tuple[Link, ...] = ()


@dataclass(frozen=True, slots=True)
class Rejection:
    """An item that did not become a document, or a document that could not be chunked (ING-3)."""

    uri: str
    reason: str  # short stable code, counted in the summary: "binary", "too_large", "undecodable" …
    detail: str  # what was found, for the person who reads the table
