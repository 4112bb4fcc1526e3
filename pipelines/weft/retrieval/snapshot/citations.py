"""How often the documents of a generation are cited, by others in it and elsewhere (CIT-1, CIT-2)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from weft.catalog.citations import CitationCounts
from weft.domain.arrays import Floats, Ints
from weft.domain.errors import StoreError
from weft.domain.links import MEASURES, Measure, works_of
from weft.indexes.chunk_store import StoredDocument
from weft.indexes.graph.graph import EdgeKind
from weft.retrieval.snapshot.ports import OpenGeneration

_CITING = [
    list(EdgeKind).index(kind)
    for kind in (EdgeKind.CITES, EdgeKind.REFERENCES, EdgeKind.IMPORTS, EdgeKind.SUPPORTS, EdgeKind.DERIVED_FROM)
]
"""Edges by which a document relies on another: citations, links and mentions, imports, and two declared relations."""

_CITATIONS = MEASURES.index(Measure.CITATIONS)


@dataclass(frozen=True, slots=True, eq=False)
class Citations:
    """Citations of documents by their number.

    Attributes:
        citing: Other documents that refer to each, int64 (documents,).
        measures: What is counted elsewhere, 0 where unknown, (documents, `MEASURES`).
    """

    citing: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    measures: Floats = field(default_factory=lambda: np.zeros((0, len(MEASURES))))

    @property
    def available(self) -> bool:
        """Whether any document is cited at all, as far as is known."""
        return bool(self.citing.any() or self.measures.any())

    def counts(self, documents: Ints) -> Floats:
        """Citations of documents: those elsewhere, or those by others here if more."""
        if not len(self.citing):
            return np.zeros(len(documents))
        return np.asarray(np.maximum(self.measures[documents, _CITATIONS], self.citing[documents]))

    def updated(self, documents: Sequence[StoredDocument], counted: CitationCounts) -> Citations:
        """The same with what providers say, in the place of what documents declare."""
        if not counted:
            return self
        measures = self.measures.copy()
        for number, document in enumerate(documents):
            for work in works_of(document.metadata):
                if (one := counted.get(str(work))) is not None:
                    for measure, count in one.measures.items():
                        measures[number, MEASURES.index(measure)] = count
        return replace(self, measures=measures)


def declared_measures(documents: Sequence[StoredDocument]) -> Floats:
    """What documents say of themselves: `citations`, and facts that are named as measures are."""
    columns = np.zeros((len(documents), len(MEASURES)))
    for number, document in enumerate(documents):
        columns[number, _CITATIONS] = document.citations or 0
        for column, measure in enumerate(MEASURES):
            if (stated := document.metadata.get(measure.value)) is not None:
                columns[number, column] = max(columns[number, column], counted(stated))
    return columns


def counted(stated: str) -> float:
    """A count as a document declares it; 0 of what is none.

    Examples:
        >>> counted("12"), counted("true"), counted("many"), counted("-3")
        (12.0, 1.0, 0.0, 0.0)
    """
    try:
        count = float({"true": "1", "yes": "1"}.get(stated.strip().casefold(), stated))
    except ValueError:
        return 0.0
    return count if 0.0 <= count < math.inf else 0.0


def citing_documents(generation: OpenGeneration) -> Ints:
    """How many other documents refer to each; a content that stands in several counts as in its first."""
    documents = len(generation.chunks.documents())
    try:
        edges = generation.graph.arrays()
    except StoreError:
        return np.zeros(documents, dtype=np.int64)
    owner, _, document = generation.chunks.occurrence_arrays(np.arange(edges.contents))
    of_row = document[np.searchsorted(owner, np.arange(edges.contents))]
    citing = np.flatnonzero(np.isin(edges.kind, _CITING) & (edges.target < edges.contents))
    source, target = of_row[edges.source[citing]], of_row[edges.target[citing]]
    pairs = np.unique((target * documents + source)[target != source])
    return np.bincount(pairs // max(1, documents), minlength=documents).astype(np.int64)
