"""SCL-4: a store in an object store, seen from several hosts."""

from __future__ import annotations

import pickle
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.support.copies import Host, hosts_of, memory_url
from tests.support.generations import a_staged_generation, publish
from weft.catalog.catalog import Catalog
from weft.catalog.learned import LearnedState
from weft.domain.errors import ConfigurationError, CorruptionError, StaleVersionError, StoreError
from weft.domain.ids import GenerationId, VersionName
from weft.domain.links import LinkKind, Relation
from weft.learning.evidence import Evidence, EvidenceKey
from weft.runtime.storage import working_copy
from weft.runtime.storage.objects import Objects
from weft.runtime.storage.working_copy import make_working_copy, place_of, working_copy_of
from weft.settings import load_settings


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    monkeypatch.setattr(working_copy, "FOLLOW_S", 0.0)
    return hosts_of(memory_url(), tmp_path)


def objects_of(root: Path) -> Objects:
    copy = working_copy_of(root)
    assert copy is not None
    return copy.objects


def learned(micro: int) -> LearnedState:
    evidence = Evidence({EvidenceKey(1, "code", "any", "any", "any", "signal.vector.good", "for"): micro})
    return LearnedState(parent=None, evidence=evidence, cut=Evidence())


def test_what_one_host_publishes_another_one_reads(host: Host) -> None:
    """SCL-4: generations, learned versions and relations, each file compared with its manifest."""
    a, b = Catalog(host("a")), Catalog(host("b"))
    assert publish(a, "g1") == b.pointer().generation
    assert [path.read_text() for path in sorted(b.folder_of(GenerationId("g1")).rglob("*.npy"))] == ["g1"]
    assert b.verify(GenerationId("g1")).id == "g1"
    version = b.learned.publish(learned(1), expected_newest=None)
    b.make_live(version)
    assert a.live.evidence() == learned(1).evidence
    relation = Relation("a.md", LinkKind.CAUSED, "b.md")
    a.declare(relation)
    b.declare(replace(relation, target="c.md"))
    assert [each.target for each in a.relations()] == ["b.md", "c.md"]
    b.retract(relation)
    assert [each.target for each in a.relations()] == ["c.md"]
    assert a.store_id() == b.store_id() is not None


def test_the_manifest_is_written_last_and_the_pointer_after_it(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """SCL-4: a run that dies at any write leaves what was live, and the next one publishes."""
    first = Catalog(host("a"))
    publish(first, "g0")
    written: list[str] = []
    real = type(objects_of(host("a")))
    monkeypatch.setattr(real, "put", noted(written, real.put))
    monkeypatch.setattr(real, "create", noted(written, real.create))
    monkeypatch.setattr(real, "swap", noted(written, real.swap))
    publish(first, "g1")
    assert [key for key in written if "/" not in key or key.endswith("manifest.json")] == [
        "generations/g1/manifest.json",
        "current.json",
    ]
    assert written[-1] == "current.json"
    for cut in range(len(written)):
        name, fewer = f"cut-{cut}", [cut]
        with monkeypatch.context() as patch:
            for method in ("put", "create", "swap"):
                patch.setattr(real, method, dying(fewer, getattr(real, method)))
            with pytest.raises(Died):
                publish(Catalog(host("a")), name)
        live = Catalog(host(f"reader-{cut}"))
        assert live.pointer().generation == "g1"
        assert live.verify(GenerationId("g1")).id == "g1"
    assert publish(Catalog(host("b")), "g2") == "g2"


class Died(BaseException):
    """The process ends here."""


def noted(written: list[str], write: Callable[..., Any]) -> Callable[..., Any]:
    def called(self: Objects, key: str, *rest: Any) -> Any:
        written.append(key)
        return write(self, key, *rest)

    return called


def dying(left: list[int], write: Callable[..., Any]) -> Callable[..., Any]:
    def called(self: Objects, key: str, *rest: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise Died
        return write(self, key, *rest)

    return called


def test_one_of_two_publishers_wins(host: Host) -> None:
    """SCL-4: two hosts build on one generation; the second is refused, and nothing of its own stays."""
    a, b = Catalog(host("a")), Catalog(host("b"))
    parent = publish(a, "g1")
    staged = {catalog: a_staged_generation(catalog, name) for catalog, name in ((a, "from-a"), (b, "from-b"))}

    def publishes(catalog: Catalog) -> str | None:
        try:
            return catalog.publish(staged[catalog], expected_parent=parent)
        except StaleVersionError:
            return None

    with ThreadPoolExecutor(2) as threads:
        won = [name for name in threads.map(publishes, (a, b)) if name is not None]
    assert won == [Catalog(host("c")).pointer().generation]
    assert {each.id for each in Catalog(host("c")).generations()} == {"g1", *won}
    names = {each.key.split("/")[1] for each in objects_of(host("a")).list("generations/")}
    assert names == {"g1", *won}


def test_one_of_two_nights_gets_a_number(host: Host) -> None:
    """SCL-4: learned versions are numbered by create-once, and the loser's files are not the winner's."""
    a, b = Catalog(host("a")), Catalog(host("b"))
    assert a.learned.publish(learned(1), expected_newest=None) == "v000001"
    with pytest.raises(StaleVersionError, match="start `weft consolidate` anew"):
        b.learned.publish(learned(2), expected_newest=None)
    newest = b.learned.newest()
    assert b.learned.publish(learned(3), expected_newest=newest) == "v000002"
    assert a.learned.read(VersionName("v000001")).evidence == learned(1).evidence
    assert a.learned.read(VersionName("v000002")).evidence == learned(3).evidence


def test_a_file_that_differs_from_its_manifest_is_not_served(host: Host) -> None:
    """SCL-4, ARC-2: what was damaged on the way or in the store is never opened; the one before stands in."""
    a, b = Catalog(host("a")), Catalog(host("b"))
    publish(a, "g1")
    objects = objects_of(host("a"))
    (key,) = [each.key for each in objects.list("generations/") if each.key.endswith(".npy")]
    objects.put(key, b"other")
    with pytest.raises(CorruptionError, match="expected sha256"):
        b.folder_of(GenerationId("g1"))
    assert not list((b.root / "generations").glob("g1"))


def test_what_is_damaged_is_fetched_again_ever_more_rarely(
    host: Host, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """SCL-4, SCL-12: each wait is twice the last one, up to a bound, and the log says so once; mended, it is opened."""
    a, b = Catalog(host("a")), Catalog(host("b"))
    publish(a, "g1")
    objects, now, fetched_at = objects_of(host("a")), [0.0], list[float]()
    (key,) = [each.key for each in objects.list("generations/") if each.key.endswith(".npy")]
    objects.put(key, b"other")
    real = type(objects)
    fetch = real.fetch

    def noting(self: Objects, name: str, path: Path) -> bool:
        fetched_at.extend([now[0]] if name == key else [])
        return fetch(self, name, path)

    monkeypatch.setattr(real, "fetch", noting)
    monkeypatch.setattr(working_copy.time, "monotonic", lambda: now[0])
    while now[0] < 1_500.0:
        with pytest.raises(CorruptionError, match="expected sha256"):
            b.folder_of(GenerationId("g1"))
        now[0] += 1.0
    waits = [later - earlier for earlier, later in pairwise(fetched_at)]
    assert waits == [2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 300.0, 300.0, 300.0]
    assert caplog.text.count("fetched again") == 1
    objects.put(key, b"g1")
    now[0] += working_copy.DAMAGED_MOST_S
    assert b.verify(GenerationId("g1")).id == "g1"


def test_what_was_rewritten_is_dropped_everywhere(host: Host) -> None:
    """LES-14: evidence that must not stay in any file stays on no host, and not in the store."""
    a, b = Catalog(host("a")), Catalog(host("b"))
    version = a.learned.publish(learned(1), expected_newest=None)
    a.make_live(version)
    b.learned.read(version)
    before = set(objects_of(host("a")).list("learned/"))
    assert a.learned.rewrite(version, lambda _: learned(2).evidence)
    b.pointer()
    assert b.learned.read(version).evidence == learned(2).evidence
    assert a.learned.read(version).evidence == learned(2).evidence
    assert not before & set(objects_of(host("a")).list("learned/"))


def test_leftovers_go_after_the_grace_period(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """SCL-4: what no manifest names, once no upload can be under way; what is published stays."""
    catalog = Catalog(host("a"))
    publish(catalog, "g1")
    objects = objects_of(host("a"))
    objects.put("generations/died/0123/chunks/chunks.parquet", b"half")
    objects.put("learned/v000009/0123/evidence.parquet", b"half")
    catalog.clean_leftovers()
    assert objects.get("generations/died/0123/chunks/chunks.parquet") is not None
    now = time.time()
    monkeypatch.setattr(working_copy.time, "time", lambda: now + working_copy.GRACE_S + 60.0)
    catalog.clean_leftovers()
    assert {each.key.split("/")[1] for each in objects.list("generations/")} == {"g1"}
    assert list(objects.list("learned/")) == []
    assert Catalog(host("b")).verify(GenerationId("g1")).id == "g1"


def test_pruned_generations_go_from_the_store_and_from_other_hosts(host: Host) -> None:
    """SCL-4: a host that prunes removes its copies of what another one removed."""
    a, b = Catalog(host("a")), Catalog(host("b"))
    for number in range(4):
        publish(a, f"g{number}", created_at=float(number))
        b.folder_of(GenerationId(f"g{number}"))
    assert a.prune(1) == ["g0", "g1"]
    assert [each.id for each in b.generations()] == ["g2", "g3"]
    b.prune(1)
    assert sorted(path.name for path in (b.root / "generations").glob("g*")) == ["g2", "g3"]


def test_a_list_that_comes_late_costs_nothing_but_time(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """SCL-3, SCL-4: what is live is read, published upon and kept by its name, though no list shows it yet."""
    a, b = Catalog(host("a")), Catalog(host("b"))
    publish(a, "g1")
    real = type(objects_of(host("a")))
    monkeypatch.setattr(real, "list", lambda *_: iter(()))
    assert publish(a, "g2") == b.pointer().generation
    assert b.verify(GenerationId("g2")).id == "g2"
    assert publish(b, "g3") == a.pointer().generation
    version = b.learned.publish(learned(1), expected_newest=None)
    with pytest.raises(StaleVersionError, match="expected to publish v000001"):
        a.learned.publish(learned(2), expected_newest=None)
    assert a.make_live(version).learned == b.pointer().learned == version
    monkeypatch.undo()
    a.clean_leftovers()
    assert Catalog(host("c")).verify(GenerationId("g3")).id == "g3"
    assert Catalog(host("c")).learned.read(version) == b.learned.read(version)


def test_a_host_that_cannot_reach_the_store_serves_what_it_knows(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """SCL-4: a search goes on; a publisher says what is wrong."""
    a = Catalog(host("a"))
    publish(a, "g1")
    real = type(objects_of(host("a")))

    def unreachable(*_: object) -> None:
        raise StoreError("no route")

    for method in ("get", "list", "put", "create", "swap"):
        monkeypatch.setattr(real, method, unreachable)
    assert a.pointer().generation == "g1"
    assert a.folder_of(GenerationId("g1")).is_dir()
    with pytest.raises(StoreError, match="no route"):
        publish(a, "g2")
    with pytest.raises(StoreError, match="no route"):
        Catalog(host("b")).pointer()


def test_a_working_copy_is_of_one_store(host: Host, tmp_path: Path) -> None:
    """SCL-1: a folder that is the copy of another store, or a store itself, is not written to."""
    publish(Catalog(host("a")), "g1")
    with pytest.raises(ConfigurationError, match="found that of"):
        make_working_copy(host("a"), memory_url())
    publish(Catalog(tmp_path / "own"), "g1")
    with pytest.raises(ConfigurationError, match="found a store of its own"):
        make_working_copy(tmp_path / "own", memory_url())
    (host("a") / "store.json").write_text('{"id": "another"}')
    with pytest.raises(CorruptionError, match="remove that folder"):
        fresh(host("a")).pointer()


def fresh(root: Path) -> Catalog:
    """A catalog as a new process opens it."""
    working_copy._copies.clear()
    return Catalog(root)


def test_a_url_is_worked_on_below_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SCL-3: `storage.root` may be a URL; `storage.local` says where its copy lies."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    url = memory_url()
    settings = load_settings([], [f"storage.root={url}"], environment={})
    assert Path(settings.storage.root) == place_of(url) != place_of(memory_url())
    assert Path(settings.storage.root).is_relative_to(tmp_path / "weft" / "stores")
    elsewhere = load_settings([], [f"storage.root={url}", f"storage.local={tmp_path / 'x'}"], environment={})
    assert elsewhere.storage.root == str(tmp_path / "x")
    assert place_of("some/folder") == Path("some/folder")
    with pytest.raises(ConfigurationError, match=r"storage\.root: .*s3://"):
        load_settings([], ["storage.root=ftp://host/store"], environment={})


def test_settings_take_the_store_along_to_other_hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SCL-3: a worker that is sent settings has a working copy where they say."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    url = memory_url()
    settings = load_settings([], [f"storage.root={url}"], environment={})
    sent = pickle.dumps(settings)
    shutil.rmtree(tmp_path)
    there = pickle.loads(sent)
    assert (there.storage.root, there.storage.place) == (settings.storage.root, url)
    copy = working_copy_of(Path(there.storage.root))
    assert copy is not None
    assert copy.url == url
