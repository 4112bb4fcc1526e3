from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from weft.chunking.chunker import chunk_document
from weft.chunking.units.splitting import ChunkSizes
from weft.domain.documents import ContentType, Document, Rejection
from weft.domain.errors import SourceError
from weft.ingestion.settings import IngestSettings
from weft.ingestion.sources.sources import list_items, read_source
from weft.settings import load_settings

MOMENT = datetime(2024, 5, 1, 12, tzinfo=UTC)


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> IngestSettings:
    monkeypatch.setattr("weft.ingestion.sources.sources.RECORDS_PER_ITEM", 10)
    return load_settings([], ["ingest.max_file_bytes=1000"], environment={}).ingest


def read(path: Path, settings: IngestSettings) -> tuple[list[Document], dict[str, str]]:
    results = list(read_source(path, settings, domain=None))
    return [one for one in results if isinstance(one, Document)], {
        one.uri: one.reason for one in results if isinstance(one, Rejection)
    }


def test_rows_are_records_and_columns_are_facts(tmp_path: Path, settings: IngestSettings) -> None:
    """ING-1, ING-2: text, title, identity and time by the names of columns; vectors and bytes are left out."""
    table = pa.table(
        {
            "doc_id": pa.array([7, 8]),
            "title": ["One", None],
            "content": pa.array(["First text.", "Second text."]).dictionary_encode(),
            "updated_at": pa.array([MOMENT, None], pa.timestamp("ms", "UTC")),
            "citations": [3, None],
            "tags": [["a", "b"], []],
            "vector": pa.array([[0.5] * 4] * 2, pa.list_(pa.float32(), 4)),
            "raw": [b"\x00", b"\x01"],
        }
    )
    pq.write_table(table, tmp_path / "notes.parquet")
    documents, rejected = read(tmp_path / "notes.parquet", settings)
    assert rejected == {}
    assert [(one.uri, one.title, one.text) for one in documents] == [
        ("notes:7", "One", "First text."),
        ("notes:8", None, "Second text."),
    ]
    first, second = documents
    assert (first.modified_at, first.citations) == (MOMENT.timestamp(), 3)
    assert (second.modified_at, second.citations) == (None, None)
    assert first.metadata["tags"] == '["a", "b"]'
    assert {"vector", "raw", "content"}.isdisjoint(first.metadata)
    assert {one.content_type for one in documents} == {ContentType.RECORD}
    assert {one.trust_level for one in documents} == {settings.trust.corpus}


def test_a_missing_number_is_no_id(tmp_path: Path, settings: IngestSettings) -> None:
    """ING-1: pandas writes NaN for it; such rows have a place instead, each its own."""
    ids = pa.array([1.0, float("nan"), float("nan")])
    pq.write_table(pa.table({"id": ids, "text": ["one", "two", "three"]}), tmp_path / "rows.parquet")
    documents, rejected = read(tmp_path / "rows.parquet", settings)
    assert rejected == {}
    assert [one.uri for one in documents] == ["rows:1.0", "rows:0-1", "rows:0-2"]


def test_row_groups_are_cut_into_items_and_none_is_lost(tmp_path: Path, settings: IngestSettings) -> None:
    """ING-1, ARC-9: however the file is divided, its rows come out once, in order; rows without an id get a place."""
    texts = [f"text {number}" for number in range(95)]
    pq.write_table(pa.table({"text": texts}), tmp_path / "rows.parquet", row_group_size=40)
    items = list_items(tmp_path / "rows.parquet", settings)
    assert [(item.group, item.first, item.count) for item in items] == [
        *((group, first, 10) for group in (0, 1) for first in (0, 10, 20, 30)),
        (2, 0, 10),
        (2, 10, 5),
    ]
    documents, _ = read(tmp_path / "rows.parquet", settings)
    assert [one.text for one in documents] == texts
    assert len({one.uri for one in documents}) == 95
    assert documents[-1].uri == "rows:2-14"


def test_bad_rows_are_named(tmp_path: Path, settings: IngestSettings) -> None:
    """ING-3: rows without a text, or with one too long."""
    pq.write_table(pa.table({"id": ["a", "b", "c"], "text": ["ok", None, "x" * 1001]}), tmp_path / "rows.parquet")
    documents, rejected = read(tmp_path / "rows.parquet", settings)
    assert [one.uri for one in documents] == ["rows:a"]
    assert rejected == {"rows:group 0 row 1": "invalid_record", "rows:group 0 row 2": "too_large"}


def test_files_without_texts_and_damaged_files_are_told(tmp_path: Path, settings: IngestSettings) -> None:
    """ING-3: a file that is no Parquet is an error of the source; what breaks inside one is told by its group."""
    pq.write_table(pa.table({"number": [1, 2]}), tmp_path / "numbers.parquet")
    assert read(tmp_path / "numbers.parquet", settings) == ([], {"numbers:group 0": "no_text_column"})
    (tmp_path / "none.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(SourceError, match="Parquet"):
        list_items(tmp_path / "none.parquet", settings)
    whole = tmp_path / "whole.parquet"
    pq.write_table(pa.table({"text": [f"text {n}" for n in range(50)]}), whole, compression="zstd")
    data = bytearray(whole.read_bytes())
    data[10:200] = bytes(190)
    whole.write_bytes(bytes(data))
    documents, rejected = read(whole, settings)
    assert documents == []
    assert set(rejected.values()) == {"undecodable"}


def test_values_that_python_has_none_for_cost_no_other_row(tmp_path: Path, settings: IngestSettings) -> None:
    """ING-3: bytes that are no text where there should be some, and times that no calendar has."""
    raw = pa.array([b"ok", b"caf\xe9", b"so"], pa.binary())
    texts: pa.Array = pa.Array.from_buffers(pa.string(), 3, raw.buffers())
    table = pa.table(
        {
            "text": texts,
            "id": ["a", "b", "c"],
            "timestamp": pa.array([10**13, 0, 1683554160], pa.timestamp("s")),
            "day": pa.array([2**30, 0, 1], pa.date32()),
            "note": pa.Array.from_buffers(pa.string(), 3, raw.buffers()),
            "tags": pa.ListArray.from_arrays(pa.array([0, 1, 2, 3]), texts),
        }
    )
    pq.write_table(table, tmp_path / "odd.parquet")
    documents, rejected = read(tmp_path / "odd.parquet", settings)
    assert [(one.uri, one.text, one.modified_at) for one in documents] == [
        ("odd:a", "ok", None),
        ("odd:c", "so", 1683554160.0),
    ]
    assert rejected == {"odd:group 0 row 1": "undecodable"}
    assert documents[0].metadata["day"] == str(2**30)
    assert (documents[1].metadata["note"], documents[1].metadata["tags"]) == ("so", '["so"]')


@pytest.mark.parametrize("stated", [float("nan"), float("inf"), -1e300, 10**18])
def test_numbers_that_are_no_times_are_none(tmp_path: Path, settings: IngestSettings, stated: float) -> None:
    """ING-2, ING-3: a time is one from year 1 to 9999."""
    pq.write_table(pa.table({"text": ["a"], "timestamp": [stated]}), tmp_path / "t.parquet")
    (document,), _ = read(tmp_path / "t.parquet", settings)
    assert document.modified_at is None


def test_relations_are_a_column_of_lists_or_of_their_json_or_a_column_by_kind(
    tmp_path: Path, settings: IngestSettings
) -> None:
    """GRA-1: each row declares its own; a row may declare none."""
    stated = [[{"kind": "supersedes", "target": "t:1"}], None]
    for name, relations in (("lists", stated), ("texts", ['[{"kind": "supersedes", "target": "t:1"}]', None])):
        table = pa.table({"id": ["a", "b"], "text": ["one", "two"], "relations": relations, "supports": ["t/x", None]})
        pq.write_table(table, tmp_path / f"{name}.parquet")
        documents, rejected = read(tmp_path / f"{name}.parquet", settings)
        assert rejected == {}
        assert [[(link.kind.value, link.target, link.declared) for link in one.links] for one in documents] == [
            [("supersedes", "t:1", True), ("supports", "t/x", True)],
            [],
        ]


def test_every_piece_of_a_row_comes_with_what_its_columns_say(tmp_path: Path, settings: IngestSettings) -> None:
    """ING-36: the names of columns are the names of facts; each window of a long text is under the row's title."""
    text = "".join(f"Sentence {number} of the row. " for number in range(40))
    pq.write_table(pa.table({"title": ["One"], "text": [text], "team": ["core"]}), tmp_path / "rows.parquet")
    ((document,), _) = read(tmp_path / "rows.parquet", settings)
    assert document.metadata["team"] == "core"
    sizes = ChunkSizes(max_tokens=60, target_tokens=40, min_tokens=5, overlap_tokens=10)
    chunks = chunk_document(document, sizes, lambda each: len(each.split()))
    assert len(chunks) > 2
    assert all(chunk.text.startswith("One\n") for chunk in chunks)
