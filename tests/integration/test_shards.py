"""SCL-6 to 9: generations of several shards say what one says, whoever wrote them, and share what stays as it is."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.graphs import a_tree, edges, mentioned
from tests.support.parts import ENCODER, a_document, embed, write_part
from tests.support.sharded import answers, collection, facts, indexing, parts_of, published
from weft.catalog.catalog import Catalog
from weft.domain.documents import Rejection
from weft.domain.errors import CorruptionError
from weft.domain.ids import GenerationId
from weft.indexes import schemas
from weft.indexes.builder import REVISIONS_FILE, GenerationBuilder
from weft.indexes.chunk_store import ChunkStore
from weft.indexes.former_places import FORMER_PLACES_FILE
from weft.indexes.generation import Generation
from weft.indexes.graph.graph import unmet_relations
from weft.indexes.graph.rounds import PartitionTask
from weft.indexes.manifest import tables_of
from weft.indexes.merge import REPEATED
from weft.indexes.rows import RowSet
from weft.indexes.shards import shards_of
from weft.ingestion.stages.reuse import Base
from weft.runtime.stages import HERE, Executor, in_threads

SHARDS = (1, 2, 4, 8)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("nfcorpus", "exact"),
        pytest.param("cosqa", "exact", marks=pytest.mark.slow),
        pytest.param("scifact", "ivfpq", marks=pytest.mark.slow),
        pytest.param("cacm", "ivfpq", marks=pytest.mark.slow),
    ],
)
def test_answers_are_the_same_for_any_number_of_shards(name: str, kind: str, tmp_path: Path, data_root: Path) -> None:
    """SCL-6, SCL-7, SCL-8, SCL-9: the same contents in order, scores within 1e-6, from 1 to 8 shards of any parts."""
    documents, questions = collection(data_root, name)
    chunks = sum(len(own) for _, own in documents)
    first: tuple[Any, ...] | None = None
    for shards in SHARDS:
        catalog = Catalog(tmp_path / f"store-{shards}")
        parts = parts_of(tmp_path / f"parts-{shards}", documents, 1 + shards % 3)
        own = indexing(chunks, shards, exact_below=100 if kind == "ivfpq" else 10_000)
        manifest = published(catalog, parts, own, executor=in_threads(1 + shards % 2))
        with closing(catalog.open_live()) as generation:
            assert len(shards_of(generation.folder)) == len(manifest.shards) == shards
            assert manifest.dense[ENCODER].kind == kind
            found = (*told_by(generation, questions), answers(catalog, questions))
        if first is None:
            first = found
            assert all(len(answer) == 20 for answer in found[-1])
        assert found[:-1] == first[:-1]
        for ours, theirs in zip(found[-1], first[-1], strict=True):
            assert [digest for digest, _ in ours] == [digest for digest, _ in theirs]
            assert [score for _, score in ours] == pytest.approx([score for _, score in theirs], rel=1e-6)


def told_by(generation: Generation, questions: Sequence[str]) -> tuple[Any, ...]:
    """Hits of words and of vectors, among all and among some; the graph; what is read of contents; all bit for bit."""
    rows = len(generation.contents)
    some = RowSet(np.arange(rows) % 3 == 0)
    lexical = [generation.lexical.search(text, 30, among) for text in questions for among in (None, some)]
    vectors = np.array([embed(text) for text in questions])
    dense = [array.tolist() for among in (None, some) for array in generation.dense(ENCODER).search(vectors, 30, among)]
    graph = [generation.graph.table(name).to_pylist() for name in ("nodes", "edges")]
    assert {edge["kind"] for edge in graph[1]} >= {"references", "mentions"}
    analytics = [] if generation.graph.analytics is None else generation.graph.analytics.to_pydict()["pagerank"]
    chunks = generation.chunks
    contents = [(one.text, [each.chunk for each in one.occurrences]) for one in chunks.contents(range(0, rows, 7))]
    isolation = generation.dense(ENCODER).isolation
    read = [list(chunks.texts(range(1, rows, 9))), chunks.parents().tolist(), list(generation.contents)]
    read += [chunks.documents(), chunks.uris(), chunks.table("documents").to_pylist(), chunks.trigger_phrases()]
    return lexical, dense, graph, analytics, contents, read, None if isolation is None else isolation.tolist()


WORDS = ("alpha beta", "beta gamma", "gamma delta", "delta alpha", "alpha", "beta", "gamma", "delta")


@given(
    st.lists(st.tuples(st.integers(0, 5), st.lists(st.sampled_from(WORDS), min_size=1, max_size=3)), max_size=8),
    st.sampled_from((1, 2, 5)),
    st.lists(st.integers(0, 3), min_size=8, max_size=8),
)
@settings(max_examples=examples(12), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_content_hash_does_not_depend_on_who_wrote_what(
    tmp_path_factory: pytest.TempPathFactory, made: list[tuple[int, list[str]]], shards: int, places: list[int]
) -> None:
    """SCL-6, ARC-9: however documents are spread over parts, and whatever runs side by side; of one URI the first."""
    documents = [a_document(f"d{uri}", *texts) for uri, texts in made]

    def merged(spread: Sequence[int], executor: Executor) -> tuple[str, int]:
        folder = tmp_path_factory.mktemp("merged")
        order = sorted(range(len(documents)), key=lambda at: spread[at])
        parts = [
            write_part(folder / f"{number:08d}", [documents[at]] if at >= 0 else [])
            for number, at in enumerate(order or [-1])
        ]
        own = indexing(2 * shards, shards)
        (folder / "staging").mkdir()
        builder = GenerationBuilder(folder / "staging", own, map_shards=executor.tasks)
        tables = builder.merge(parts)
        return builder.content_hash(tables, facts()), len(tables.shards)

    first = merged([0] * len(documents), HERE)
    assert merged([0] * len(documents), in_threads(2)) == first
    if len({uri for uri, _ in made}) == len(made):
        assert merged(places, in_threads(2)) == first


def inodes(folder: Path) -> dict[str, int]:
    return {path.relative_to(folder).as_posix(): path.stat().st_ino for path in folder.rglob("*") if path.is_file()}


def test_unchanged_shards_are_taken_over(tmp_path: Path) -> None:
    """SCL-6: a change rewrites the shards that it touches; the others are the same files, and outlive the old ones."""
    documents = [a_document(f"d{number:03d}", f"text number {number} of many words") for number in range(300)]
    own, catalog = indexing(300, 4, exact_below=100), Catalog(tmp_path / "store")
    before = published(catalog, parts_of(tmp_path / "first", documents, 2), own)
    assert before.dense[ENCODER].kind == "ivfpq"
    changed = a_document("d007", "text number seven was changed")
    kept = [document for document, _ in documents if document.uri != "d007"]
    part = parts_of(tmp_path / "second", [changed], 1)
    pq.write_table(schemas.unchanged_to_table([(one, one.uri) for one in kept]), part[0] / "kept.parquet")
    after = published(catalog, part, own, base=True)
    old, new = (inodes(catalog.folder_of(one.id)) for one in (before, after))
    touched = {int(chunk.content_hash[0], 16) // 4 for chunk in (changed[1][0], documents[7][1][0])}
    for shard in range(4):
        same = {name for name in new if name.startswith(f"shards/{shard:04d}/") and new[name] == old.get(name)}
        names = {name.rpartition("/")[2] for name in same}
        if shard in touched:
            assert not same
        else:
            assert {"chunks.parquet", "contents.parquet", "vectors.npy", "index.faiss", "segments_1"} <= names
    assert len(touched) < 4
    # What stands there is what a generation made anew holds, and whoever removes the old one takes nothing from it.
    whole = Catalog(tmp_path / "whole")
    anew = published(whole, parts_of(tmp_path / "anew", [*documents[:7], changed, *documents[8:]], 3), own)
    assert after.content_hash == anew.content_hash
    catalog.prune(0, among=[GenerationId(before.id)])
    published(catalog, parts_of(tmp_path / "third", documents[:5], 1), own)
    assert catalog.verify(after.id).files == after.files
    with closing(catalog.open(after.id)) as ours, closing(whole.open(anew.id)) as theirs:
        told = [told_plainly(one) for one in (ours, theirs)]
    assert told[0] == told[1]


def test_documents_lie_with_the_shard_that_the_hash_of_their_uri_says(tmp_path: Path) -> None:
    """SCL-6: no file holds the documents of all shards, or their texts; and another number of shards is cut anew."""
    documents = [a_document(f"d{number:03d}", f"text number {number}") for number in range(60)]
    parts = parts_of(tmp_path / "first", documents, 2)
    parts.append(write_part(tmp_path / "first" / "00000009", [a_document("d001", "another text under the same URI")]))
    catalog = Catalog(tmp_path / "store")
    folder = catalog.folder_of(published(catalog, parts, indexing(61, 4)).id)
    assert {path.name for path in (folder / "chunks").iterdir()} == {REVISIONS_FILE, FORMER_PLACES_FILE}
    for name in ("documents", "texts"):
        uris = [pq.read_table(file)["uri"].to_pylist() for file in tables_of(folder, name)]
        assert [{shard_of(uri) for uri in own} for own in uris] == [{0}, {1}, {2}, {3}]
        assert sum(map(len, uris)) == len(documents)
    rejected = [pq.read_table(file)["reason"].to_pylist() for file in tables_of(folder, "rejected")]
    assert rejected == [[REPEATED] if shard == shard_of("d001") else [] for shard in range(4)]

    # A shard without its documents, as earlier versions wrote it, is no generation.
    mine = tables_of(folder, "documents")[1]
    mine.rename(away := mine.with_suffix(".away"))
    with pytest.raises(CorruptionError, match="rebuild or roll back"):
        ChunkStore(folder / "chunks")
    earlier = Base.of(catalog, full=True)
    assert (earlier.folder, earlier.generation) == (None, folder.name)
    with pytest.raises(CorruptionError, match="weft index --full"):
        tables_of(folder, "documents")
    away.rename(mine)

    # What did not change is taken from four shards into two.
    kept = [(document, document.uri) for document, _ in documents if document.uri != "d007"]
    part = parts_of(tmp_path / "second", [changed := a_document("d007", "text number seven was changed")], 1)
    pq.write_table(schemas.unchanged_to_table(kept), part[0] / "kept.parquet")
    after = published(catalog, part, indexing(60, 2), base=True)
    anew = parts_of(tmp_path / "anew", [*documents[:7], changed, *documents[8:]], 3)
    assert after.content_hash == published(Catalog(tmp_path / "whole"), anew, indexing(60, 2)).content_hash
    assert sum(pq.read_metadata(file).num_rows for file in tables_of(catalog.folder_of(after.id), "texts")) == 60


def shard_of(uri: str) -> int:
    """Of four."""
    return int(hashlib.sha256(uri.encode()).hexdigest()[0], 16) // 4


EDGES = {"calls", "imports", "implements", "cites", "derived_from", "similar", "mentions", "defines"}


def test_a_graph_is_made_shard_by_shard_and_is_the_same(tmp_path: Path) -> None:
    """SCL-9: from 1 to 8 shards; no task reads the tables of another one, and one that runs again writes the same."""
    trees = [f"t{number}" for number in range(4)]
    files = [part for tree in trees for part in a_tree(tree)]
    notes = [f"note {number} says natural language processing or nlp" for number in range(20)]
    files += [a_document(f"notes/{number}.txt", text) for number, text in enumerate(notes)]
    names = [("concept", "natural language processing"), ("concept", "nlp")]
    mentions = [mention for text in notes for mention in mentioned(text, *names)]
    first: tuple[Any, ...] | None = None
    for shards in SHARDS:
        catalog, parts = Catalog(tmp_path / f"store-{shards}"), parts_of(tmp_path / f"parts-{shards}", files, 2)
        pq.write_table(schemas.mentions_to_table(mentions), parts[0] / "mentions.parquet")
        blank = [Rejection(f"{tree}/__init__.py", "blank", "") for tree in trees]
        pq.write_table(schemas.rejections_to_table(blank), parts[1] / "rejected.parquet")
        own = indexing(sum(len(chunks) for _, chunks in files), shards)
        manifest = published(catalog, parts, own, executor=replace(HERE, tasks=alone))
        with closing(catalog.open_live()) as generation:
            graph, counts = generation.graph, dict(manifest.counts)
            made = graph.table("nodes").to_pylist(), graph.table("edges").to_pylist(), counts
            made += unmet_relations(generation.folder), edges(graph, files)
            assert [
                shard
                for shard in shards_of(generation.folder)
                if not pq.read_metadata(shard / "graph" / "edges.parquet").num_rows
            ] == []
        first = first or made
        assert made == first
    assert first is not None
    assert {edge["kind"] for edge in first[1]} == EDGES
    for tree in trees:
        assert {
            ("calls", f"{tree}/app.py main", f"{tree}/p/q/deep.py load", 1.0),  # passed on twice
            ("calls", f"{tree}/b/Main.java Main.run", f"{tree}/a/Base.java Base", 1.0),
            ("implements", f"{tree}/admin/admin.go Admin", f"{tree}/auth/auth.go Validator", 2 / 3),
            ("cites", f"{tree}/cited.md", f"{tree}/paper.md", 1.0),
            ("derived_from", f"{tree}/cited.md", f"{tree}/paper.md", 1.0),
        } <= first[4]
    assert first[3] == [
        f"{tree}/cited.md {relation}: expected one document of this name, found {documents}"
        for tree in trees
        for relation, documents in (("supersedes gone.md", "none"), ("supports twin.md", 2))
    ]
    assert [node["aliases"] for node in first[0] if node["label"] == "concept"] == [
        ["natural language processing", "nlp"]
    ]


def alone(run: Callable[[Any], Any], tasks: Sequence[Any], **_: Any) -> Iterator[Any]:
    """Results of tasks; those of a graph run while the tables of other shards are away, the first one of each twice."""
    for task in tasks:
        of_graph = isinstance(task, PartitionTask)
        others = [shard for shard in shards_of(task.graph.staging) if shard != task.folder] if of_graph else []
        for shard in others:
            (shard / "chunks").rename(shard / "away")
        if of_graph and task.number == 0:
            run(task)
        result = run(task)
        for shard in others:
            (shard / "away").rename(shard / "chunks")
        yield result


def told_plainly(generation: Generation) -> tuple[Any, ...]:
    lexical = generation.lexical.search("text number seven", 400)
    texts = [content.text for content in generation.chunks]
    return lexical, texts, generation.dense(ENCODER).vectors(range(len(texts))).tolist()
