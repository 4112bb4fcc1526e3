"""SCL-6, SCL-11: which shard a content is in, rows that are numbered over shards, and hashes that are held once."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.support.parts import a_document, write_part
from weft.domain.ids import ContentHash
from weft.indexes.builder import GenerationBuilder
from weft.indexes.generation import open_generation
from weft.indexes.rows import HASH, Hashes
from weft.indexes.shards import Numbering, bounds, overlapping, shard_count, stacked, take_over
from weft.settings import load_settings


def digests(count: int) -> list[str]:
    return sorted(hashlib.sha256(str(number).encode()).hexdigest() for number in range(count))


@given(st.integers(1, 300), st.integers(1, 300))
def test_ranges_are_even_and_overlap_where_their_shares_do(count: int, others: int) -> None:
    """SCL-6: shard i of n has the i-th n-th of all hashes, to one in 2³²; of another n those that hold any of it."""
    edges = [0, *(int(bound, 16) for bound in bounds(count)), 2**32]
    assert all(abs(edge - 2**32 * shard / count) <= 1 for shard, edge in enumerate(edges))
    shards = [Path(f"{shard:04d}") for shard in range(others)]
    for shard in {0, count // 2, count - 1}:
        met = {int(each.name) for each in overlapping(shards, shard, count)}
        assert met == {
            other
            for other in range(others)
            if other * count < (shard + 1) * others and shard * others < (other + 1) * count
        }


@given(st.integers(0, 10**10), st.integers(1, 10**7))
def test_shards_hold_no_more_than_they_may_and_are_not_many_too_many(contents: int, most: int) -> None:
    """SCL-6: as many as are needed, a quarter more at most; a tenth more contents seldom asks for another number."""
    needed, count = max(1, -(-contents // most)), shard_count(contents, most)
    assert needed <= count <= max(needed, 1.25 * needed)
    assert count == needed or needed > 8


@given(st.lists(st.integers(0, 5), min_size=1, max_size=6), st.data())
def test_arrays_one_after_the_other_read_as_one(sizes: list[int], data: st.DataObject) -> None:
    """SCL-6: rows of shards, by slices and by numbers in any order, are those of the arrays joined."""
    joined = np.arange(2 * sum(sizes)).reshape(-1, 2)
    arrays = np.split(joined, np.cumsum(sizes)[:-1])
    rows = data.draw(st.lists(st.integers(0, sum(sizes) - 1), max_size=9) if len(joined) else st.just([]))
    first, stop = sorted(data.draw(st.tuples(st.integers(0, 30), st.integers(0, 30))))
    view = stacked(arrays)
    assert (len(view), view.shape, view.dtype) == (len(joined), joined.shape, joined.dtype)
    assert view[np.array(rows, dtype=np.int64)].tolist() == joined[rows].tolist()
    assert view[first:stop].tolist() == joined[first:stop].tolist()
    for shard, places, own in Numbering(sizes).apart(np.array(rows, dtype=np.int64)):
        assert arrays[shard][own].tolist() == joined[rows][places].tolist()


@given(st.integers(0, 40), st.lists(st.text(max_size=3), max_size=3))
def test_hashes_are_read_and_found_as_they_are_stored(count: int, others: list[str]) -> None:
    """SCL-11: 64 bytes each and no text of Python's; what is none of them, however long, is not found."""
    listed = digests(count)
    hashes = Hashes(np.array(listed, dtype=HASH))
    assert (list(hashes), len(hashes), hashes[1:3]) == (listed, count, listed[1:3])
    assert hashes.stored.nbytes == 64 * count
    strangers = [*others, "f" * 64, *(digest + "0" for digest in listed[:1])]
    assert hashes.rows_of([*listed[::-1], *strangers]).tolist() == [*range(count)][::-1] + [-1] * len(strangers)


def test_a_generation_holds_its_hashes_once(tmp_path: Path) -> None:
    """SCL-11: chunks, graph and whoever asks for its contents share them."""
    part = write_part(tmp_path / "part", [a_document("a.txt", "one text", "and another")])
    (tmp_path / "staging").mkdir()
    GenerationBuilder(tmp_path / "staging", load_settings(environment={}).index).build([part], {})
    generation = open_generation(tmp_path / "staging")
    assert generation.contents is generation.chunks.hashes is generation.graph._contents
    assert generation.chunks.row_of(ContentHash(generation.contents[1])) == 1
    generation.close()


def test_what_is_taken_over_is_the_same_file_and_outlives_the_other(tmp_path: Path) -> None:
    """SCL-6: files and folders are linked, again without harm; who removes one of both takes nothing from the other."""
    old, new = tmp_path / "old", tmp_path / "new"
    (old / "text" / "lucene").mkdir(parents=True)
    for name in ("rows", "text/lucene/segments"):
        (old / name).write_text(name)
    for _ in range(2):
        take_over(old, new, ["rows", "text"])
    assert (old / "rows").stat().st_ino == (new / "rows").stat().st_ino
    (old / "rows").unlink()
    assert [(new / name).read_text() for name in ("rows", "text/lucene/segments")] == ["rows", "text/lucene/segments"]
