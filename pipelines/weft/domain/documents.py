"""Documents: the items of a source, and the items that could not become documents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from weft.domain.links import Link


class Domain(StrEnum):
    """The kind of knowledge a document holds; weights, decay and sizes are learned per domain."""

    CODE = "code"
    ACADEMIC = "academic"
    HISTORY = "history"
    GENERAL = "general"


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
    """One source item, decoded.

    Attributes:
        uri: Where it stands: a path relative to its source root prefixed by the source's name, or a corpus id.
        text: The whole content, decoded, line ends as found.
        modified_at: Seconds since the epoch, or None where the source does not say.
        trust_level: 0 to 100 by kind of source (ING-2).
        metadata: Declared facts as strings. "folder" is the path of folders above a file; `COMMITTED_AT` names a later
            commit; "source_type" is what trust is learned by.
        summary: At most 200 tokens on what it says: declared, or extracted (ING-18).
        authors: Who wrote it, persons or agents.
        intent: Why it was stored, as declared.
        tier: How important it is, as declared.
        validation: How far it was checked, as declared.
        citations: How often others cite it, where that is known.
        triggers: Phrases that a query may hold when this document is wanted.
        links: What it points to, as declared beside the text; what the text itself says stands in the chunks.
    """

    uri: str
    content_type: ContentType
    domain: Domain
    text: str
    title: str | None = None
    language: str | None = None
    modified_at: float | None = None
    trust_level: int
    metadata: Mapping[str, str] = field(default_factory=dict)
    summary: str | None = None
    authors: tuple[str, ...] = ()
    intent: str | None = None
    tier: str | None = None
    validation: str | None = None
    citations: int | None = None
    triggers: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()


@dataclass(frozen=True, slots=True)
class Rejection:
    """An item that did not become a document, or a document that could not be chunked (ING-3).

    Attributes:
        reason: Short stable code, counted in the summary: "binary", "too_large", "undecodable" …
        detail: What was found, for the person who reads the table.
    """

    uri: str
    reason: str
    detail: str
