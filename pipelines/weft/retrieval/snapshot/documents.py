"""What a generation's documents declare: columns for ranking, and which signals there are (RET-4, RET-13)."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np

from weft.catalog.citations import NO_CITATION_COUNTS, CitationCounts
from weft.domain.arrays import Flags, Floats, Ints
from weft.domain.documents import COMMITTED_AT, Domain
from weft.domain.errors import StoreError
from weft.domain.links import MEASURES, Measure, works_of
from weft.domain.ranking import Signal
from weft.indexes.chunk_store import StoredDocument
from weft.indexes.graph.graph import EdgeKind
from weft.retrieval.snapshot.asides import ASIDES, CODE, PAGES, Aside, is_aside
from weft.retrieval.snapshot.filters import (
    COMMUNITY,
    FOLDER,
    KIND,
    LEVEL,
    LEVELS,
    TIMES,
    communities_of,
    declared_names,
    is_time,
    members,
    seconds,
)
from weft.retrieval.snapshot.ports import OpenGeneration
from weft.retrieval.snapshot.translations import Translations

# How often the documents of a generation are cited, by others in it and elsewhere (CIT-1, CIT-2).

_CITING = [
    list(EdgeKind).index(kind)
    for kind in (EdgeKind.CITES, EdgeKind.REFERENCES, EdgeKind.IMPORTS, EdgeKind.SUPPORTS, EdgeKind.DERIVED_FROM)
]
"""Edges by which a document relies on another: citations, links and mentions, imports, and two declared relations."""

_CITATIONS = MEASURES.index(Measure.CITATIONS)


@dataclass(frozen=True, slots=True, eq=False)
class Citations:
    """Citations of documents by their number."""

    # other documents that refer to each, (documents,)
    citing: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    # what is counted elsewhere, 0 where unknown
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
    """A count as a document declares it; 0 of what is none."""
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


Value = TypeVar("Value", bound=Hashable)

DOMAINS = tuple(Domain)
"""Domains in the order in which columns number them."""

_FUNCTIONS = ["function", "method", "block"]


@dataclass(frozen=True, slots=True, eq=False)
class Categorical(Generic[Value]):
    """A column of few distinct values; `code` is the place in `distinct` by document, (documents,)."""

    distinct: Sequence[Value]
    code: Ints

    @classmethod
    def of(cls, values: Iterable[Value]) -> Categorical[Value]:
        """A column of these values."""
        places: dict[Value, int] = {}
        code = np.array([places.setdefault(value, len(places)) for value in values], dtype=np.int64)
        return cls(list(places), code)

    def map(self, documents: Ints, number_of: Callable[[Value], float | None]) -> Floats:
        """A number for the value of each of some documents; NaN where there is none."""
        present, of_document = np.unique(self.code[documents], return_inverse=True)
        numbers = [number_of(self.distinct[at]) for at in present.tolist()]
        return np.array(numbers, dtype=np.float64)[of_document]  # None becomes NaN


@dataclass(frozen=True, slots=True, eq=False)
class Documents:
    """Every document of a generation, by its number."""

    facts: Sequence[StoredDocument]
    domain: Ints  # place in `DOMAINS`, (documents,)
    # when it was changed last, seconds since the epoch; without a date the middle of its domain, or of all dates
    # where its domain has none. NaN where nothing has a date, (documents,)
    dated_at: Floats
    # of the last commit that touched what it was taken from, where that is later than it was changed; else
    # −inf, shape (documents,)
    committed_at: Floats
    indexed_at: Floats  # when it was first indexed, seconds since the epoch, (documents,)
    trust_level: Ints  # 0 to 100, (documents,)
    measures: Floats  # how often others cite it, as far as it declares that; 0 where unknown, (documents, `MEASURES`)
    source: Categorical[str]  # the type of source that trust is learned by
    tier: Categorical[str | None]
    validation: Categorical[str | None]
    intent: Categorical[str | None]

    @classmethod
    def of(cls, facts: Sequence[StoredDocument], *, created_at: float = 0.0) -> Documents:
        """The columns of these documents."""
        places = {domain: at for at, domain in enumerate(DOMAINS)}
        domain = np.array([places[each.domain] for each in facts], dtype=np.int64)
        modified_at = np.array([each.modified_at for each in facts], dtype=np.float64)
        indexed_at = [created_at if each.indexed_at is None else each.indexed_at for each in facts]
        return cls(
            facts,
            domain=domain,
            dated_at=with_median_dates(modified_at, domain),
            committed_at=np.array([_committed_after(each) for each in facts], dtype=np.float64),
            indexed_at=np.array(indexed_at, dtype=np.float64),
            trust_level=np.array([each.trust_level for each in facts], dtype=np.int64),
            measures=declared_measures(facts),
            source=Categorical.of(each.metadata.get("source_type", each.content_type.value) for each in facts),
            tier=Categorical.of(each.tier for each in facts),
            validation=Categorical.of(each.validation for each in facts),
            intent=Categorical.of(each.intent for each in facts),
        )

    def uri(self, number: int) -> str:
        """The document of that number."""
        return self.facts[number].uri


def with_median_dates(modified_at: Floats, domain: Ints) -> Floats:
    """Times, and for those not known, NaN, the middle one of their domain, or of all where their domain has none.

    Examples:
        >>> nan = float("nan")
        >>> with_median_dates(np.array([1.0, 5.0, 9.0, nan, nan]), np.array([0, 0, 0, 0, 1])).tolist()
        [1.0, 5.0, 9.0, 5.0, 5.0]
        >>> with_median_dates(np.array([nan]), np.array([0])).tolist()
        [nan]
    """
    given = ~np.isnan(modified_at)
    if not given.any():
        return modified_at
    dated = np.where(given, modified_at, np.median(modified_at[given]))
    for at in np.unique(domain[~given]).tolist():
        if len(times := modified_at[given & (domain == at)]):
            dated[~given & (domain == at)] = np.median(times)
    return dated


def _committed_after(facts: StoredDocument) -> float:
    """When a later commit touched what a document was taken from; −inf where none is known to have."""
    declared = facts.metadata.get(COMMITTED_AT)
    if declared is None or facts.modified_at is None or not is_time(declared):
        return -math.inf
    return when if (when := seconds(declared)) > facts.modified_at else -math.inf


@dataclass(frozen=True, eq=False)
class GenerationFacts:
    """Which facts a query may ask for, and which signals this generation has."""

    values: Mapping[str, frozenset[str]] = field(default_factory=dict)  # of facts that documents share, by name
    available_signals: frozenset[Signal] = frozenset()  # that at least one document says something about
    citations: Citations = field(default_factory=Citations)
    structure: np.ndarray = field(default_factory=lambda: np.ones(0))  # how whole each chunk is, by place
    # place of each chunk's parent, −1 where it has none; they lead in no circle
    parents: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    documents: Documents = field(default_factory=lambda: Documents.of(()))
    # of contents by row: how much alone each stands, and by how much its degree changed of late; empty where unknown
    isolation: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.float32))
    momentum: np.ndarray = field(default_factory=lambda: np.zeros(0))
    # which documents are of a kind that stands aside, bool (documents,); kinds that none is of are left out
    asides: Mapping[Aside, Flags] = field(default_factory=dict)
    # whether each chunk is a function or a part of something that long, by place
    functions: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=bool))
    translations: Translations | None = None  # which documents say the same in several languages; None where none do

    @cached_property
    def pages(self) -> Flags:
        """Which documents are pages of text, bool (documents,)."""
        return np.array([each.content_type in PAGES for each in self.documents.facts], dtype=bool)

    @property
    def code_asides(self) -> Flags:
        """Which documents are code that stands aside: tests, examples."""
        none = np.zeros(len(self.documents.facts), dtype=bool)
        return np.asarray(
            np.logical_or.reduce([none, *(flags for kind, flags in self.asides.items() if ASIDES[kind].types is CODE)])
        )

    def has_value(self, name: str, value: str) -> bool:
        """Whether any document has that value under that name, or lies in that folder; of times, whether it is one."""
        return is_time(value) if name in TIMES else value in self.values.get(name, ())


def read_facts(
    generation: OpenGeneration,
    encoder: str,  # the one by whose vectors contents stand alone or not
    *,
    counted: CitationCounts = NO_CITATION_COUNTS,  # what providers say of works
) -> GenerationFacts:
    """What a generation's documents declare, and how often they cite one another."""
    documents = generation.chunks.documents()
    isolation, momentum = _isolation(generation, encoder), _momentum(generation)
    columns = Documents.of(documents, created_at=generation.created_at)
    citations = Citations(citing_documents(generation), columns.measures).updated(documents, counted)
    values = shared_values(fact for document in documents for fact in _declared(document))
    declared = declared_names(documents)
    if COMMUNITY not in declared and (communities := communities_of(generation)) is not None:
        values[COMMUNITY] = frozenset(map(str, set(communities.tolist()) - {-1}))
    if LEVEL not in declared:
        values[LEVEL] = LEVELS
    if KIND not in declared:
        values[KIND] = frozenset(map(str, set(generation.chunks.kinds()[0])))
    structure, parents = generation.chunks.structure(), without_cycles(generation.chunks.parents())
    available = {
        # Where all are equally new, or old, it tells none from another.
        Signal.NOVELTY: len({each.indexed_at for each in documents}) > 1,
        Signal.TIER: any(each.tier is not None for each in documents),
        Signal.VALIDATION: any(each.validation is not None for each in documents),
        Signal.CONGRUENCE: any(each.intent is not None for each in documents),
        Signal.AUTHORITY: citations.available,
        Signal.STRUCTURE: structure.min(initial=1.0) < 1.0,
        Signal.PROPAGATED: parents.max(initial=-1) >= 0,
        Signal.ISOLATION: len(isolation) > 0,
        Signal.MOMENTUM: len(momentum) > 0,
    }
    signals = frozenset(signal for signal, is_available in available.items() if is_available)
    flags = {kind: np.array([is_aside(each, kind) for each in documents], dtype=bool) for kind in Aside}
    some = {kind: of_kind for kind, of_kind in flags.items() if of_kind.any()}
    functions = np.isin(generation.chunks.kinds()[0], _FUNCTIONS)
    return GenerationFacts(
        values,
        signals,
        citations,
        structure,
        parents,
        columns,
        isolation,
        momentum,
        some,
        functions,
        Translations.of(documents),
    )


MOST_VALUES = 1000
"""Values of one name that documents declare: what has more, such as an id, is none that a query filters by."""


def shared_values(declared: Iterable[tuple[str, str]], *, most: int = MOST_VALUES) -> dict[str, frozenset[str]]:
    """Values by name of the facts that documents share.

    Examples:
        >>> sorted(shared_values([("folder", "a/b")], most=1)["folder"])
        ['a', 'a/b']
        >>> sorted(shared_values([("team", "core"), ("id", "1"), ("id", "2")], most=1))
        ['team']
        >>> sorted(shared_values([("tags", '["red"]')], most=2)["tags"])
        ['["red"]', 'red']
    """
    values: dict[str, set[str]] = {}
    for name, value in declared:
        held = values.setdefault(name, set())
        if name == FOLDER:
            parts = value.split("/")
            held.update("/".join(parts[:depth]) for depth in range(1, len(parts) + 1))
        elif len(held) <= most:
            held.update((value, *members(value)))
    return {name: frozenset(held) for name, held in values.items() if name == FOLDER or len(held) <= most}


def without_cycles(parents: np.ndarray) -> np.ndarray:
    """Parents of chunks by place, without those that lead in a circle and never to a top.

    Examples:
        >>> without_cycles(np.array([-1, 0, 1, 4, 3])).tolist()
        [-1, 0, 1, -1, -1]
    """
    above = parents
    for _ in range(len(parents).bit_length()):  # twice as far up each time
        above = np.where(above >= 0, above[above], -1)
    return np.where(above >= 0, -1, parents)


def _declared(document: StoredDocument) -> Iterator[tuple[str, str]]:
    yield "domain", document.domain.value
    yield "type", document.content_type.value
    if document.language is not None:
        yield "language", document.language
    yield from document.metadata.items()


def _momentum(generation: OpenGeneration) -> np.ndarray:
    try:
        changes = generation.graph.degree_changes()
    except StoreError:  # built without a graph
        changes = None
    return np.zeros(0) if changes is None or np.isnan(changes).all() else changes


def _isolation(generation: OpenGeneration, encoder: str) -> np.ndarray:
    try:
        isolation = generation.dense(encoder).isolation
    except StoreError:
        isolation = None
    return np.zeros(0, dtype=np.float32) if isolation is None else isolation
