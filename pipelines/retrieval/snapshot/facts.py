"""What the documents of a generation declare, read once when it is opened (RET-4, RET-13)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from pipelines.domain.errors import StoreError
from pipelines.domain.ranking import Signal
from pipelines.indexes.graph.graph import EdgeKind
from pipelines.retrieval.snapshot.documents import NO_DOCUMENTS, Documents
from pipelines.retrieval.snapshot.filters import TIMES, is_time
from pipelines.retrieval.snapshot.ports import DeclaredFacts, OpenGeneration

FOLDER = "folder"
"""Name under which a document's folder is a fact."""

_CITES = list(EdgeKind).index(EdgeKind.CITES)


@dataclass(frozen=True, slots=True, eq=False)
class GenerationFacts:
    """Which facts a query may ask for, and which signals this generation can tell.

    Attributes:
        values: Values by name of every fact that documents share; what tells single documents apart is left out.
        available_signals: Signals of quality that at least one document says something about.
        cited: How often other contents cite each content, int64 (contents,).
        most_cited: The most citations that any document has.
        structure: How whole each chunk is, by place, float64 (chunks,).
        parents: Place of each chunk's parent, int64 (chunks,); −1 where it has none. They lead in no circle.
        documents: Every document, by its number.
        isolation: How much alone each content stands, float32 (contents,); empty where that is not known.
    """

    values: Mapping[str, frozenset[str]] = field(default_factory=dict)
    available_signals: frozenset[Signal] = frozenset()
    cited: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    most_cited: int = 0
    structure: np.ndarray = field(default_factory=lambda: np.ones(0))
    parents: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    documents: Documents = NO_DOCUMENTS
    isolation: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.float32))

    def known(self, name: str, value: str) -> bool:
        """Whether any document has that value under that name, or lies in that folder; of times, whether it is one."""
        return is_time(value) if name in TIMES else value in self.values.get(name, ())

    def authority(self, rows: np.ndarray, citations: np.ndarray) -> np.ndarray:
        """log(1 + c) / log(1 + c_max), where c are the citations that are declared, or found if those are more."""
        if not self.most_cited:
            return np.zeros(len(rows))
        found = self.cited[rows] if len(self.cited) else np.zeros(len(rows), dtype=np.int64)
        counts, of_row = np.unique(np.maximum(found, citations), return_inverse=True)
        most = math.log1p(self.most_cited)
        return np.array([math.log1p(count) / most for count in counts.tolist()])[of_row]


NO_FACTS = GenerationFacts()
"""Of a generation whose documents declare nothing."""


def read_facts(generation: OpenGeneration, encoder: str, *, most: int) -> GenerationFacts:
    """What a generation's documents declare, and how often they cite one another.

    Args:
        encoder: The one by whose vectors contents stand alone or not.
        most: Values of a name above which it is none that one filters by.
    """
    documents = generation.chunks.documents()
    cited = _cited(generation)
    most_cited = max([int(cited.max(initial=0)), *(each.citations or 0 for each in documents)])
    values = shared_values((fact for document in documents for fact in _declared(document)), most=most)
    structure, parents = generation.chunks.structure(), rooted(generation.chunks.parents())
    tells = {signal for document in documents for signal in _told(document)}
    tells |= {Signal.AUTHORITY} if most_cited else set()
    tells |= {Signal.STRUCTURE} if structure.min(initial=1.0) < 1.0 else set()
    tells |= {Signal.PROPAGATED} if parents.max(initial=-1) >= 0 else set()
    isolation = _isolation(generation, encoder)
    tells |= {Signal.ISOLATION} if len(isolation) else set()
    return GenerationFacts(
        values, frozenset(tells), cited, most_cited, structure, parents, Documents.of(documents), isolation
    )


def shared_values(declared: Iterable[tuple[str, str]], *, most: int) -> dict[str, frozenset[str]]:
    """Values by name of the facts that documents share.

    Examples:
        >>> sorted(shared_values([("folder", "a/b")], most=1)["folder"])
        ['a', 'a/b']
        >>> sorted(shared_values([("team", "core"), ("id", "1"), ("id", "2")], most=1))
        ['team']
    """
    values: dict[str, set[str]] = {}
    for name, value in declared:
        held = values.setdefault(name, set())
        if name == FOLDER:
            held.update(_ancestors(value))
        elif len(held) <= most:
            held.add(value)
    return {name: frozenset(held) for name, held in values.items() if name == FOLDER or len(held) <= most}


def rooted(parents: np.ndarray) -> np.ndarray:
    """Parents of chunks by place, without those that lead in a circle and never to a top.

    Examples:
        >>> rooted(np.array([-1, 0, 1, 4, 3])).tolist()
        [-1, 0, 1, -1, -1]
    """
    above = parents
    for _ in range(len(parents).bit_length()):  # twice as far up each time
        above = np.where(above >= 0, above[above], -1)
    return np.where(above >= 0, -1, parents)


def _declared(document: DeclaredFacts) -> Iterator[tuple[str, str]]:
    yield "domain", document.domain.value
    yield "type", document.content_type.value
    if document.language is not None:
        yield "language", document.language
    yield from document.metadata.items()


def _told(document: DeclaredFacts) -> Iterator[Signal]:
    if document.modified_at is not None:
        yield Signal.NOVELTY
    if document.tier is not None:
        yield Signal.TIER
    if document.validation is not None:
        yield Signal.VALIDATION
    if document.intent is not None:
        yield Signal.CONGRUENCE


def _isolation(generation: OpenGeneration, encoder: str) -> np.ndarray:
    try:
        told = generation.dense(encoder).isolation
    except StoreError:
        told = None
    return np.zeros(0, dtype=np.float32) if told is None else told


def _cited(generation: OpenGeneration) -> np.ndarray:
    try:
        edges = generation.graph.arrays()
    except StoreError:
        return np.zeros(0, dtype=np.int64)
    counts: np.ndarray = np.bincount(edges.target[edges.kind == _CITES], minlength=edges.contents)[: edges.contents]
    return counts


def _ancestors(folder: str) -> Iterator[str]:
    parts = folder.split("/")
    return ("/".join(parts[:depth]) for depth in range(1, len(parts) + 1))
