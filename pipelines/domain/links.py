"""Links: what a document or a chunk points to, by name; who bears the name is known when all chunks are (ING-14).

Relations: what documents have to do with one another, whose names are known (GRA-1).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class LinkKind(StrEnum):
    """What one chunk has to do with another."""

    CALLS = "calls"
    EXTENDS = "extends"
    IMPLEMENTS = "implements"
    IMPORTS = "imports"
    REFERENCES = "references"
    TESTS = "tests"
    CITES = "cites"
    SIMILAR = "similar"
    CAUSED = "caused"
    DERIVED_FROM = "derived_from"
    ENABLED = "enabled"
    CONTRADICTS = "contradicts"
    SUPERSEDES = "supersedes"
    SUPPORTS = "supports"


CAUSAL = (
    LinkKind.CAUSED,
    LinkKind.DERIVED_FROM,
    LinkKind.ENABLED,
    LinkKind.CONTRADICTS,
    LinkKind.SUPERSEDES,
    LinkKind.SUPPORTS,
)
"""The six causal relations, which people declare between documents (GRA-1)."""


@dataclass(frozen=True, slots=True)
class Link:
    """One pointer from a text to whatever bears a name.

    Attributes:
        target: The name as the text gives it: a symbol, a module, an anchor, a citation key, a path or a URI.
        confidence: How sure it is that the text points there, in (0, 1]; 1 for what was declared.
        declared: Whether a person said so, rather than a parser.
    """

    kind: LinkKind
    target: str
    confidence: float = 1.0
    declared: bool = False


class RelationSource(StrEnum):
    """Who says that a relation holds."""

    DECLARED = "declared"  # a person
    AUTO = "auto"  # what reads the texts
    LEARNED = "learned"  # what people did with them


@dataclass(frozen=True, slots=True)
class Relation:
    """One causal relation between two documents, or parts of them.

    Attributes:
        uri, target: Documents by URI; with "#" and a heading, symbol or line (L12) the parts that stand there.
        at: When it was said, seconds since the epoch; None where that is not known.
    """

    uri: str
    kind: LinkKind
    target: str
    source: RelationSource = RelationSource.DECLARED
    at: float | None = None
