from __future__ import annotations

import multiprocessing
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from weft.runtime.storage.sqlite import BlobCache, blob_key

pytestmark = pytest.mark.integration


def _put_many(path: Path, worker: int) -> None:
    cache = BlobCache(path)
    for batch in range(20):
        cache.put({f"{worker}-{batch}-{row}": bytes([worker]) * 768 for row in range(10)})
    cache.close()


def test_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    """ING-20: several workers share a cache without a lock of their own."""
    path = tmp_path / "c.sqlite"
    spawned = multiprocessing.get_context("fork")
    workers = [spawned.Process(target=_put_many, args=(path, worker)) for worker in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    cache = BlobCache(path)
    assert [worker.exitcode for worker in workers] == [0, 0, 0, 0]
    assert len(cache) == 4 * 20 * 10
    cache.close()


@pytest.mark.parametrize("before", [None, b"not a database, whatever it was before" * 100])
def test_workers_that_make_it_at_once_all_have_it(tmp_path: Path, before: bytes | None) -> None:
    """ING-20: none is told that another one is just making it, or replacing what was damaged, forty times over."""
    for attempt in range(40):
        path, all_here = tmp_path / f"{attempt}.sqlite", threading.Barrier(8)
        if before is not None:
            path.write_bytes(before)

        def worker(number: int, path: Path = path, all_here: threading.Barrier = all_here) -> int:
            all_here.wait(60.0)
            cache = BlobCache(path)
            cache.put({str(number): b"1"})
            known = len(cache)
            cache.close()
            return known

        with ThreadPoolExecutor(8) as threads:
            assert max(threads.map(worker, range(8))) == 8


def test_a_file_that_is_no_cache_is_replaced(tmp_path: Path) -> None:
    """ING-20: a damaged cache costs recomputation, never the run."""
    path = tmp_path / "c.sqlite"
    path.write_bytes(b"not a database, whatever it was before" * 100)
    cache = BlobCache(path)
    cache.put({"a": b"1"})
    assert cache.get(["a", "b"]) == {"a": b"1"}
    cache.close()


def test_more_keys_than_one_statement_takes_are_all_found(tmp_path: Path) -> None:
    """ING-20: look-ups are not bounded by SQLite's limit of variables."""
    cache = BlobCache(tmp_path / "c.sqlite")
    blobs = {blob_key(str(number)): str(number).encode() for number in range(1201)}
    cache.put(blobs)
    assert cache.get(list(blobs)) == blobs
    cache.clear()
    assert len(cache) == 0
    cache.close()
