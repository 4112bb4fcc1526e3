"""A generation, an encoder and beliefs in memory, for tests of retrieval."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tests.support.memory_graph import MemoryGraph
from tests.support.words_spoken import PRIORS, precedents_of
from weft.domain.chunks import Chunk, ChunkLabel
from weft.domain.documents import ContentType, Domain
from weft.domain.ids import ContentHash, GenerationId, QueryId, VersionName, chunk_id, content_hash
from weft.domain.ranking import Query, Scope, Signal, WeightBelief
from weft.embedding.late_interaction import quantised
from weft.indexes.chunk_store import DefinedPlace
from weft.indexes.former_places import FormerPlaces
from weft.indexes.rows import RowSet
from weft.learning.aliases import NO_ALIASES
from weft.learning.calibration.scores import ScoreCalibration
from weft.learning.evidence import Evidence
from weft.learning.observe.accuracy import Checks, read_checks
from weft.learning.observe.citations import CitationsByUse
from weft.learning.observe.triggers import LearnedTriggers
from weft.learning.parts import LearnedVersion, parts_of
from weft.retrieval.channels.run import Hits
from weft.retrieval.searcher import Searcher
from weft.retrieval.settings import RetrievalSettings
from weft.retrieval.snapshot.filters import RowFilter
from weft.retrieval.snapshot.snapshot import Snapshot
from weft.settings import load_settings

NOW = 1_699_999_200.0  # a whole hour: ages are counted in such steps


@dataclass(frozen=True, slots=True, kw_only=True)
class APlace:
    """One occurrence of a content."""

    chunk: Chunk
    uri: str
    title: str | None = None
    domain: Domain = Domain.GENERAL
    content_type: ContentType = ContentType.TEXT
    language: str | None = None
    modified_at: float | None = None
    trust_level: int = 50
    metadata: Mapping[str, str] = field(default_factory=dict)
    triggers: tuple[str, ...] = ()
    intent: str | None = None
    tier: str | None = None
    validation: str | None = None
    citations: int | None = None
    indexed_at: float | None = None
    place: int = 0

    @property
    def facts(self) -> APlace:
        return self

    @property
    def label(self) -> ChunkLabel:
        return ChunkLabel(*(getattr(self.chunk, name) for name in ChunkLabel._fields))


@dataclass(frozen=True, slots=True)
class AContent:
    """One content and its places."""

    row: int
    content_hash: ContentHash
    text: str
    occurrences: tuple[APlace, ...]


def a_place(uri: str, text: str, **facts: Any) -> APlace:
    sequence = facts.pop("sequence", 0)
    chunk = Chunk(
        chunk_id=chunk_id(uri, text),
        content_hash=content_hash(text),
        uri=uri,
        text=text,
        kind="record",
        level=0,
        sequence=sequence,
        parent_id=None,
        previous_id=None,
        next_id=None,
        start_byte=0,
        end_byte=len(text.encode()),
        start_line=1,
        end_line=1,
        tokens=len(text.split()),
        characters=len(text),
    )
    return APlace(chunk=chunk, uri=uri, **facts)


class WordEncoder:
    """Counts of known words, normalised: cosine is word overlap. Any other text gets the first axis."""

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self.name = "words"
        self._axis = {word: index for index, word in enumerate(vocabulary, start=1)}

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        vectors = np.zeros((len(texts), len(self._axis) + 1), dtype=np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            for word in text.split():
                vector[self._axis.get(word, 0)] += 1.0
            vector[0] += 1e-3
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def encode_tokens(self, texts: Sequence[str], keep: Callable[[np.ndarray], np.ndarray]):
        """Each word is a token, whose state is the vector of that word alone."""
        return self.encode(texts), [
            keep(self.encode(words) if (words := text.split()) else np.zeros((0, len(self._axis) + 1)))
            for text in texts
        ]


class WordTokens:
    """Token embeddings of some texts: a token for each word."""

    def __init__(self, encoder: WordEncoder, texts: Sequence[str]) -> None:
        self.projection = np.eye(len(encoder.encode([""])[0]), dtype=np.float32)
        self._tokens = [quantised(states) for states in encoder.encode_tokens(texts, np.asarray)[1]]

    def gathered(self, rows: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        found = [self._tokens[row] for row in rows]
        return np.concatenate(found), np.array([len(tokens) for tokens in found], dtype=np.int64)


class ExactIndex:
    """Inner products with every vector."""

    def __init__(self, stored: np.ndarray, isolation: np.ndarray | None = None) -> None:
        self._stored = stored
        self.isolation = isolation

    def search(self, vectors: np.ndarray, k: int, among: RowSet | None = None) -> tuple[np.ndarray, np.ndarray]:
        # Summed pair by pair: a product of matrices rounds a pair differently in other company.
        cosines = (vectors[:, None, :] * self._stored).sum(axis=2)
        if among is not None:
            rows = among.rows[np.argsort(-cosines[:, among.rows], axis=1, kind="stable")[:, :k]]
            return rows, np.take_along_axis(cosines, rows, axis=1)
        rows = np.argsort(-cosines, axis=1, kind="stable")[:, :k]
        padding = ((0, 0), (0, k - rows.shape[1]))
        scores = np.take_along_axis(cosines, rows, axis=1)
        return np.pad(rows, padding, constant_values=-1), np.pad(scores, padding)

    def vectors(self, rows: Sequence[int]) -> np.ndarray:
        return self._stored[list(rows)]


class WordIndex:
    """How many of the query's words a content holds."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._words = [frozenset(text.split()) for text in texts]

    def search_many(
        self, texts: Sequence[str], k: int, among: Sequence[RowSet | None]
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        return [self._search(set(text.split()), k, rows) for text, rows in zip(texts, among, strict=True)]

    def share_of(self, word: str) -> float:
        return sum(word in words for words in self._words) / len(self._words)

    def unknown_words(self, query: str) -> tuple[str, ...]:
        return tuple(each for each in dict.fromkeys(query.split()) if not any(each in held for held in self._words))

    def holding(self, words: str, phrase: bool) -> np.ndarray | None:
        wanted = set(words.split())
        return np.array([wanted <= held for held in self._words])

    def _search(self, words: set[str], k: int, among: RowSet | None) -> tuple[np.ndarray, np.ndarray]:
        rows = range(len(self._words)) if among is None else among.rows.tolist()
        hits = [(row, float(len(words & self._words[row]))) for row in rows if words & self._words[row]]
        found = Hits.of(sorted(hits, key=lambda hit: (-hit[1], hit[0]))[:k])
        return found.rows, found.scores


class FailingIndex:
    """Never answers well: raises, or takes too long."""

    def __init__(self, delay_s: float = 0.0) -> None:
        self._delay_s = delay_s

    def search_many(
        self, texts: Sequence[str], k: int, among: Sequence[RowSet | None]
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        time.sleep(self._delay_s)
        raise OSError("the index is gone")


class MemoryChunks:
    """Contents by row."""

    def __init__(self, held: Sequence[AContent]) -> None:
        self._held = held
        self.former_places = FormerPlaces(None)

    def __len__(self) -> int:
        return len(self._held)

    def trigger_phrases(self) -> list[tuple[str, tuple[int, ...]]]:
        phrases: dict[tuple[str, str], list[tuple[int, int]]] = {}
        for item in self._held:
            for place in item.occurrences:
                for phrase in place.triggers:
                    phrases.setdefault((phrase, place.uri), []).append((place.chunk.sequence, item.row))
        return [(phrase, tuple(row for _, row in sorted(rows))) for (phrase, _), rows in phrases.items()]

    def row_of(self, content_hash: ContentHash) -> int | None:
        return next((item.row for item in self._held if item.content_hash == content_hash), None)

    def rows_of(self, hashes: Sequence[str]) -> np.ndarray:
        rows = {str(item.content_hash): item.row for item in self._held}
        return np.array([rows.get(each, -1) for each in hashes], dtype=np.int64)

    def revisions_of(self, _content_hash: str) -> tuple[int, ...]:
        return ()

    def chunks_of_document(self, uri: str) -> list[Chunk]:
        found = [place.chunk for item in self._held for place in item.occurrences if place.uri == uri]
        return sorted(found, key=lambda chunk: chunk.sequence)

    def uri_and_sequence(self, chunk_ids: Sequence[str]) -> dict[str, tuple[str, int]]:
        chunks = [place.chunk for place in self._by_place()]
        return {str(one.chunk_id): (one.uri, one.sequence) for one in chunks if one.chunk_id in chunk_ids}

    def documents(self) -> list[APlace]:
        return list({place.uri: place for place in reversed(self._by_place())}.values())[::-1]

    def occurrence_arrays(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        number = {place.uri: at for at, place in enumerate(self.documents())}
        found = [(at, place) for at, row in enumerate(rows) for place in self._held[row].occurrences]
        columns = [(at, place.place, number[place.uri]) for at, place in found]
        return tuple(np.array(columns, dtype=np.int64).reshape(-1, 3).T)  # type: ignore[return-value]

    def defining(self, name: str, *, most: int) -> list[DefinedPlace]:
        found = []
        for item in self._held:
            for place in item.occurrences:
                symbol = place.chunk.symbol or ""
                bears, begins = symbol.rpartition(".")[2] == name, name in place.chunk.defines
                if bears or begins:
                    numbers = {each.uri: at for at, each in enumerate(self.documents())}
                    told = (place.chunk.kind, symbol, place.chunk.signature or "", bears, begins)
                    found.append(DefinedPlace(item.row, numbers[place.uri], *told))
        return found if len(found) <= most else []

    def structure(self) -> np.ndarray:
        return np.array([place.chunk.parse_quality * place.chunk.completeness for place in self._by_place()])

    def heading_path(self, place: int) -> tuple[str, ...]:
        return tuple(self._by_place()[place].chunk.heading_path)

    def parents(self) -> np.ndarray:
        places = {place.chunk.chunk_id: place.place for place in self._by_place()}
        return np.array([places.get(place.chunk.parent_id, -1) for place in self._by_place()], dtype=np.int64)

    def _by_place(self) -> list[APlace]:
        places = [place for item in self._held for place in item.occurrences]
        return sorted(places, key=lambda place: place.place)

    def rows_of_tiers(self, tiers: Collection[str]) -> set[int]:
        return {item.row for item in self._held if any(place.tier in tiers for place in item.occurrences)}

    def contents(self, rows: Sequence[int]) -> list[AContent]:
        return [self._held[row] for row in rows]

    def mask(self, holds: Callable[[APlace], bool]) -> np.ndarray:
        return np.array([any(map(holds, item.occurrences)) for item in self._held])

    def kinds(self) -> tuple[np.ndarray, np.ndarray]:
        chunks = [place.chunk for place in self._by_place()]
        return np.array([each.kind for each in chunks]), np.array([each.level for each in chunks], dtype=np.int32)

    def mask_of_kinds(self, holds: Callable[[str, int], bool]) -> np.ndarray:
        return self.mask(lambda place: holds(place.chunk.kind, place.chunk.level))

    def mask_of_attribute(self, name: str) -> np.ndarray:
        return self.mask(lambda place: name in place.chunk.attributes)


class MemoryGeneration:
    """A generation of a few texts: `documents` maps a URI to the texts of its chunks."""

    def __init__(self, documents: Mapping[str, Sequence[str]], facts: Mapping[str, Mapping[str, object]] = {}) -> None:
        places: dict[str, list[APlace]] = {}
        for uri, texts in documents.items():
            for sequence, text in enumerate(texts):
                known = {"sequence": sequence, "place": sum(map(len, places.values())), **facts.get(uri, {})}
                places.setdefault(text, []).append(a_place(uri, text, **known))
        by_hash = sorted((content_hash(text), text) for text in places)
        self.held = [AContent(row, digest, text, tuple(places[text])) for row, (digest, text) in enumerate(by_hash)]
        self.encoder = WordEncoder(sorted({word for text in places for word in text.split()}))
        self.lexical: object = WordIndex([item.text for item in self.held])
        self.chunks = MemoryChunks(self.held)
        self.graph: object = MemoryGraph(len(self.held))
        self.keeps_tokens = True
        self.created_at = NOW
        self.isolation: np.ndarray | None = None

    def row_of(self, text: str) -> int:
        return [item.text for item in self.held].index(text)

    @property
    def contents(self) -> list[ContentHash]:
        return [item.content_hash for item in self.held]

    def dense(self, encoder: str) -> ExactIndex:
        return ExactIndex(self.encoder.encode([item.text for item in self.held]), self.isolation)

    def tokens(self, encoder: str) -> WordTokens | None:
        return WordTokens(self.encoder, [item.text for item in self.held]) if self.keeps_tokens else None


_NOTHING_SAID = precedents_of()


class EvenBeliefs:
    """Every active signal weighs the same; draws are uniform shares.

    Args:
        said: What people called contents before.
    """

    aliases = NO_ALIASES
    triggers = LearnedTriggers([])
    checks = read_checks(Evidence(), 0, 30.0)

    def checked(self, believed: np.ndarray, checks: Checks) -> np.ndarray:
        return believed

    def __init__(self, *said: Evidence) -> None:
        self.precedents = precedents_of(*said) if said else _NOTHING_SAID

    def trust_multiplier(self, source: str, model: str) -> float:
        return 1.0

    def weights(self, scope: Scope, active: Collection[Signal]) -> Mapping[Signal, WeightBelief]:
        return {signal: WeightBelief(1 / len(active), 0.0, 1.0, 3.0, "prior") for signal in active}

    def sampled_weights(
        self, scope: Scope, active: Collection[Signal], rng: np.random.Generator
    ) -> Mapping[Signal, float]:
        drawn = rng.dirichlet(np.ones(len(active)))
        return dict(zip(sorted(active), drawn.tolist(), strict=True))

    def weight_draws(self, scope: Scope, active: Collection[Signal], n: int) -> Mapping[Signal, np.ndarray]:
        drawn = np.random.default_rng(7).dirichlet(np.ones(len(active)), size=n)
        return {signal: drawn[:, place] for place, signal in enumerate(sorted(active))}

    near = PRIORS.near
    authority = PRIORS.authority
    declared = PRIORS.declared
    citations = CitationsByUse(PRIORS.authority.internal, Evidence())
    interval = PRIORS.interval.level

    def freshness_many(self, domain: Domain, ages_hours: np.ndarray) -> np.ndarray:
        return np.where(np.isnan(ages_hours), 0.5, 2.0 ** (-ages_hours / 24.0))

    def acting_threshold(self, domain: Domain, agent: str) -> float | None:
        return None

    def threshold_moved(self, domain: Domain, agent: str) -> float:
        return 0.0

    def examined(self, domain: Domain, rank: int) -> float:
        return 1.0 / rank


class MemorySource:
    """Says what is live from memory; `generations` are taken in turn as the token moves on."""

    def __init__(self, *generations: MemoryGeneration, calibration: ScoreCalibration | None = None) -> None:
        self._generations = generations
        self._calibration = calibration
        self.version = 0

    def token(self) -> Hashable:
        return self.version

    def take(self, previous: Snapshot | None) -> Snapshot:
        generation = self._generations[self.version]
        return replace(
            a_snapshot(generation, GenerationId(f"gen-{self.version}")),
            learned=LearnedVersion(Evidence(), parts_of(self._calibration)),
        )


def a_snapshot(generation: MemoryGeneration, generation_id: GenerationId) -> Snapshot:
    filters, learned = RowFilter(generation.chunks), LearnedVersion(Evidence())
    name = VersionName("none")
    return Snapshot(generation_id, generation, filters, name, learned, EvenBeliefs())  # type: ignore[arg-type]


def having_said(searcher: Searcher, *said: Evidence) -> Searcher:
    """The same, once people have called contents right or wrong."""
    object.__setattr__(searcher.snapshot, "beliefs", EvenBeliefs(*said))
    return searcher


def settings(**changes: object) -> RetrievalSettings:
    base = load_settings(environment={}).retrieval
    return RetrievalSettings.model_validate({**base.model_dump(), **changes})


def a_query(text: str, k: int = 10, query_id: str = "q-1", **more: object) -> Query:
    return Query(text=text, query_id=QueryId(query_id), k=k, **more)  # type: ignore[arg-type]


def a_searcher(
    *generations: MemoryGeneration,
    clock: float = NOW,
    further: Sequence[WordEncoder] = (),
    calibration: ScoreCalibration | None = None,
    **changes: object,
) -> Searcher:
    encoder, tuned = generations[0].encoder, settings(**changes)
    source = MemorySource(*generations, calibration=calibration)
    return Searcher(source, encoder, tuned, clock=lambda: clock, further=further)
