"""Token embeddings put in row order, whatever places they are found in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from weft.domain.errors import StoreError
from weft.domain.ids import ContentHash, content_hash
from weft.indexes import schemas
from weft.indexes.dense.tokens import PROJECTION_FILE, TokenSources, TokenStore, gather_tokens
from weft.indexes.rows import HASH

WIDTH = 2
NAMES = sorted(content_hash(str(number)) for number in range(12))
Tokens = Mapping[ContentHash, np.ndarray]


def some_tokens(rows: Sequence[int]) -> np.ndarray:
    return np.array(rows, dtype=np.int8).repeat(WIDTH).reshape(-1, WIDTH)


PLACES = st.lists(
    st.dictionaries(st.sampled_from(NAMES), st.lists(st.integers(-9, 9), max_size=3).map(some_tokens)), max_size=4
)


def a_part(folder: Path, tokens: Tokens, encoder: str = "words") -> Path:
    folder.mkdir(parents=True)
    projection = folder.parent / PROJECTION_FILE
    np.save(projection, np.eye(WIDTH, dtype=np.float32))
    table = schemas.tokens_to_table(list(tokens), encoder, list(tokens.values()), str(projection))
    pq.write_table(table, folder / "tokens.parquet")
    return folder


def gathered(
    parts: Sequence[Path], names: Sequence[str], out: Path, before: tuple[Path, Path] | None = None
) -> TokenStore:
    out.mkdir(parents=True)
    gather_tokens(
        TokenSources(parts, [] if before is None else [before], "words"), np.array(sorted(names), dtype=HASH), out
    )
    return TokenStore(out)


def a_table_of(names: Sequence[str], path: Path) -> Path:
    pq.write_table(pa.table({"content_hash": sorted(names)}), path)
    return path


@given(PLACES, st.sets(st.sampled_from(NAMES)))
@settings(max_examples=examples(60))
def test_every_content_has_the_longest_tokens_found_of_it(
    tmp_path_factory: pytest.TempPathFactory, places: list[Tokens], wanted: set[ContentHash]
) -> None:
    """ING-19, ARC-9: the longest, of equally long ones the first by their bytes, in whatever order places are read."""
    folder = tmp_path_factory.mktemp("tokens")
    found = sorted({name for place in places for name in place})
    kept = [name for name in found if name in wanted] or found
    if not kept:
        return
    parts = [a_part(folder / f"part-{at}", place) for at, place in enumerate(places)]
    store = gathered(parts, kept, folder / "store")
    assert len(store) == len(kept)
    for name, stored in zip(kept, store.tokens(range(len(kept))), strict=True):
        candidates = [place[name] for place in places if name in place]
        assert stored.tolist() == min(candidates, key=lambda one: (-len(one), one.tobytes())).tolist()
    # A generation before takes the place of some parts, and nothing changes.
    contents = a_table_of(kept, folder / "contents.parquet")
    again = gathered(parts[::-1], kept, folder / "again", (folder / "store", contents))
    assert [one.tolist() for one in again.tokens(range(len(kept)))] == [
        one.tolist() for one in store.tokens(range(len(kept)))
    ]


def test_what_did_not_change_is_taken_from_the_generation_before(tmp_path: Path) -> None:
    """ING-25: all but one content's tokens come from there, one that is gone leaves no trace."""
    first = {name: some_tokens([at, at + 1]) for at, name in enumerate(NAMES)}
    before = gathered([a_part(tmp_path / "first", first)], NAMES, tmp_path / "before")
    fresh = content_hash("fresh")
    parts = [a_part(tmp_path / "second", {fresh: some_tokens([7])})]
    contents = a_table_of(NAMES, tmp_path / "contents.parquet")
    names = sorted([*NAMES[1:], fresh])
    store = gathered(parts, names, tmp_path / "after", (tmp_path / "before", contents))
    expected = {**dict(zip(NAMES, before.tokens(range(len(NAMES))), strict=True)), fresh: some_tokens([7])}
    found = store.tokens(range(len(names)))
    assert [one.tolist() for one in found] == [expected[ContentHash(name)].tolist() for name in names]


def test_a_content_without_tokens_is_named(tmp_path: Path) -> None:
    """ING-19: the store is whole or there is none; another encoder's tokens do not count."""
    parts = [
        a_part(tmp_path / "one", {NAMES[0]: some_tokens([1])}),
        a_part(tmp_path / "two", {NAMES[1]: some_tokens([1])}, encoder="another"),
    ]
    with pytest.raises(StoreError, match=NAMES[1]):
        gathered(parts, NAMES[:2], tmp_path / "store")


def test_without_tokens_anywhere_there_is_no_store(tmp_path: Path) -> None:
    """ING-19: token embeddings are off by configuration."""
    (tmp_path / "part").mkdir()
    gather_tokens(TokenSources([tmp_path / "part"], [], "words"), np.empty(0, dtype=HASH), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["part"]
