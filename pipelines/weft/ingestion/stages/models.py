"""The stages that run models: entities in chunks, and a vector for each text (ING-16, ING-19).

Models load at their first use: a run whose texts are all cached loads none.
"""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from weft.domain.arrays import TermWeights
from weft.domain.chunks import Chunk, Mention
from weft.domain.documents import ContentType
from weft.domain.ids import ContentHash
from weft.embedding.cache import STORED, Embedded, EmbeddedCache, WeightsCache, vector_key
from weft.embedding.late_interaction import compressed
from weft.embedding.models import SPARSE_MODULE
from weft.embedding.ports import TermEncoder, TermHead, TextEncoder
from weft.embedding.projection import stored_projection
from weft.embedding.settings import EmbeddingSettings
from weft.embedding.tokens import TokenCounter, load_token_counter
from weft.extraction.scores import extraction_facts
from weft.extraction.settings import ExtractionSettings
from weft.indexes import schemas
from weft.ingestion.units import Unit, UnitWorker
from weft.runtime.reuse import reused
from weft.runtime.storage.packs import blobs_at
from weft.runtime.storage.sqlite import blob_key

if TYPE_CHECKING:
    from weft.extraction.entities import EntityExtractor

ENCODER = "weft.embedding.encoders.encoder:load_encoder"
_TERMS, _TERM_HEAD = f"{SPARSE_MODULE}:load_sparse_encoder", f"{SPARSE_MODULE}:SparseHead"
EXTRACTOR = "weft.extraction.entities:EntityExtractor"

Value = TypeVar("Value")

_ANY_TEXT = "any text"
_BETWEEN_HEADINGS = " > "


class Cache(Protocol[Value]):
    """Values by key."""

    def get(self, keys: Sequence[str]) -> dict[str, Value]:
        """The values of those keys that have one."""
        ...

    def put(self, values: Mapping[str, Value], /) -> None:
        """Keep values."""
        ...


class FindEntities(UnitWorker):
    """Mentions of named things in each distinct text; texts seen before come from the cache (ING-16, ING-20)."""

    def __init__(self, settings: ExtractionSettings, cache: Path, maker: str = EXTRACTOR, checkpoint: str = "") -> None:
        self._settings = settings
        self._maker = maker
        self._checkpoint = checkpoint
        self._cache = _MentionCache(cache)

    def work(self, unit: Unit) -> Unit:
        """Add the table `mentions`."""
        texts = _texts_of(unit)
        facts = json.dumps(extraction_facts(self._settings), sort_keys=True), self._checkpoint
        keys = {content: blob_key(*facts, text) for content, text in texts.items()}
        mentions, computed = _completed(self._cache, keys, texts, self._extract)
        rows = [(content, mention) for content in texts for mention in mentions[keys[content]]]
        counts = {"mentions": len(rows), "extracted": computed, "entity_cache_hits": len(texts) - computed}
        return unit.extended({"mentions": schemas.mentions_to_table(rows)}, counts)

    def warm(self) -> None:
        """Load the recogniser, and use it: it prepares things at its first text."""
        self._extract([_ANY_TEXT])

    def _extract(self, texts: Sequence[str]) -> list[list[Mention]]:
        return self._extractor.extract(texts)

    @cached_property
    def _extractor(self) -> EntityExtractor:
        extractor: EntityExtractor = reused(pkgutil.resolve_name(self._maker), self._settings)
        return extractor


class WeighTerms(UnitWorker):
    """Learned weights of the terms of each distinct text; texts seen before come from the cache (RET-7, ING-20)."""

    def __init__(self, settings: EmbeddingSettings, made_with: str, cache: Path, maker: str = _TERMS) -> None:
        self._settings = settings
        self._made_with = made_with
        self._maker = maker
        self._cache = WeightsCache(cache)

    def work(self, unit: Unit) -> Unit:
        """Add the table `weights`."""
        texts = _texts_of(unit)
        keys = {content: blob_key(self._made_with, "weights", text) for content, text in texts.items()}
        weights, computed = _completed(self._cache, keys, texts, self._weigh)
        rows = [weights[keys[content]] for content in texts]
        return unit.extended({"weights": schemas.weights_to_table(list(texts), rows)}, {"weighed": computed})

    def warm(self) -> None:
        """Load the encoder, and use it."""
        self._weigh([_ANY_TEXT])

    def _weigh(self, texts: Sequence[str]) -> list[TermWeights]:
        return self._encoder.weigh(texts)

    @cached_property
    def _encoder(self) -> TermEncoder:
        encoder: TermEncoder = reused(pkgutil.resolve_name(self._maker), self._settings)
        return encoder


class _MentionCache:
    """Mentions on disk, shared by every worker on the machine; a text without any has an empty list."""

    def __init__(self, path: Path) -> None:
        self._blobs = blobs_at(path)

    def get(self, keys: Sequence[str]) -> dict[str, list[Mention]]:
        return {key: [Mention(*row) for row in json.loads(blob)] for key, blob in self._blobs.get(keys).items()}

    def put(self, mentions: Mapping[str, Sequence[Mention]]) -> None:
        rows = {key: json.dumps([astuple(mention) for mention in of_text]) for key, of_text in mentions.items()}
        self._blobs.put({key: text.encode() for key, text in rows.items()})


class Embed(UnitWorker):
    """A vector for each distinct text; texts seen before come from the cache (ING-19, ING-20)."""

    def __init__(  # noqa: PLR0917  they travel to workers as a tuple
        self,
        settings: EmbeddingSettings,
        name: str,
        model: str,
        cache: Path,
        maker: str = ENCODER,
        weighed_with: str = "",
    ) -> None:
        self._settings = settings
        self._weighs = bool(weighed_with)
        self._name = name
        self._model = model
        self._maker = maker
        self._projection_file = cache.parent / "projections" / f"{model}.npy"
        width = settings.tokens.dimension if settings.tokens.enabled else None
        self._cache = EmbeddedCache(cache, width, weighed_with)

    def work(self, unit: Unit) -> Unit:
        """Add the table `vectors`, and `tokens` and `weights` where these are kept."""
        texts = self._texts(unit)
        keys = {content: vector_key(self._model, self._settings.strategy, text) for content, text in texts.items()}
        embedded, computed = _completed(self._cache, keys, texts, self._encoded)
        counts = {
            "embedded": unit.counts.get("embedded", 0) + computed,
            "embedding_cache_hits": unit.counts.get("embedding_cache_hits", 0) + len(texts) - computed,
        }
        if self._weighs:
            counts["weighed"] = computed
        tables = self._tables(list(texts), [embedded[keys[content]] for content in texts]) if texts else {}
        suffix = f"-{self._name}" if "vectors" in unit.tables else ""
        return unit.extended({f"{name}{suffix}": table for name, table in tables.items()}, counts)

    def warm(self) -> None:
        """Load the encoder, and use it."""
        self._encoded([_ANY_TEXT])

    def _tables(self, contents: Sequence[ContentHash], embedded: Sequence[Embedded]) -> dict[str, pa.Table]:
        vectors = np.stack([one.vector for one in embedded])
        tables = {"vectors": schemas.vectors_to_table(contents, self._name, vectors, self._model)}
        if self._settings.tokens.enabled:
            tokens = [one.tokens for one in embedded if one.tokens is not None]
            tables["tokens"] = schemas.tokens_to_table(contents, self._name, tokens, str(self._projection_file))
        if self._weighs:
            weights = [one.weights for one in embedded if one.weights is not None]
            tables["weights"] = schemas.weights_to_table(contents, weights)
        return tables

    def _encoded(self, texts: Sequence[str]) -> list[Embedded]:
        # Rounded before anyone uses them: a cached vector and a fresh one are the same bits.
        settings, head = self._settings.tokens, self._head
        if not settings.enabled and head is None:
            return [Embedded(vector) for vector in self._encoder.encode(texts).astype(STORED)]
        projection = self._projection if settings.enabled else None

        def keep(states: np.ndarray) -> tuple[np.ndarray | None, np.ndarray | None]:
            tokens = None if projection is None else compressed(states, projection, settings.pooling)
            return tokens, None if head is None else head.of_tokens(states)

        vectors, per_text = self._encoder.encode_tokens(texts, keep)
        tokens, of_tokens = zip(*per_text, strict=True)
        most = self._settings.sparse.most_terms
        weights = [None] * len(texts) if head is None else head.of_texts(texts, of_tokens, most)
        return [Embedded(*one) for one in zip(vectors.astype(STORED), tokens, weights, strict=True)]

    def _texts(self, unit: Unit) -> dict[ContentHash, str]:
        """What is embedded for each distinct content."""
        if self._settings.strategy == "text":
            return _texts_of(unit)
        chunks = schemas.table_to_chunks(unit.tables["chunks"])
        facts = (unit.tables["documents"][name].to_pylist() for name in ("uri", "title", "content_type"))
        # A sentence about a module says less of its functions than their own signatures do.
        titles = {uri: title for uri, title, kind in zip(*facts, strict=True) if kind != ContentType.CODE}
        by_id = {chunk.chunk_id: chunk for chunk in chunks}
        texts: dict[ContentHash, str] = {}
        for chunk in chunks:
            if chunk.content_hash not in texts:
                parent = None if chunk.parent_id is None else by_id.get(chunk.parent_id)
                whole = embedded_text(chunk, parent, titles.get(chunk.uri))
                tokens = window(chunk.level, self._settings.level_tokens, self._counter.limit)
                texts[chunk.content_hash] = self._counter.cut(whole, tokens)
        return texts

    @cached_property
    def _encoder(self) -> TextEncoder:
        encoder: TextEncoder = reused(pkgutil.resolve_name(self._maker), self._settings)
        return encoder

    @cached_property
    def _head(self) -> TermHead | None:
        return reused(pkgutil.resolve_name(_TERM_HEAD), self._settings) if self._weighs else None

    @cached_property
    def _counter(self) -> TokenCounter:
        return reused(load_token_counter, self._settings)

    @cached_property
    def _projection(self) -> np.ndarray:
        return stored_projection(self._projection_file, self._encoder, self._counter.words, self._settings.tokens)


def _completed(
    cache: Cache[Value],
    keys: Mapping[ContentHash, str],
    texts: Mapping[ContentHash, str],
    compute: Callable[[Sequence[str]], Sequence[Value]],
) -> tuple[dict[str, Value], int]:
    """What the cache has for `keys`, completed by computing and keeping the rest; and how many were computed."""
    values = cache.get(list(keys.values()))
    missing = [content for content, key in keys.items() if key not in values]
    if missing:
        computed = compute([texts[content] for content in missing])
        fresh = {keys[content]: value for content, value in zip(missing, computed, strict=True)}
        cache.put(fresh)
        values |= fresh
    return values, len(missing)


def _texts_of(unit: Unit) -> dict[ContentHash, str]:
    """Each distinct text of a unit by its hash, in order of first appearance."""
    texts: dict[ContentHash, str] = {}
    for row in unit.tables["chunks"].select(["content_hash", "text"]).to_pylist():
        texts.setdefault(ContentHash(row["content_hash"]), row["text"])
    return texts


def embedded_text(chunk: Chunk, parent: Chunk | None, title: str | None) -> str:
    """A chunk's text under what its level adds, in lines of their own; what the text holds already is not repeated.

    Level 0 stands alone; from level 1 on the heading path, or else the document's title, goes before it; from level 2
    on its signature; level 3 also takes what names its parent.
    """
    above = [] if chunk.level < 1 else [_BETWEEN_HEADINGS.join(chunk.heading_path) or title]
    if chunk.level >= 3 and parent is not None:
        above.append(parent.signature or _BETWEEN_HEADINGS.join(parent.heading_path) or parent.symbol)
    if chunk.level >= 2:
        above.append(chunk.signature)
    new = [line for line in dict.fromkeys(above) if line and line not in chunk.text]
    return "\n".join([*new, chunk.text])


def window(level: int, level_tokens: Sequence[int], limit: int) -> int:
    """How many tokens of a chunk of some level are embedded, at most what the encoder reads."""
    return min(level_tokens[min(level, len(level_tokens) - 1)], limit)
