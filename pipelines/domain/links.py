"""Links: what a document or a chunk points to, by name; who bears the name is known when all chunks are (ING-14)."""

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
