from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.parts import ENCODER, a_document, embed, write_part
from weft.domain.documents import ContentType
from weft.domain.errors import CorruptionError, StoreError
from weft.domain.ids import content_hash
from weft.indexes.builder import GenerationBuilder
from weft.indexes.generation import Generation, open_generation
from weft.indexes.manifest import Manifest
from weft.indexes.merge import REPEATED
from weft.indexes.settings import IndexSettings
from weft.settings import load_settings

DOCUMENTS = [
    a_document("b.txt", "shared words stand twice", "rivers flow to the sea"),
    a_document("a.txt", "shared words stand twice"),
    a_document("c.py", "def writeAtomically(path): ...", kind=ContentType.CODE),
    a_document("d.txt", *(f"filler number {n} about topic {n % 7}" for n in range(60))),
]


def settings(shards: int = 2) -> IndexSettings:
    changes = {"shards": shards, "rows_per_shard": 1}
    return load_settings(environment={}).index.model_copy(update=changes)


def built(folder: Path, *parts: list, shards: int = 2) -> Manifest:
    folders = [write_part(folder / f"part-{number}", part) for number, part in enumerate(parts)]
    staging = folder / "staging"
    staging.mkdir()
    return GenerationBuilder(staging, settings(shards)).build(folders, {"created_at": 1e9, "models": {"encoder": "m1"}})


@pytest.fixture(scope="module")
def generation(tmp_path_factory: pytest.TempPathFactory) -> Generation:
    folder = tmp_path_factory.mktemp("generation")
    built(folder, DOCUMENTS)
    return open_generation(folder / "staging")


def test_a_row_means_the_same_content_in_every_index(generation: Generation) -> None:
    """ING-22, ING-23: row i of vectors, Lucene and chunks is the i-th content hash in order."""
    text = "rivers flow to the sea"
    row = generation.chunks.row_of(content_hash(text))
    assert list(generation.contents) == sorted({chunk.content_hash for _, chunks in DOCUMENTS for chunk in chunks})
    assert generation.lexical.search(text, 1)[0][0] == row
    assert generation.dense(ENCODER).search(embed(text), 1)[0][0, 0] == row
    assert generation.chunks.contents([row])[0].text == text


def test_a_text_in_two_documents_is_one_content_that_names_both(generation: Generation) -> None:
    """ARC-4: the same text in several documents is one candidate; the smallest URI represents it."""
    (row, _), *_ = generation.lexical.search("shared words stand twice", 3)
    (content,) = generation.chunks.contents([row])
    assert [occurrence.uri for occurrence in content.occurrences] == ["a.txt", "b.txt"]


def test_words_inside_identifiers_find_code(generation: Generation) -> None:
    """ING-23: camel case is split for code."""
    (row, _), *_ = generation.lexical.search("write atomically", 1)
    assert generation.chunks.contents([row])[0].occurrences[0].uri == "c.py"


def test_parts_and_shards_change_nothing(generation: Generation, tmp_path: Path) -> None:
    """ING-24, ARC-9: the same content hash, rows and scores for other parts, another order and 1 to 8 shards."""
    for shards in (1, 4, 8):
        folder = tmp_path / str(shards)
        manifest = built(folder, DOCUMENTS[2:], [], DOCUMENTS[:2], shards=shards)
        other = open_generation(folder / "staging")
        assert manifest.content_hash == generation.manifest.content_hash
        for query in ("topic number 3", "shared sea", "filler words"):
            assert other.lexical.search(query, 20) == generation.lexical.search(query, 20)
            ours, theirs = (one.dense(ENCODER).search(embed(query), 9) for one in (other, generation))
            assert all(np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True))


def test_an_empty_corpus_is_a_generation(tmp_path: Path) -> None:
    """ING-26: nothing to index is published like anything else and finds nothing."""
    built(tmp_path, [])
    generation = open_generation(tmp_path / "staging")
    assert (len(generation.contents), generation.lexical.search("anything", 5)) == (0, [])


def test_an_unknown_encoder_is_named(generation: Generation) -> None:
    """ARC-2: searching vectors that were never built says which there are."""
    with pytest.raises(StoreError, match="found words"):
        generation.dense("other")


def test_a_content_without_a_vector_is_refused(tmp_path: Path) -> None:
    """ING-22: an incomplete part does not become a generation with holes."""
    part = write_part(tmp_path / "part", DOCUMENTS)
    (part / "vectors.parquet").rename(part / "lost")
    other = write_part(tmp_path / "other", [a_document("z.txt", "alone")])
    (tmp_path / "staging").mkdir()
    with pytest.raises(StoreError, match="expected a vector of words for every content"):
        GenerationBuilder(tmp_path / "staging", settings()).build([part, other], {})


def test_contents_are_found_by_row_hash_and_document(generation: Generation) -> None:
    """ARC-4: rows, hashes and URIs lead to the same contents, in the order asked for."""
    chunks = generation.chunks
    rows = chunks.rows_of_document("b.txt")
    assert {content.text for content in chunks.contents(rows)} == {chunk.text for chunk in DOCUMENTS[0][1]}
    assert [content.row for content in chunks.contents([5, 0, 5])] == [5, 0, 5]
    assert [content.content_hash for content in chunks] == list(generation.contents)
    assert [chunks.row_of(digest) for digest in generation.contents] == list(range(len(chunks)))
    assert (chunks.row_of(content_hash("unknown")), chunks.rows_of_document("unknown")) == (None, [])
    assert chunks.uris() == ["a.txt", "b.txt", "c.py", "d.txt"]
    with pytest.raises(IndexError, match="expected rows in"):
        chunks.contents([len(chunks)])


def test_an_occurrence_carries_its_chunk_and_the_facts_of_its_document(generation: Generation) -> None:
    """ARC-4: a result can say where it stands and what is known of the document."""
    (document, (chunk, *_)) = DOCUMENTS[0]
    (content,) = generation.chunks.contents([generation.chunks.row_of(chunk.content_hash)])
    occurrence = content.occurrences[1]
    assert occurrence.chunk == chunk
    assert (occurrence.uri, occurrence.domain, occurrence.content_type, occurrence.modified_at) == (
        document.uri,
        document.domain,
        document.content_type,
        document.modified_at,
    )


def test_of_two_documents_under_one_uri_the_first_stays(tmp_path: Path) -> None:
    """ING-3: the part whose name comes first decides, whatever order the parts are given in; the other is told."""
    parts = [write_part(tmp_path / str(n), [a_document("same.txt", f"text {n}")]) for n in range(2)]
    (tmp_path / "staging").mkdir()
    GenerationBuilder(tmp_path / "staging", settings()).build(parts[::-1], {})
    chunks = open_generation(tmp_path / "staging").chunks
    assert [content.text for content in chunks] == ["text 0"]
    assert [(row["uri"], row["reason"]) for row in chunks.table("rejected").to_pylist()] == [("same.txt", REPEATED)]


def test_one_flipped_bit_in_any_file_is_found(tmp_path: Path) -> None:
    """ARC-2: of a real generation no file can be damaged unseen."""
    built(tmp_path, DOCUMENTS)
    files = [path for path in sorted((tmp_path / "staging").rglob("*")) if path.is_file()]
    for path in files:
        data = path.read_bytes()
        flipped = bytearray(data)
        flipped[len(data) // 2] ^= 16
        path.write_bytes(flipped)
        with pytest.raises(CorruptionError, match="expected"):
            open_generation(tmp_path / "staging")
        path.write_bytes(data)
    assert len(files) > 15
    open_generation(tmp_path / "staging").close()


def test_a_changed_file_is_not_opened(tmp_path: Path) -> None:
    """ARC-2: a file that does not match its manifest is never served, and the error names it."""
    built(tmp_path, DOCUMENTS)
    vectors = tmp_path / "staging" / "vectors" / ENCODER / "vectors.npy"
    data = bytearray(vectors.read_bytes())
    data[-1] ^= 1
    vectors.write_bytes(data)
    with pytest.raises(CorruptionError, match=r"vectors\.npy: expected sha256 .* found "):
        open_generation(tmp_path / "staging")
