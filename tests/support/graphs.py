"""Graphs of a few chunks, written as a generation writes its tables and built without models or engines."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from tests.support.parts import a_document
from weft.domain.chunks import Chunk, Mention
from weft.domain.documents import ContentType, Document, Rejection
from weft.domain.ids import ChunkId, ContentHash, content_hash
from weft.domain.links import Link, LinkKind
from weft.indexes import schemas
from weft.indexes.dense.vectors import VECTORS_FILE
from weft.indexes.graph.build import build_graph
from weft.indexes.graph.graph import Graph
from weft.indexes.graph.rounds import GraphTask
from weft.indexes.manifest import VECTORS_FOLDER
from weft.indexes.settings import GraphIndexSettings
from weft.settings import load_settings

Part = tuple[Document, list[Chunk]]
Edge = tuple[str, str, str, float]  # kind, who points, to whom, confidence


def graph_settings(**changes: object) -> GraphIndexSettings:
    """The shipped settings with some changes."""
    return load_settings(environment={}).index.graph.model_copy(update=changes)


def a_file(uri: str, *units: str | Mapping[str, object], language: str | None = "python", **facts: object) -> Part:
    """A document of units: symbols, or fields of their chunks; their text says where they stand."""
    fields = [{"symbol": unit} if isinstance(unit, str) else dict(unit) for unit in units]
    texts = [f"{uri} {number} {unit.get('symbol', '')}" for number, unit in enumerate(fields)]
    kind = ContentType.CODE if language else ContentType.MARKDOWN
    document, chunks = a_document(uri, *texts, kind=kind)
    document = replace(document, language=language, **facts)  # type: ignore[arg-type]
    return document, [replace(chunk, **unit) for chunk, unit in zip(chunks, fields, strict=True)]  # type: ignore[arg-type]


def calls(*targets: str) -> tuple[Link, ...]:
    """Links that call."""
    return tuple(Link(LinkKind.CALLS, target) for target in targets)


def imports(*targets: str) -> tuple[Link, ...]:
    """Links that import."""
    return tuple(Link(LinkKind.IMPORTS, target) for target in targets)


def a_tree(root: str) -> list[Part]:
    """Files that point to one another in every way that needs others: by imports, types, works and relations."""
    relations = [Link(LinkKind.SUPERSEDES, "gone.md", declared=True), Link(LinkKind.SUPPORTS, "twin.md", declared=True)]
    declared = (*relations, Link(LinkKind.DERIVED_FROM, "paper.md", declared=True))
    asking = {"symbol": "Validator", "attributes": {"method_set": "Name Validate"}}
    cited = tuple(Link(LinkKind.CITES, target) for target in (f"https://doi.org/10.1000/{root}", f"Paper of {root}"))
    return [
        a_file(f"{root}/app.py", {"links": imports(f"{root}.p.load")}, {"symbol": "main", "links": calls("load")}),
        a_file(f"{root}/p/__init__.py", {"links": imports(".q.load")}),
        a_file(f"{root}/p/q/__init__.py", {"links": imports(".deep.load")}),
        a_file(f"{root}/p/q/deep.py", "load", {"symbol": "open", "links": calls("x.unfold")}, "Store.unfold"),
        a_file(f"{root}/a/Base.java", {"kind": "preamble"}, "Base", "Base.assist", language="java"),
        a_file(
            f"{root}/b/Main.java",
            {"links": imports("a.Base")},
            {"symbol": "Main.run", "links": calls("a.Base", "assist")},
            language="java",
        ),
        a_file(f"{root}/auth/auth.go", asking, "User", "User.Validate", "User.Name", language="go"),
        a_file(f"{root}/admin/admin.go", {"symbol": "Admin"}, "Admin.Validate", language="go"),
        a_file(f"{root}/admin/names.go", "Admin.Name", language="go"),
        a_file(f"{root}/cited.md", {"links": cited}, language=None, links=declared, modified_at=1.5),
        a_file(f"{root}/paper.md", {}, language=None, metadata={"doi": f"10.1000/{root}"}, title=f"Paper of {root}"),
        *(a_file(f"{root}/{folder}/twin.md", {}, language=None) for folder in "xy"),
    ]


def staged(
    folder: Path,
    files: Sequence[Part],
    *,
    mentions: Sequence[tuple[ContentHash, Mention]] = (),
    rejected: Sequence[Rejection] = (),
    seed: int | None = None,
) -> Path:
    """The tables of a generation; with a seed their rows come in another order than a generation's."""
    folder.mkdir(parents=True)
    files = list(files)
    chunks = [chunk for _, of_file in files for chunk in of_file]
    order = [("content_hash", "ascending"), ("uri", "ascending"), ("sequence", "ascending")]
    table = schemas.chunks_to_table(chunks).sort_by(order)
    if seed is not None:
        random.Random(seed).shuffle(files)
        table = table.take(random.Random(seed).sample(range(table.num_rows), table.num_rows))
    hashes = sorted({chunk.content_hash for chunk in chunks})
    contents = [{"content_hash": one, "first_chunk": 0, "occurrences": 1} for one in hashes]
    tables = {
        "documents": schemas.documents_to_table([document for document, _ in files]),
        "chunks": table,
        "contents": schemas.CONTENTS.empty_table().from_pylist(contents, schema=schemas.CONTENTS),
        "mentions": schemas.mentions_to_table(mentions),
        "rejected": schemas.rejections_to_table(rejected),
    }
    for name, rows in tables.items():
        pq.write_table(rows, folder / f"{name}.parquet")
    return folder


def a_graph(
    folder: Path,
    files: Sequence[Part],
    *,
    vectors: np.ndarray | None = None,
    settings: GraphIndexSettings | None = None,
    mentions: Sequence[tuple[ContentHash, Mention]] = (),
    rejected: Sequence[Rejection] = (),
    seed: int | None = None,
    threads: int = 2,
) -> Graph:
    """The graph of some files, opened."""
    staged(folder / "chunks", files, mentions=mentions, rejected=rejected, seed=seed)
    hashes = sorted({chunk.content_hash for _, of_file in files for chunk in of_file})
    similar: tuple[Path, ...] = ()
    if vectors is not None:
        (of_encoder := folder / VECTORS_FOLDER / "drawn").mkdir(parents=True)
        np.save(of_encoder / VECTORS_FILE, vectors)
        similar = (of_encoder / VECTORS_FILE,)
    merge = load_settings(environment={}).index.merge.model_copy(update={"threads": threads})
    counts = (len(hashes),), (sum(len(of_file) for _, of_file in files),)
    encoder = None if vectors is None else "drawn"
    build_graph(GraphTask(folder, folder / "work", *counts, encoder, similar, settings or graph_settings(), merge))
    return Graph(folder / "graph", hashes)


def edges(graph: Graph, files: Sequence[Part]) -> set[Edge]:
    """Cross-references between chunks, each end as "uri symbol"."""
    names = {chunk.chunk_id: f"{chunk.uri} {chunk.symbol or ''}".strip() for _, of_file in files for chunk in of_file}
    return {
        (row["kind"], names[ChunkId(row["source_chunk"])], names[ChunkId(row["target_chunk"])], row["confidence"])
        for row in graph.table("edges").to_pylist()
        if row["target_chunk"]
    }


def mentioned(text: str, *names: tuple[str, str]) -> list[tuple[ContentHash, Mention]]:
    """Mentions of (label, name) in a text, sure ones."""
    found = []
    for label, name in names:
        start = text.index(name)
        found.append((content_hash(text), Mention(start, start + len(name), name, label, 0.9)))
    return found
