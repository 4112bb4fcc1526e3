"""SCL-5: what one host computed, another one has, until a generation holds it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.support.copies import Host, hosts_of, memory_url
from tests.support.ingestion import a_plan, a_tree
from weft.catalog.catalog import Catalog
from weft.ingestion.pipeline import ingest
from weft.ingestion.report import IndexOutcome, IndexProgress
from weft.runtime.stages import HERE
from weft.runtime.storage import packs
from weft.runtime.storage.packs import PACKS, SharedBlobs, blobs_at
from weft.runtime.storage.sqlite import BlobCache
from weft.runtime.storage.working_copy import working_copy_of


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    monkeypatch.setattr(packs, "SENT_S", 0.0)
    monkeypatch.setattr(packs, "LOOK_S", 0.0)
    return hosts_of(memory_url(), tmp_path)


def cache_on(store: Path) -> BlobCache:
    (store / "cache").mkdir(exist_ok=True)
    return blobs_at(store / "cache" / "embeddings.sqlite")


def sent(store: Path) -> list[str]:
    copy = working_copy_of(store)
    assert copy is not None
    return [each.key for each in copy.objects.list(f"{PACKS}/")]


def test_what_one_host_sent_another_one_has(host: Host) -> None:
    """SCL-5: also what was sent after it looked; each pack is fetched once."""
    one, other = cache_on(host("a")), cache_on(host("b"))
    one.put({"k": b"1"})
    assert other.get(["k", "l"]) == {"k": b"1"}
    one.put({"l": b"2"})
    assert other.get(["k", "l"]) == {"k": b"1", "l": b"2"}
    again = cache_on(host("b"))
    assert isinstance(again, SharedBlobs)
    assert not again._received(), "both packs are here"


def test_packs_are_few(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """SCL-5: a worker waits until one is large or old."""
    monkeypatch.setattr(packs, "SENT_S", 3600.0)
    monkeypatch.setattr(packs, "SENT_BYTES", 100)
    cache = cache_on(host("a"))
    for number in range(10):
        cache.put({str(number): bytes(30)})
    assert len(sent(host("a"))) == 2


def test_a_store_that_does_not_answer_costs_what_is_there(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """SCL-5, ING-3: the host has what it computed itself."""
    cache = cache_on(host("a"))
    copy = working_copy_of(host("a"))
    assert copy is not None
    for name in ("put", "list"):
        monkeypatch.setattr(copy.objects, name, _unreachable)
    cache.put({"k": b"1"})
    assert cache.get(["k", "l"]) == {"k": b"1"}


def _unreachable(*_: object) -> None:
    raise packs.StoreError("expected an answer, found none")


def indexed(store: Path, tree: Path, *, dies: bool = False, full: bool = False) -> IndexOutcome:
    def watch(progress: IndexProgress) -> None:
        if dies and progress.phase == "merging tables":
            raise KeyboardInterrupt

    return ingest(a_plan(tree, store, full=full), Catalog(store), HERE, watch, clock=time.monotonic)


def test_a_run_goes_on_where_another_host_was_lost(host: Host, tmp_path: Path) -> None:
    """SCL-5, ING-20: nothing is embedded twice, and what is live needs no pack."""
    tree = a_tree(tmp_path, files=6)
    with pytest.raises(KeyboardInterrupt):
        indexed(host("lost"), tree, dies=True)
    assert sent(host("other"))
    done = indexed(host("other"), tree)
    assert (done.embedded, done.embedding_cache_hits > 0) == (0, True)
    assert sent(host("other")) == []


def test_a_full_run_computes_everything(host: Host, tmp_path: Path) -> None:
    """SCL-5, ING-25: whatever others sent."""
    tree = a_tree(tmp_path, files=2)
    with pytest.raises(KeyboardInterrupt):
        indexed(host("lost"), tree, dies=True)
    done, alone = (indexed(store, tree, full=True) for store in (host("other"), tmp_path / "alone"))
    assert (done.embedded, done.embedding_cache_hits) == (alone.embedded, alone.embedding_cache_hits)
