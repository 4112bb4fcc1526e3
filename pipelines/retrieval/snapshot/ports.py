"""What retrieval needs of others, declared here and fulfilled elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np

from pipelines.domain.chunks import Chunk, ChunkLabel
from pipelines.domain.documents import ContentType, Domain
from pipelines.domain.ids import ContentHash
from pipelines.domain.ranking import Answer, Scope, Signal, WeightBelief
from pipelines.indexes.graph.graph import Direction, EdgeArrays, EdgeKind, Neighbour
from pipelines.indexes.rows import RowSet
from pipelines.learning.calibration.matching import MatchCalibration
from pipelines.learning.observe.triggers import LearnedTriggers


class QueryEncoder(Protocol):
    """Turns texts into unit vectors; called once per batch of queries."""

    @property
    def name(self) -> str:
        """The encoder's id: its vectors are kept in a generation under this name."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors of texts: float32 (n_texts, dimension), unit rows."""

    def encode_tokens(
        self, texts: Sequence[str], keep: Callable[[np.ndarray], np.ndarray]
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """The same vectors, and what is kept of each text's token states, float32 (tokens, width)."""


class PairScorer(Protocol):
    """Reads a query and a text together."""

    def score(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """How well each text answers the query, in [0, 1]; ModelUnavailableError where it fails."""


class VectorIndex(Protocol):
    """Nearest contents by cosine, of one encoder."""

    @property
    def isolation(self) -> np.ndarray | None:
        """How much alone each content stands, float32 (contents,) in [0, 1]; None where that is not known."""

    def search(self, vectors: np.ndarray, k: int, among: RowSet | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Rows, int64 (n, k), and cosines, float32 (n, k), best first; row −1 pads. `among`: all that may be found."""

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """Stored vectors, float32 (n_rows, dimension), unit rows."""


class TokenEmbeddings(Protocol):
    """Stored token embeddings of contents, of one encoder."""

    @property
    def projection(self) -> np.ndarray:
        """What a query's token states are multiplied by, float32 (width, width stored)."""

    def gathered(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The tokens of contents, one content's after the other's, int8 (tokens, width stored), directions of any
        length; and how many each has, int64 (n_rows,).
        """


class TextIndex(Protocol):
    """Best contents by BM25."""

    def search_many(
        self, texts: Sequence[str], k: int, threads: int, among: Sequence[RowSet | None]
    ) -> Sequence[tuple[np.ndarray, np.ndarray]]:
        """Rows, int64, and scores, float64, per text, best first, ties by row. `among`: all that each may find."""


class DocumentFacts(Protocol):
    """What is known of one document: what filters and quality look at."""

    @property
    def uri(self) -> str:
        """The document."""

    @property
    def domain(self) -> Domain:
        """The document's domain."""

    @property
    def content_type(self) -> ContentType:
        """How the document was cut; the type of its source where it declares none."""

    @property
    def language(self) -> str | None:
        """Of code or of people, None where unknown."""

    @property
    def modified_at(self) -> float | None:
        """Seconds since the epoch, None where unknown."""

    @property
    def trust_level(self) -> int:
        """0 to 100."""

    @property
    def metadata(self) -> Mapping[str, str]:
        """Declared facts: what filters compare."""


class DeclaredFacts(DocumentFacts, Protocol):
    """All that a document says of itself."""

    @property
    def intent(self) -> str | None:
        """Why it was stored, as declared."""

    @property
    def tier(self) -> str | None:
        """How important it is, as declared."""

    @property
    def validation(self) -> str | None:
        """How far it was checked, as declared."""

    @property
    def citations(self) -> int | None:
        """How often others cite it, where that is known."""


class StoredOccurrence(DocumentFacts, Protocol):
    """One place where a content stands, with the facts of its document."""

    @property
    def chunk(self) -> Chunk:
        """The chunk at that place."""

    @property
    def label(self) -> ChunkLabel:
        """What is said of a result at that place."""

    @property
    def place(self) -> int:
        """The chunk's number in its generation."""

    @property
    def facts(self) -> DeclaredFacts:
        """All that its document says of itself."""


class StoredContent(Protocol):
    """A content with every place it stands in."""

    @property
    def row(self) -> int:
        """Its row in every index of the generation."""

    @property
    def content_hash(self) -> ContentHash:
        """Its identity."""

    @property
    def text(self) -> str:
        """What was indexed."""

    @property
    def occurrences(self) -> Sequence[StoredOccurrence]:
        """At least one; the first is the representative."""


class ContentStore(Protocol):
    """Reads contents by row."""

    def contents(self, rows: Sequence[int] | np.ndarray) -> Sequence[StoredContent]:
        """One content per row, in the order asked."""

    def mask(self, holds: Callable[[DocumentFacts], bool]) -> np.ndarray:
        """Which contents stand in a document that something holds of, bool (contents,)."""

    def row_of(self, content_hash: ContentHash) -> int | None:
        """Row of a content, None where the generation does not hold it."""

    def chunks_of_document(self, uri: str) -> Sequence[Chunk]:
        """Every chunk of a document, in source order."""

    def trigger_phrases(self) -> Iterable[tuple[str, tuple[int, ...]]]:
        """Every phrase that a document declares, with the rows of its contents, the document's first one first."""

    def documents(self) -> Sequence[DeclaredFacts]:
        """What is known of every document, by its number."""

    def standings(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Every place that contents stand in, by row: int64 (places,) each.

        Returns:
            Position of the content in `rows`, place of the chunk, and number of its document; contents in the order
            asked, places of each by (URI, sequence), the representative first.
        """

    def structure(self) -> np.ndarray:
        """How whole each chunk is, by place: its parse's quality times its share of the unit, float64 (chunks,)."""

    def parents(self) -> np.ndarray:
        """Place of each chunk's parent, int64 (chunks,); −1 where it has none."""

    def rows_of_tiers(self, tiers: Collection[str]) -> Collection[int]:
        """Rows of the contents of documents that declare one of these tiers."""


class GraphIndex(Protocol):
    """Entities, and the edges between contents and from contents to entities."""

    def arrays(self) -> EdgeArrays:
        """Every edge at once."""

    def neighbours(
        self, content: ContentHash, kinds: Collection[EdgeKind], direction: Direction = Direction.OUT
    ) -> Sequence[Neighbour]:
        """What a content points to, or what points to it: surest first."""

    def spellings(self) -> Iterable[tuple[int, Sequence[str]]]:
        """Every entity with the ways it is spelled."""


class OpenGeneration(Protocol):
    """An opened, immutable set of indexes; shared by threads."""

    @property
    def contents(self) -> Sequence[ContentHash]:
        """Content hash by row, ascending."""

    @property
    def lexical(self) -> TextIndex:
        """The text index."""

    @property
    def chunks(self) -> ContentStore:
        """The texts and where they stand."""

    @property
    def graph(self) -> GraphIndex:
        """The graph; StoreError where the generation was built without one."""

    def dense(self, encoder: str) -> VectorIndex:
        """The vectors of one encoder; StoreError where the generation has none."""

    def tokens(self, encoder: str) -> TokenEmbeddings | None:
        """The token embeddings of one encoder; None where none are kept."""


class ReadableBeliefs(Protocol):
    """What is believed now about weights and contents."""

    @property
    def triggers(self) -> LearnedTriggers:
        """Terms that contents are found by because they were once picked from far down (RET-17)."""

    def trust_multiplier(self, source: str, model: str) -> float:
        """Factor on the trust level of a source of that type, as that model uses it."""

    def weights(self, scope: Scope, active: Collection[Signal]) -> Mapping[Signal, WeightBelief]:
        """Belief about the weight of every active signal; the means sum to 1."""

    def sampled_weights(
        self, scope: Scope, active: Collection[Signal], rng: np.random.Generator
    ) -> Mapping[Signal, float]:
        """One draw of the weights from their posterior; they sum to 1."""

    def weight_draws(self, scope: Scope, active: Collection[Signal], n: int) -> Mapping[Signal, np.ndarray]:
        """The first `n` of a fixed sequence of draws of the weights, float64 (n,) by signal; each draw sums to 1."""

    def usage(self, hashes: Sequence[ContentHash], question: str) -> np.ndarray:
        """Usage score per content in [0, 1], (n_hashes,), by what came of other questions than that one."""

    def asked_before(self, question: str) -> bool:
        """Whether it is known what came of a question, by its fingerprint."""

    def precedents(self, hashes: Sequence[ContentHash], question: str) -> np.ndarray:
        """Score per content in [0, 1], (n_hashes,), by what came of that very question."""

    def threshold_moved(self, domain: Domain, agent: str) -> float:
        """By how much the learned threshold of decisions stands above its prior, in (-1, 1)."""

    def freshness_many(self, domain: Domain, ages_hours: np.ndarray) -> np.ndarray:
        """Probability in [0, 1] that documents of these ages are still accurate; NaN stands for an unknown age."""

    def examined(self, domain: Domain, rank: int) -> float:
        """Probability in [0, 1] that a result of this domain at this rank is looked at."""


class Calibration(Protocol):
    """The live map from score to P(good)."""

    def probability(self, score: float) -> float:
        """P(good) in [0, 1] of a result with this score."""

    @property
    def match(self) -> MatchCalibration | None:
        """The map from how well a result matches by itself; None where verdicts are too few."""


class ImpressionSink(Protocol):
    """Takes note of what was shown; called once per answer that reached a user, off the critical path."""

    def emit(self, answer: Answer) -> None:
        """Hand the answer over; never raises for an unreachable receiver."""
