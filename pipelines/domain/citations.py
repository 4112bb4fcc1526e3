"""How much others rely on a document, here and elsewhere (CIT-1 to CIT-3)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

import msgspec


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


class CountedWork(msgspec.Struct, frozen=True):
    """What a provider said of a work.

    Attributes:
        at: When it was asked, seconds since the epoch.
        measures: Empty where it knows no such work.
    """

    at: float
    measures: dict[Measure, float] = {}


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
    """How much others rely on a result.

    Attributes:
        value: The signal `authority`, in [0, 1].
        confidence: How far that is to be believed, in [0, 1], by the quadrant.
        external, internal: How much it is relied on elsewhere and here, in [0, 1].
    """

    quadrant: Quadrant
    value: float
    confidence: float
    external: float
    internal: float
