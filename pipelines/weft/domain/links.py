"""Links: what a document or a chunk points to, by name; who bears the name is known when all chunks are (ING-14).

Relations: what documents have to do with one another, whose names are known (GRA-1).
Citations: how much others rely on a document, here and elsewhere (CIT-1 to CIT-3).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import msgspec


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
    CO_USED = "co_used"  # found good together for one question (CON-3)
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


WHOLE_FROM = 0.5
"""Least confidence of a link whose name is whole; below it is the last name of a member of something unknown."""


@dataclass(frozen=True, slots=True)
class Link:
    """One pointer from a text to whatever bears a name."""

    kind: LinkKind
    target: str  # the name as the text gives it: a symbol, a module, an anchor, a citation key, a path or a URI
    confidence: float = 1.0  # how sure it is that the text points there, in (0, 1]; 1 for what was declared
    declared: bool = False  # whether a person said so, rather than a parser

    @property
    def whole(self) -> bool:
        """Whether the name is whole: `load` of `load()`, and not of `x.load()`, which is another thing."""
        return self.confidence >= WHOLE_FROM


class RelationSource(StrEnum):
    """Who says that a relation holds."""

    DECLARED = "declared"  # a person
    AUTO = "auto"  # what reads the texts
    LEARNED = "learned"  # what people did with them


@dataclass(frozen=True, slots=True)
class Relation:
    """One causal relation between two documents, or parts of them."""

    uri: str  # Documents by URI; with "#" and a heading, symbol or line (L12) the parts that stand there
    kind: LinkKind
    target: str
    source: RelationSource = RelationSource.DECLARED
    at: float | None = None  # when it was said, seconds since the epoch; None where that is not known


_RELATION_WORDS = {
    LinkKind.CAUSED: ("caused", "caused by"),
    LinkKind.DERIVED_FROM: ("derived from", "source of"),
    LinkKind.ENABLED: ("enabled", "enabled by"),
    LinkKind.CONTRADICTS: ("contradicts", "contradicts"),
    LinkKind.SUPERSEDES: ("supersedes", "superseded by"),
    LinkKind.SUPPORTS: ("supports", "supported by"),
}
"""Of each relation that is declared, how it is said of its own document, and of the one it leads to."""


class RelatedDocument(msgspec.Struct, frozen=True):
    """A document that stands in a causal relation with a result (GRA-1)."""

    kind: LinkKind
    uri: str
    inward: bool  # whether the relation is that document's, and leads here: what supersedes, and not what is superseded
    source: RelationSource
    at: float | None = None  # when it was said, seconds since the epoch; None where that is not known
    # whether it is said of both; else others between them contradict one another, and all are one cluster
    direct: bool = True

    @property
    def says(self) -> str:
        """What the result has to do with it, in words."""
        return (
            f"{_RELATION_WORDS[self.kind][self.inward]} {self.uri}"
            if self.direct
            else f"in one contradiction with {self.uri}"
        )


class Measure(StrEnum):
    """What is counted of a document elsewhere; each is a number >= 0 (CIT-1)."""

    CITATIONS = "citations"
    CITATIONS_A_YEAR = "citations_a_year"
    H_INDEX = "h_index"  # the highest among its authors
    PEER_REVIEWED = "peer_reviewed"  # 1 or 0
    DOWNLOADS = "downloads"  # of its package in a month
    STARS = "stars"  # of its repository


MEASURES = tuple(Measure)

Measures = Mapping[Measure, float]
"""What is known of one document; what is not known is left out."""


class Provider(StrEnum):
    """Who counts (CIT-1)."""

    SEMANTIC_SCHOLAR = "semantic_scholar"
    PYPI = "pypi"
    NPM = "npm"
    GITHUB = "github"


class Work(NamedTuple):
    """What a provider knows something of, under its name for it."""

    provider: Provider
    name: str

    def __str__(self) -> str:
        return f"{self.provider.value}:{self.name}"


class WorkCounts(msgspec.Struct, frozen=True):
    """What a provider said of a work."""

    at: float  # when it was asked, seconds since the epoch
    measures: dict[Measure, float] = {}  # empty where it knows no such work


_NAMED_BY = (
    ("doi", Provider.SEMANTIC_SCHOLAR, "DOI:"),
    ("arxiv", Provider.SEMANTIC_SCHOLAR, "ARXIV:"),
    ("arxiv_id", Provider.SEMANTIC_SCHOLAR, "ARXIV:"),
    ("corpus_id", Provider.SEMANTIC_SCHOLAR, "CorpusId:"),
    ("pypi", Provider.PYPI, ""),
    ("npm", Provider.NPM, ""),
    ("github", Provider.GITHUB, ""),
)


def works_of(declared: Mapping[str, str]) -> tuple[Work, ...]:
    """The works that a document declares to be, one of each provider at most.

    Examples:
        >>> [str(work) for work in works_of({"doi": "10.1/ab", "arxiv": "2004.14974", "pypi": "numpy", "id": "7"})]
        ['semantic_scholar:DOI:10.1/ab', 'pypi:numpy']
    """
    works: dict[Provider, Work] = {}
    for fact, provider, prefix in _NAMED_BY:
        if name := declared.get(fact, "").strip():
            works.setdefault(provider, Work(provider, f"{prefix}{name}"))
    return tuple(works.values())


class Quadrant(StrEnum):
    """Where a document is relied on: each axis is high from its bound on (CIT-3)."""

    BOTH = "both"
    INTERNAL = "internal"
    EXTERNAL = "external"
    NEITHER = "neither"


class Authority(msgspec.Struct, frozen=True):
    """How much others rely on a result."""

    quadrant: Quadrant
    value: float  # the signal `authority`, in [0, 1]
    confidence: float  # how far that is to be believed, in [0, 1], by the quadrant
    external: float  # How much it is relied on elsewhere and here, in [0, 1]
    internal: float
