"""Stores whose generations have several shards, made of a real collection, and what searchers say over them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.support.parts import ENCODER, a_document, write_part
from tests.support.small_store import DirectionEncoder
from weft.catalog.catalog import Catalog
from weft.domain.chunks import Chunk, Mention
from weft.domain.documents import ContentType, Document
from weft.domain.ids import GenerationId, QueryId
from weft.domain.links import Link, LinkKind
from weft.domain.ranking import Answer, Query
from weft.indexes import schemas
from weft.indexes.builder import GenerationBuilder
from weft.indexes.manifest import Manifest
from weft.indexes.parts import IndexPart, Share
from weft.indexes.settings import IndexSettings
from weft.indexes.spread import local_part
from weft.retrieval.searcher import Searcher
from weft.retrieval.snapshot.live import CatalogSource
from weft.retrieval.snapshot.ports import Fleet
from weft.runtime.stages import HERE, Executor
from weft.settings import load_settings

Made = tuple[Document, list[Chunk]]
SETTINGS = load_settings(environment={})
NOW = 1.7e9
TEXTS = 330  # of a collection: quantisers take 256 vectors at least


def indexing(contents: int, shards: int, **vectors: object) -> IndexSettings:
    """Settings under which so many contents, counted wherever they stand, make so many shards."""
    own = SETTINGS.index.model_copy(update={"shard_contents": -(-contents // shards), "rows_per_shard": 50})
    return own.model_copy(update={"vectors": own.vectors.model_copy(update=vectors)})


def collection(data: Path, name: str) -> tuple[list[Made], list[str]]:
    """Documents of three texts each that link to the next one, every tenth text in two of them; and questions."""
    texts = list(dict.fromkeys(str(row["text"])[:400] for row in _rows(data / name / "corpus.jsonl.gz", TEXTS)))
    kind = ContentType.CODE if name == "cosqa" else ContentType.TEXT
    documents = []
    for number, start in enumerate(range(0, len(texts), 3)):
        some = [*texts[start : start + 3], *texts[start - 10 : start - 9]]
        document, chunks = a_document(f"{name}/d{number:03d}.txt", *some, title=some[0][:30], kind=kind)
        link = Link(LinkKind.REFERENCES, f"{name}/d{number + 1:03d}.txt", 0.9)
        documents.append((document, [replace(chunks[0], links=(link,)), *chunks[1:]]))
    return documents, [str(row["text"]) for row in _rows(data / name / "queries.jsonl.gz", 6)]


def _rows(path: Path, count: int) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, islice(lines, count))


def parts_of(folder: Path, documents: Sequence[Made], parts: int) -> list[Path]:
    """The tables of documents in so many parts; every word with a capital is an entity."""
    written = []
    for part in range(parts):
        some = documents[part::parts]
        written.append(write_part(folder / f"{part:08d}", some))
        chunks = {chunk.content_hash: chunk for _, of_document in some for chunk in of_document}
        mentions = [(digest, mention) for digest, chunk in chunks.items() for mention in _capitals(chunk.text)]
        pq.write_table(schemas.mentions_to_table(mentions), written[-1] / "mentions.parquet")
    return written


def _capitals(text: str) -> Iterable[Mention]:
    words = [word for word in text.split() if word[:1].isupper() and word.isalpha() and len(word) > 3]
    return [Mention(text.index(word), text.index(word) + len(word), word, "name", 0.9) for word in dict.fromkeys(words)]


def published(
    catalog: Catalog, parts: Sequence[Path], own: IndexSettings, *, base: bool = False, executor: Executor = HERE
) -> Manifest:
    """A generation made live, perhaps on top of the one that is."""
    live, staging = catalog.pointer().generation, catalog.stage()
    folder = catalog.folder_of(live) if base and live is not None else None
    builder = GenerationBuilder(staging, own, map_shards=executor.tasks)
    manifest = builder.index(builder.merge(parts, base=folder), facts(), base=folder)
    catalog.publish(staging, expected_parent=live)
    return manifest


def facts() -> dict[str, Any]:
    return {"created_at": 1e9, "models": {"encoder": ENCODER}}


def opened(catalog: Catalog, fleet: Fleet | None = None) -> Searcher:
    """A searcher over what is live, which waits for its channels; times do not differ from one to another."""
    source = CatalogSource(catalog, SETTINGS.priors, clock=lambda: NOW, fleet=fleet)
    patient = SETTINGS.retrieval.model_copy(
        update={"budget_ms": SETTINGS.retrieval.budget_ms.model_copy(update={"searching": 60e3, "following": 60e3})}
    )
    return Searcher(source, DirectionEncoder(), patient, clock=lambda: NOW)


def asked(questions: Sequence[str]) -> list[Query]:
    """Queries that answer alike whenever they are asked."""
    return [Query(text=text, query_id=QueryId(f"q{at}"), k=20) for at, text in enumerate(questions)]


def ranking(answer: Answer) -> list[tuple[str, float]]:
    """Content hashes and scores, best first."""
    return [(result.content_hash, result.score) for result in answer.results]


def answers(catalog: Catalog, questions: Sequence[str], fleet: Fleet | None = None) -> list[list[tuple[str, float]]]:
    """What the real searcher tells of each question."""
    with opened(catalog, fleet) as searcher:
        return [ranking(searcher.search(query)) for query in asked(questions)]


def groups(hits: Iterable[tuple[Any, float]]) -> list[list[Any]]:
    """What was found in its order; what single precision hardly tells apart together, and the last such left out."""
    grouped: list[list[Any]] = []
    last = 0.0
    for row, score in hits:
        if not grouped or abs(score - last) > 1e-6 * last:
            grouped.append([])
        grouped[-1].append(row)
        last = score
    return [sorted(group) for group in grouped[:-1]]


class FleetHere:
    """Shares of the shards, each opened by itself, in this process."""

    def __init__(self, catalog: Catalog, shares: int) -> None:
        self._catalog = catalog
        self._shares = [Share(number, shares) for number in range(shares)]

    def holds(self, generation: GenerationId) -> bool:
        """All that is published."""
        return bool(generation)

    def parts(self, manifest: Manifest) -> Sequence[IndexPart]:
        """Those that have any shards."""
        parts = [(share, self._catalog.open_share(manifest.id, share)) for share in self._shares]
        return [
            local_part(indexes, share.rows(manifest), f"shard-{share.number}")
            for share, indexes in parts
            if indexes is not None
        ]
