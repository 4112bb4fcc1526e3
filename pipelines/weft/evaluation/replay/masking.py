"""A generation in which some contents say less than they do: what they are asked with is no part of them (EVA-4).

Vectors, token embeddings, BM25 and texts of those contents are what they would be without it; all else is the
generation's own, entities that the question names and the content's neighbours in the graph included. Nothing is
indexed anew: a search asks the indexes for that many contents more, and puts the masked ones where they now belong.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from weft.domain.arrays import TermWeights
from weft.embedding.late_interaction import compressed
from weft.embedding.ports import TermEncoder, TextEncoder
from weft.indexes.chunk_store import ChunkStore, Content
from weft.indexes.rows import RowSet
from weft.indexes.text.build import lexical_document
from weft.indexes.text.outside import OutsideTexts
from weft.retrieval.snapshot.ports import TermIndex, TextIndex, TokenEmbeddings, VectorIndex
from weft.retrieval.snapshot.snapshot import Snapshot

_Hits = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, slots=True)
class Masks:
    """What some contents of a generation say instead of what they do."""

    rows: np.ndarray  # Theirs, ascending, int64 (n,)
    texts: Sequence[str]  # What each of them says
    phrases: Collection[str] = ()  # Declared ones that lead nowhere

    @classmethod
    def of(cls, chunks: ChunkStore, text_by_content: Mapping[Any, str], phrases: Collection[str] = ()) -> Masks:
        """Masks of those contents that there are."""
        by_row = {chunks.row_of(content): text for content, text in text_by_content.items()}
        rows = sorted(row for row in by_row if row is not None)
        return cls(np.array(rows, dtype=np.int64), [by_row[row] for row in rows], frozenset(phrases))

    def place(self, rows: np.ndarray) -> np.ndarray:
        """Place of each row among the masked ones; −1 of others."""
        at = np.minimum(np.searchsorted(self.rows, rows), max(0, len(self.rows) - 1))
        return np.where(self.rows[at] == rows, at, -1) if len(self.rows) else np.full(len(rows), -1)


class MaskedGeneration:
    """A generation seen through masks."""

    def __init__(
        self,
        generation: Any,  # an opened one
        masks: Masks,
        encoders: Sequence[TextEncoder],
        *,
        pooling: int,  # tokens that one stored token embedding stands for
        terms: TermEncoder | None = None,  # the sparse encoder; None where none searches
    ) -> None:
        """Encode and analyse what the masked contents say."""
        self._generation = generation
        self._dense: dict[str, MaskedVectors] = {}
        self._tokens: dict[str, MaskedTokens] = {}
        for encoder in (each for each in encoders if each.name in generation.encoders):
            stored = generation.tokens(encoder.name)
            vectors, tokens = _encoded(encoder, masks.texts, stored, pooling)
            self._dense[encoder.name] = MaskedVectors(generation.dense(encoder.name), masks, vectors)
            if stored is not None:
                self._tokens[encoder.name] = MaskedTokens(stored, masks, tokens)
        self._terms = terms
        self._masks = masks
        self.chunks = MaskedChunks(generation.chunks, masks)
        self.lexical: TextIndex = MaskedTexts(generation, masks)

    def dense(self, encoder: str) -> VectorIndex:
        """The vectors of one encoder; StoreError where the generation has none."""
        index: VectorIndex = self._dense.get(encoder) or self._generation.dense(encoder)
        return index

    def tokens(self, encoder: str) -> TokenEmbeddings | None:
        """The token embeddings of one encoder; None where none are stored."""
        return self._tokens.get(encoder)

    def impacts(self, encoder: str) -> TermIndex:
        """The term weights of one encoder; StoreError where the generation has none."""
        index: TermIndex = self._generation.impacts(encoder)
        return index if self._terms is None else MaskedImpacts(index, self._masks, self._terms.weigh(self._masks.texts))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._generation, name)


class MaskedChunks:
    """Texts and where they stand, masked ones without what they are asked with."""

    def __init__(self, chunks: ChunkStore, masks: Masks) -> None:
        self._chunks = chunks
        self._masks = masks

    def contents(self, rows: Sequence[int] | np.ndarray) -> list[Content]:
        """The contents at some rows, in the order asked for."""
        places = self._masks.place(np.asarray(rows, dtype=np.int64)).tolist()
        return [
            content if place < 0 else _with_text(content, self._masks.texts[place])
            for content, place in zip(self._chunks.contents(rows), places, strict=True)
        ]

    def trigger_phrases(self) -> list[tuple[str, tuple[int, ...]]]:
        """Declared phrases with the rows of their contents, less those that are asked with."""
        return [each for each in self._chunks.trigger_phrases() if each[0] not in self._masks.phrases]

    def __len__(self) -> int:
        return len(self._chunks)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._chunks, name)


class MaskedVectors:
    """A vector index in which masked contents have vectors of their own."""

    def __init__(self, index: VectorIndex, masks: Masks, vectors: np.ndarray) -> None:
        self._index = index
        self._masks = masks
        self._vectors = vectors

    @property
    def isolation(self) -> np.ndarray | None:
        """How much alone each content stands, as it is."""
        return self._index.isolation

    def search(self, vectors: np.ndarray, k: int, among: RowSet | None = None) -> _Hits:
        """Rows, int64 (n, k), and cosines, float32 (n, k), best first; row −1 pads."""
        rows, cosines = self._index.search(vectors, k + len(self._masks.rows), among)
        masked = vectors @ self._vectors.T
        merged = [
            _merged(self._masks, (own[own >= 0], near[own >= 0]), scores, k, among)
            for own, near, scores in zip(rows, cosines, masked, strict=True)
        ]
        out = np.full((len(vectors), k), -1, dtype=np.int64), np.zeros((len(vectors), k), dtype=np.float32)
        for line, (own, near) in enumerate(merged):
            out[0][line, : len(own)], out[1][line, : len(own)] = own, near
        return out

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """Stored vectors, float32 (n_rows, dimension), unit rows."""
        vectors, places = np.array(self._index.vectors(rows)), self._masks.place(rows)
        vectors[places >= 0] = self._vectors[places[places >= 0]]
        return vectors


class MaskedImpacts:
    """An index of term weights in which masked contents have weights of their own."""

    def __init__(self, index: TermIndex, masks: Masks, weights: Sequence[TermWeights]) -> None:
        self._index = index
        self._masks = masks
        self._weights = weights

    def search_many(self, queries: Sequence[TermWeights], k: int, among: Sequence[RowSet | None]) -> Sequence[_Hits]:
        """Rows and products per query, best first, ties by row."""
        hits = self._index.search_many(queries, k + len(self._masks.rows), among)
        return [
            _merged(self._masks, own, np.array([query.dot(each) for each in self._weights]), k, rows, least=0.0)
            for query, own, rows in zip(queries, hits, among, strict=True)
        ]


class MaskedTokens:
    """Token embeddings, masked contents having their own."""

    def __init__(self, stored: TokenEmbeddings, masks: Masks, tokens: Sequence[np.ndarray]) -> None:
        self._stored = stored
        self._masks = masks
        self._tokens = tokens

    @property
    def projection(self) -> np.ndarray:
        """What a query's token states are multiplied by."""
        return self._stored.projection

    def gathered(self, rows: np.ndarray) -> _Hits:
        """The tokens of contents, one content's after the other's, and how many each has."""
        tokens, counts = self._stored.gathered(rows)
        places = self._masks.place(rows).tolist()
        if max(places, default=-1) < 0:
            return tokens, counts
        ends = np.cumsum(counts)
        own = np.split(tokens, ends[:-1])
        parts = [each if place < 0 else self._tokens[place] for each, place in zip(own, places, strict=True)]
        return np.concatenate(parts), np.array([len(part) for part in parts], dtype=np.int64)


class MaskedTexts:
    """A text index in which masked contents have other words."""

    def __init__(self, generation: Any, masks: Masks) -> None:
        settings = generation.manifest.lexical
        self._index = generation.lexical
        self._masks = masks
        contents = generation.chunks.contents(masks.rows)
        documents = [_as_indexed(each, text) for each, text in zip(contents, masks.texts, strict=True)]
        self._outside = OutsideTexts(self._index, documents, settings)
        self._whole = [self._index.term_set(each.text) for each in contents]
        self._rest = [self._index.term_set(text) for text in masks.texts]

    def unknown_words(self, query: str) -> tuple[str, ...]:
        """The words of a query that no content holds, masked ones whole: a gap names them, and nothing rests on it."""
        return tuple(self._index.unknown_words(query))

    def share_of(self, word: str) -> float:
        """Share of contents that hold a word, in [0, 1]; masked contents hold what is left of them."""
        terms = self._index.terms(word)
        return float(self._index.share_of(word)) - (self._lost(terms) / len(self._index) if terms else 0.0)

    def _lost(self, terms: Sequence[str]) -> int:
        """How many contents hold some terms but for their mask."""
        return sum(
            all(term in whole for term in terms) and not all(term in rest for term in terms)
            for whole, rest in zip(self._whole, self._rest, strict=True)
        )

    def holding(self, words: str, phrase: bool) -> np.ndarray | None:  # noqa: ARG002  as every text index
        """Nothing is known of what masked contents hold side by side: questions are searched as plain words."""
        return None

    def search_many(self, texts: Sequence[str], k: int, among: Sequence[RowSet | None]) -> Sequence[_Hits]:
        """Rows and scores per text, best first, ties by row."""
        hits = self._index.search_many(texts, k + len(self._masks.rows), among)
        return [
            _merged(self._masks, own, self._outside.scores(text), k, rows, least=0.0)
            for text, own, rows in zip(texts, hits, among, strict=True)
        ]


def masked(
    snapshot: Snapshot, masks: Masks, encoders: Sequence[TextEncoder], *, pooling: int, terms: TermEncoder | None = None
) -> Snapshot:
    """The snapshot over a masked generation."""
    generation: Any = MaskedGeneration(snapshot.generation, masks, encoders, pooling=pooling, terms=terms)
    return replace(snapshot, generation=generation)


def _merged(
    masks: Masks, hits: _Hits, scores: np.ndarray, k: int, among: RowSet | None, *, least: float = -np.inf
) -> _Hits:
    """The best k of an index's hits and the masked contents, these by scores of their own that are above the least."""
    rows, own = hits
    others = masks.place(rows) < 0
    allowed = scores > least
    if among is not None:
        allowed &= among.mask[masks.rows]
    rows = np.concatenate([rows[others], masks.rows[allowed]])
    own = np.concatenate([own[others], scores[allowed].astype(own.dtype)])
    order = np.lexsort((rows, -own))[:k]
    return rows[order], own[order]


def _encoded(
    encoder: TextEncoder, texts: Sequence[str], stored: TokenEmbeddings | None, pooling: int
) -> tuple[np.ndarray, Sequence[np.ndarray]]:
    """Vectors in the precision that they are stored in, and tokens where these are stored."""
    tokens: Sequence[np.ndarray] = ()
    if stored is None:
        vectors = encoder.encode(texts)
    else:
        projection = stored.projection
        vectors, tokens = encoder.encode_tokens(texts, lambda states: compressed(states, projection, pooling))
    return vectors.astype(np.float16).astype(np.float32), tokens


def _as_indexed(content: Content, text: str) -> Any:
    place = content.occurrences[0]
    chunk = place.chunk
    # A title that the mask took away is not said again; one that no text of the content holds is, as it is of others.
    title = place.title if place.title and (place.title in text or place.title not in content.text) else None
    return lexical_document(
        {
            "text": text,
            "sequence": chunk.sequence,
            "uri": chunk.uri,
            "defines": chunk.defines,
            "parent_id": chunk.parent_id,
        },
        {"title": title, "content_type": place.content_type, "triggers": ()},
    )


def _with_text(content: Content, text: str) -> Content:
    return Content(content.row, content.content_hash, content.occurrences, lambda _: text)
