"""ING-40: which files an index says are tracked. ING-3: whatever its bytes are."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.ingestion.git.index import IndexUnreadableError, tracked_paths

FILE, SUBMODULE, FOLDER = 0o100644, 0o160000, 0o040000


def an_index(*entries: tuple[int, int, bytes], version: int = 4, count: int | None = None) -> bytes:
    """Entries of version 4: a mode, how many bytes of the name before are dropped, and what follows instead."""
    parts = [struct.pack(">4sLL", b"DIRC", version, len(entries) if count is None else count)]
    for mode, dropped, name in entries:
        parts += [bytes(24), struct.pack(">L", mode), bytes(12 + 20 + 2), bytes([dropped]), name, b"\0"]
    return b"".join([*parts, bytes(20)])


def paths_of(data: bytes) -> set[bytes]:
    return tracked_paths(data, id_bytes=20, shared_index=lambda _: b"")


def test_names_are_written_as_what_differs_from_the_one_before() -> None:
    """ING-40: a submodule's path ends with a slash, and a folder outside of a sparse checkout is no file."""
    data = an_index((FILE, 0, b"src/a.py"), (FILE, 4, b"b.py"), (SUBMODULE, 8, b"vendor"), (FOLDER, 6, b"wide/"))
    assert paths_of(data) == {b"src/a.py", b"src/b.py", b"vendor/"}


@pytest.mark.parametrize(
    "data",
    [
        an_index(*[(FILE, 0, b"x" * 2)] * 5_000),  # each name is longer than the one before
        an_index((FILE, 0, b"x" * 5_000)),
        an_index((FILE, 0, b"a"), count=1 << 31),
        an_index((FILE, 0, b"a"), version=9),
        an_index((FILE, 0, b"a"))[:50],
        b"",
    ],
)
def test_a_hostile_index_is_refused(data: bytes) -> None:
    """ING-3: long names in few bytes, counts without entries, versions that nobody reads, early ends."""
    with pytest.raises(IndexUnreadableError):
        paths_of(data)


@given(st.binary(max_size=200))
def test_any_bytes_are_an_index_or_refused(data: bytes) -> None:
    """ING-3: no other error comes out of them, whether they are entries or a part of a split index."""
    for whole in (b"DIRC\0\0\0\2\0\0\0\1" + data, an_index(count=0)[:12] + b"link\0\0\0\xc8" + data):
        try:
            paths_of(whole)
        except IndexUnreadableError:
            continue
