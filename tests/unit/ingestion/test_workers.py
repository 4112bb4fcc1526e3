from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.ingestion import CAPITALS, FORBIDDEN, WORDS, a_plan, a_tree
from weft.chunking.prose.summary import summary_of
from weft.domain.documents import ContentType, Document, Domain
from weft.domain.errors import SourceError
from weft.embedding.tokens import load_token_counter
from weft.indexes.merge import REPEATED, Merge, merge_tables
from weft.ingestion.plan import IndexPlan, items_of, units_of
from weft.ingestion.report import NOTES
from weft.ingestion.sizing import prior_sizes
from weft.ingestion.stages.models import Embed, FindEntities
from weft.ingestion.stages.read_and_chunk import ReadAndChunk, ReadRules
from weft.ingestion.units import Unit, pack, unpack, write_part

pytestmark = pytest.mark.integration


def _read(plan: IndexPlan) -> list[Unit]:
    worker = _reader(plan)
    return [worker.work(unit) for unit in units_of(plan, items_of(plan))]


def _reader(plan: IndexPlan) -> ReadAndChunk:
    sizes = prior_sizes(plan.chunking, plan.priors, limit=load_token_counter(plan.embedding).limit)
    return ReadAndChunk(ReadRules(plan.ingest, sizes, plan.embedding, plan.domain))


def _merged(plan: IndexPlan, units: list[Unit], folder: Path) -> Path:
    parts, out = folder / "parts", folder / "out"
    parts.mkdir()
    written = [write_part(parts, unit) for unit in units]
    merge_tables(Merge(tuple(written), None, out, folder / "work", plan.index.merge, plan.index.shard_contents))
    return out / "chunks"


def _embed(plan: IndexPlan, maker: str = WORDS) -> Embed:
    return Embed(plan.embedding, "words", "words-1", plan.vectors, maker)


def test_every_item_becomes_a_document_or_a_row_of_rejected(tmp_path: Path) -> None:
    """ING-3: in = documents + rejected, each with a reason."""
    plan = a_plan(a_tree(tmp_path, files=5), tmp_path / "store")
    units = _read(plan)
    documents = sum(unit.tables["documents"].num_rows for unit in units)
    rejected = [row for unit in units for row in unit.tables["rejected"].to_pylist()]
    assert documents == 5 + 1  # modules and notes
    assert {row["uri"]: row["reason"] for row in rejected} == {"tree/image.bin": "binary", "tree/blank.txt": "blank"}
    assert sum(unit.counts.get("rejected:binary", 0) for unit in units) == 1


def test_chunks_fit_the_encoder(tmp_path: Path) -> None:
    """ING-12: sizes of any domain are capped by what the encoder reads."""
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "long.txt").write_text("A sentence of a few words. " * 400)
    plan = a_plan(tmp_path / "tree", tmp_path / "store")
    tokens = [count for unit in _read(plan) for count in unit.tables["chunks"]["tokens"].to_pylist()]
    assert len(tokens) > 1
    assert max(tokens) <= 512 - 2  # the window of a model whose files name none


def test_each_distinct_text_is_embedded_once_and_never_again(tmp_path: Path) -> None:
    """ING-20: an unchanged text makes no encoder call, and gets the same bits."""
    plan = a_plan(a_tree(tmp_path, files=3), tmp_path / "store")
    unit = _read(plan)[1]
    first = _embed(plan).work(unit)
    again = _embed(plan, FORBIDDEN).work(unit)
    distinct = len(set(unit.tables["chunks"]["content_hash"].to_pylist()))
    assert distinct < unit.tables["chunks"].num_rows  # the modules share a function
    assert (first.counts["embedded"], first.counts["embedding_cache_hits"]) == (distinct, 0)
    assert (again.counts["embedded"], again.counts["embedding_cache_hits"]) == (0, distinct)
    assert again.tables["vectors"].equals(first.tables["vectors"])


def test_a_text_seen_in_another_unit_comes_from_the_cache(tmp_path: Path) -> None:
    """ING-20: only the missing texts of a unit are computed."""
    plan = a_plan(a_tree(tmp_path, files=6), tmp_path / "store")
    worker = _embed(plan)
    done = [worker.work(unit) for unit in _read(plan)]
    texts = {content for unit in done for content in unit.tables["chunks"]["content_hash"].to_pylist()}
    assert sum(unit.counts["embedded"] for unit in done) == len(texts)
    assert sum(unit.counts["embedding_cache_hits"] for unit in done) > 0


def test_mentions_point_into_the_chunk_and_are_looked_for_once(tmp_path: Path) -> None:
    """ING-16, ING-20: spans refer to the chunk's text; an unchanged text makes no GLiNER call."""
    plan = a_plan(a_tree(tmp_path, files=1), tmp_path / "store")
    unit = _read(plan)[-1]
    first = FindEntities(plan.extraction, plan.mentions, CAPITALS).work(unit)
    again = FindEntities(plan.extraction, plan.mentions, FORBIDDEN).work(unit)
    texts = {row["content_hash"]: row["text"] for row in unit.tables["chunks"].to_pylist()}
    rows = first.tables["mentions"].to_pylist()
    assert rows
    assert all(texts[row["content_hash"]][row["start"] : row["end"]] == row["text"] for row in rows)
    assert again.tables["mentions"].equals(first.tables["mentions"])
    assert (again.counts["extracted"], again.counts["entity_cache_hits"]) == (0, len(texts))


def test_other_labels_are_looked_for_again(tmp_path: Path) -> None:
    """ING-20: mentions belong to the labels and thresholds that they were found with."""
    plan = a_plan(a_tree(tmp_path, files=1), tmp_path / "store")
    unit = _read(plan)[-1]
    FindEntities(plan.extraction, plan.mentions, CAPITALS).work(unit)
    other = plan.extraction.model_copy(update={"threshold": 0.6})
    assert FindEntities(other, plan.mentions, CAPITALS).work(unit).counts["entity_cache_hits"] == 0


def test_a_unit_survives_its_journey(tmp_path: Path) -> None:
    """ARC-5: what Arrow carries between workers is what was put in."""
    plan = a_plan(a_tree(tmp_path, files=2), tmp_path / "store")
    unit = _embed(plan).work(_read(plan)[0])
    there = unpack(pack(unit))
    assert (there.number, there.items, there.counts) == (unit.number, unit.items, unit.counts)
    assert {name: table.equals(unit.tables[name]) for name, table in there.tables.items()} == dict.fromkeys(
        unit.tables, True
    )


def test_a_worker_that_runs_twice_gives_the_same(tmp_path: Path) -> None:
    """ARC-9: a retry after a kill changes nothing."""
    plan = a_plan(a_tree(tmp_path, files=3), tmp_path / "store")
    reader = _reader(plan)
    row = pack(units_of(plan, items_of(plan))[0])
    assert reader.run(row).equals(reader.run(row))


def test_of_documents_with_one_uri_the_first_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ING-3: a repeated id in a corpus is rejected and counted, and stops nothing."""
    corpus = tmp_path / "notes.jsonl"
    corpus.write_text("".join(f'{{"_id": "{name}", "text": "text {row}"}}\n' for row, name in enumerate("abacadbe")))
    monkeypatch.setattr("weft.ingestion.sources.corpus.RECORDS_PER_ITEM", 2)
    plan = a_plan(corpus, tmp_path / "store", "ingest.unit_documents=4")
    tables = _merged(plan, _read(plan), tmp_path)
    texts = {row["uri"]: row["text"] for row in pq.read_table(tables / "chunks.parquet").to_pylist()}
    rejected = [row["reason"] for row in pq.read_table(tables / "rejected.parquet").to_pylist()]
    assert texts["notes:a"] == "text 0"
    assert sorted(texts) == [f"notes:{name}" for name in "abcde"]
    assert rejected == [REPEATED] * 3  # a second time in its own unit, a and b in the next


def test_mentions_of_a_content_are_counted_once(tmp_path: Path) -> None:
    """ING-16, ARC-4: a function that stands in every module mentions what it mentions once."""
    plan = a_plan(a_tree(tmp_path, files=7), tmp_path / "store")
    worker = FindEntities(plan.extraction, plan.mentions, CAPITALS)
    tables = _merged(plan, [worker.work(unit) for unit in _read(plan)], tmp_path)
    rows = [tuple(row.values()) for row in pq.read_table(tables / "mentions.parquet").to_pylist()]
    assert sum(row[3] == 'Handle."""' for row in rows) == 1
    assert len(rows) == len(set(rows))


def test_two_sources_of_one_name_are_told_apart_or_refused(tmp_path: Path) -> None:
    """ING-3: a clash of the user's sources is an error at the start, not thousands of rejections."""
    one, two = a_tree(tmp_path / "a", files=1), a_tree(tmp_path / "b", files=1)
    plan = a_plan(one, tmp_path / "store")
    same = replace(plan, sources=[one, one])
    clash = replace(plan, sources=[one, two])
    assert items_of(same) == items_of(plan)
    with pytest.raises(SourceError, match="rename one of the folders"):
        items_of(clash)


def test_tables_of_one_name_keep_the_rows_of_both(tmp_path: Path) -> None:
    """ING-3: rows without ids are named by the folders that tell their files apart, in whatever order these come."""
    for folder in ("a/day", "b/day", "b/night"):
        (tmp_path / folder).mkdir(parents=True)
        pq.write_table(pa.table({"text": [f"{folder} one", f"{folder} two"]}), tmp_path / folder / "x.parquet")
        pq.write_table(pa.table({"text": [f"{folder} y"], "id": [f"{folder}"]}), tmp_path / folder / "y.parquet")
    base = a_plan(tmp_path, tmp_path / "store")

    def uris(*sources: str) -> list[tuple[str, str]]:
        units = _read(replace(base, sources=[tmp_path / source for source in sources]))
        assert not any(unit.tables["rejected"].num_rows for unit in units)
        rows = [row for unit in units for row in unit.tables["texts"].to_pylist()]
        return sorted((row["uri"], row["text"]) for row in rows)

    alone = [("x:0-0", "a/day one"), ("x:0-1", "a/day two")]
    assert uris("a/day/x.parquet") == uris("a/day/x.parquet", "a/day/x.parquet") == alone
    near = [("day/x:0-0", "b/day one"), ("day/x:0-1", "b/day two")]
    near += [("night/x:0-0", "b/night one"), ("night/x:0-1", "b/night two")]
    assert uris("b/night/x.parquet", "b/day/x.parquet") == uris("b/day/x.parquet", "b/night/x.parquet") == near
    far = uris("b/day/x.parquet", "a/day/x.parquet")
    assert far == [
        ("a/day/x:0-0", "a/day one"),
        ("a/day/x:0-1", "a/day two"),
        ("b/day/x:0-0", "b/day one"),
        ("b/day/x:0-1", "b/day two"),
    ]
    # An id of its own names a row, wherever it lies.
    assert uris("a/day/y.parquet", "b/day/y.parquet") == [("y:a/day", "a/day y"), ("y:b/day", "b/day y")]


def test_vectors_are_the_rounded_ones_from_the_start(tmp_path: Path) -> None:
    """ARC-9: a fresh vector has the precision of a cached one."""
    plan = a_plan(a_tree(tmp_path, files=1), tmp_path / "store")
    unit = _embed(plan).work(_read(plan)[0])
    vectors = np.array(unit.tables["vectors"]["vector"].to_pylist(), dtype=np.float64)
    assert np.array_equal(vectors, vectors.astype(np.float16).astype(np.float64))


def test_a_record_that_says_all_in_its_title_is_no_blank(tmp_path: Path) -> None:
    """ING-1: old collections have many records without a text, and their titles are judged."""
    corpus = tmp_path / "old.jsonl"
    corpus.write_text('{"_id": "1", "title": "On Locks", "text": ""}\n{"_id": "2", "title": " ", "text": ""}\n')
    (unit,) = _read(a_plan(corpus, tmp_path / "store"))
    assert unit.tables["chunks"]["text"].to_pylist() == ["On Locks"]
    assert [(row["uri"], row["reason"]) for row in unit.tables["rejected"].to_pylist()] == [("old:2", "blank")]


def test_a_part_that_cannot_be_put_in_place_is_an_error(tmp_path: Path) -> None:
    """ARC-9, ING-3: only that it is there already, from another attempt, is none; it was left out unsaid."""
    unit = Unit(0, (), {"vectors": pa.table({"x": [1]})})
    (tmp_path / "parts").mkdir()
    part = write_part(tmp_path / "parts", unit)
    assert write_part(tmp_path / "parts", unit) == part  # written twice
    (tmp_path / "parts" / "00000001").write_text("a file in its place")
    with pytest.raises(NotADirectoryError):
        write_part(tmp_path / "parts", Unit(1, (), unit.tables))
    assert [path.name for path in (tmp_path / "parts").iterdir() if path.is_dir()] == ["00000000"]


def test_a_text_that_cannot_be_summed_up_is_indexed_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ING-3, ING-18: it is told, and the documents beside it have their summaries."""

    def failing(document: Document, *_: object, **__: object) -> str:
        if "a.md" in document.uri:
            raise ValueError("nobody foresaw this")
        return "A summary."

    monkeypatch.setattr("weft.ingestion.stages.read_and_chunk.summary_of", failing)
    root = tmp_path / "tree"
    root.mkdir()
    for name in "ab":
        (root / f"{name}.md").write_text(f"# {name}\n\nSome text.\n")
    (unit,) = _read(a_plan(root, tmp_path / "store"))
    summaries = {row["uri"]: row["summary"] for row in unit.tables["documents"].to_pylist()}
    assert summaries == {"tree/a.md": None, "tree/b.md": "A summary."}
    (note,) = unit.tables["rejected"].to_pylist()
    assert (note["uri"], note["reason"]) == ("tree/a.md", "summary_crashed")
    assert "summary_crashed" in NOTES


@pytest.mark.parametrize("lead", range(8, 12))
def test_a_summary_never_ends_inside_a_character(lead: int) -> None:
    """ING-3, ING-18: where a few tokens are left after the first sentence, whatever stands there."""
    text = " ".join(["word"] * lead) + ". " + "a😀b😀" * 40 + "\n"
    document = Document(uri="a", content_type=ContentType.TEXT, domain=Domain.GENERAL, text=text, trust_level=50)
    summary = summary_of(document, [], limit=12, count_tokens=lambda some: len(some.split()) + some.count("😀"))
    assert summary is not None
    assert summary.startswith("word")
