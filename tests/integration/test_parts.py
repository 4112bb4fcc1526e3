"""One behaviour of every place that shards are searched in: in this process, and on Ray Serve (SCL-12)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.copies import hosts_of, memory_url
from tests.support.generations import a_manifest
from tests.support.parts import ENCODER, embed
from tests.support.served import on_serve
from tests.support.sharded import FleetHere, answers, collection, groups, indexing, parts_of, published
from weft.catalog.catalog import Catalog
from weft.domain.errors import StoreError
from weft.indexes.generation import Generation
from weft.indexes.manifest import Manifest, ShardFacts
from weft.indexes.parts import FAILED, Share, ask_all, is_table, noting_failures
from weft.indexes.rows import RowSet
from weft.indexes.spread import Indexes
from weft.retrieval.snapshot.ports import Fleet
from weft.runtime.storage.working_copy import working_copy_of

SHARES = 4


@dataclass(frozen=True)
class Sharded:
    """A store of four shards, and the questions of its collection."""

    catalog: Catalog
    manifest: Manifest
    questions: Sequence[str]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, data_root: Path) -> Sharded:
    folder = tmp_path_factory.mktemp("sharded")
    documents, questions = collection(data_root, "scifact")
    own = indexing(sum(len(chunks) for _, chunks in documents), SHARES, exact_below=100)
    catalog = Catalog(folder / "store")
    return Sharded(catalog, published(catalog, parts_of(folder / "parts", documents, 2), own), questions)


@pytest.fixture(scope="module", params=["here", "served"])
def fleet(request: pytest.FixtureRequest, store: Sharded) -> Iterator[Fleet]:
    if request.param == "here":
        yield FleetHere(store.catalog, SHARES)
        return
    request.getfixturevalue("cluster")
    with on_serve(store.catalog.root, shards=SHARES) as served:
        yield served(20_000.0)


@pytest.fixture
def whole(store: Sharded) -> Iterator[Generation]:
    with closing(store.catalog.open_live()) as generation:
        yield generation


@pytest.fixture
def apart(store: Sharded, fleet: Fleet) -> Iterator[Generation]:
    with closing(store.catalog.open_tables(store.manifest.id, fleet.parts)) as generation:
        yield generation


def test_what_is_found_is_what_one_index_of_all_finds(store: Sharded, whole: Generation, apart: Generation) -> None:
    """SCL-7, SCL-8: by words and by vectors, by FAISS's candidates, among all and among some."""
    assert store.manifest.dense[ENCODER].kind == "ivfpq"
    rows = len(whole.contents)
    vectors = np.array([embed(text) for text in store.questions])
    for among in (None, RowSet(np.arange(rows) % 3 == 0), RowSet(np.arange(rows) < rows // 5)):
        sets = [among] * len(store.questions)
        for texts in (store.questions, [f'"{text}" +{text.split()[-1]}' for text in store.questions]):
            ours, theirs = (each.lexical.search_many(texts, 30, sets) for each in (apart, whole))
            for (own, scores), (other, expected) in zip(ours, theirs, strict=True):
                assert scores == pytest.approx(expected, rel=1e-6)
                assert groups(zip(own, scores, strict=True)) == groups(zip(other, expected, strict=True))
        own, cosines = apart.dense(ENCODER).search(vectors, 30, among)
        other, expected_cosines = whole.dense(ENCODER).search(vectors, 30, among)
        assert own.tolist() == other.tolist()
        assert cosines.tolist() == expected_cosines.tolist()


def test_what_is_asked_of_rows_and_words_is_the_same(store: Sharded, whole: Generation, apart: Generation) -> None:
    """SCL-12: vectors in any order, repeats and none of them; frequencies, holders and words that nothing holds."""
    rows = np.array([*range(0, len(whole.contents), 7), 3, 3, 1])
    for some in (rows, rows[:0]):
        assert apart.dense(ENCODER).vectors(some).tolist() == whole.dense(ENCODER).vectors(some).tolist()
    assert apart.dense(ENCODER).isolation.tolist() == whole.dense(ENCODER).isolation.tolist()
    for text in store.questions:
        for word in text.split():
            assert apart.lexical.share_of(word) == whole.lexical.share_of(word)
            ours, theirs = (each.lexical.holding(word, phrase=False) for each in (apart, whole))
            assert (ours is None) == (theirs is None)
            assert ours is None or np.array_equal(ours, theirs)
        unknown = f"{text} zyzzyvas"
        assert apart.lexical.unknown_words(unknown) == whole.lexical.unknown_words(unknown)


def test_answers_are_those_of_one_process(store: Sharded, fleet: Fleet) -> None:
    """SCL-12: through all four stages the same contents in order, scores within 1e-6."""
    ours, theirs = (answers(store.catalog, store.questions, each) for each in (fleet, None))
    for own, other in zip(ours, theirs, strict=True):
        assert [digest for digest, _ in own] == [digest for digest, _ in other]
        assert [score for _, score in own] == pytest.approx([score for _, score in other], rel=1e-6)


def fail(_indexes: Indexes, number: int) -> int:
    """Fail in one share of two."""
    if number % 2:
        raise StoreError(f"share {number} is broken")
    return number


def test_what_fails_is_left_out_and_named(store: Sharded, fleet: Fleet) -> None:
    """SCL-12: the others reply; where none does that is an error, which names each."""
    parts, noted = fleet.parts(store.manifest), dict[str, str]()
    with noting_failures(noted):
        replies = ask_all(parts, fail, [(number,) for number in range(SHARES)])
    assert FAILED.get() is None
    assert [(part.name, reply) for part, reply in replies] == [("shard-0", 0), ("shard-2", 2)]
    assert sorted(noted) == ["shard-1", "shard-3"]
    assert all("is broken" in why for why in noted.values())
    with pytest.raises(StoreError, match=r"shard-0: .*share 1 is broken; shard-1: "):
        ask_all(fleet.parts(store.manifest), fail, [(1,)] * SHARES)


def test_a_share_is_fetched_once_and_nothing_else_with_it(
    store: Sharded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SCL-12: a root has tables and graph, each share the indexes of its shards, and what is dropped is gone."""
    host = hosts_of(memory_url(), tmp_path)
    there = working_copy_of(host("publisher"))
    assert there is not None
    name, folder = f"generations/{store.manifest.id}", store.catalog.folder_of(store.manifest.id)
    there.publish(name, folder)
    for searcher, own in (("root", None), ("first", Share(0, 2)), ("second", Share(1, 2))):
        catalog = Catalog(host(searcher))
        for _ in range(2):
            if own is None:
                with closing(catalog.open_tables(store.manifest.id, FleetHere(store.catalog, 2).parts)) as generation:
                    assert generation.lexical.search(store.questions[0], 5)
            else:
                indexes = catalog.open_share(store.manifest.id, own)
                assert indexes is not None
                indexes.close()
            # Once is enough: there is nothing to fetch from now on.
            monkeypatch.setattr(working_copy_of(catalog.root), "fetch", None)
        within = catalog.root / ".searched" / ("tables" if own is None else f"{own.number}-of-2") / name
        fetched = {path.relative_to(within).as_posix() for path in within.rglob("*") if path.is_file()}
        wanted = {
            file for file in store.manifest.files if (is_table(file) if own is None else own.has(store.manifest, file))
        }
        assert fetched == wanted | {"manifest.json"}
        if own is not None:
            catalog.drop_share(store.manifest.id, own)
            assert not within.exists()


@given(st.integers(1, 40), st.integers(1, 12))
def test_every_shard_lies_in_one_share(shards: int, shares: int) -> None:
    """SCL-12: in their order, whichever there are more of."""
    facts = [ShardFacts(counts={"contents": 2 + number}, digest="") for number in range(shards)]
    manifest = a_manifest("any").model_copy(update={"shards": facts})
    rows = [row for number in range(shares) for row in Share(number, shares).rows(manifest)]
    assert rows == list(range(sum(each.counts["contents"] for each in facts)))
    owners = [number for number in range(shares) if Share(number, shares).has(manifest, "shards/0000/text/lucene/a")]
    assert len(owners) == 1
