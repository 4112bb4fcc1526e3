"""One behaviour of every place that a store may be kept in: a folder, a memory, and over HTTP S3, Google's XML API and
Azure's emulator (SCL-2, SCL-3)."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.azurite import Azurite, azurite
from tests.support.s3 import S3Server, lost_answer, s3_server, slow_down, torn
from weft.domain.errors import ConfigurationError, StoreError
from weft.runtime.storage.objects import FolderObjects, Objects, objects_at
from weft.runtime.storage.remote import RemoteObjects

Open = Callable[[], Objects]


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with s3_server() as server, pytest.MonkeyPatch.context() as patch:
        for name, value in server.environment().items():
            patch.setenv(name, value)
        yield server


@pytest.fixture(scope="module")
def google() -> Iterator[S3Server]:
    with s3_server(google=True) as server, pytest.MonkeyPatch.context() as patch:
        for name, value in server.environment().items():
            patch.setenv(name, value)
        yield server


@pytest.fixture(scope="module")
def azure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azurite]:
    with azurite(tmp_path_factory.mktemp("azurite")) as server, pytest.MonkeyPatch.context() as patch:
        for name, value in server.environment().items():
            patch.setenv(name, value)
        yield server


@pytest.fixture(params=["folder", "memory", "s3", "google", pytest.param("azure", marks=pytest.mark.slow)])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Opens one and the same empty place, as another process would."""
    if request.param == "folder":
        return lambda: FolderObjects(tmp_path / "objects")
    if request.param == "memory":
        memory = RemoteObjects("memory://here")
        return lambda: memory
    server = request.getfixturevalue(request.param)
    place = {"s3": "s3://", "google": "gs://", "azure": "az://"}[request.param] + server.bucket
    url = f"{place}/{secrets.token_hex(4)}/below"
    return lambda: RemoteObjects(url)


def test_an_object_is_read_as_it_was_written(opened: Open, tmp_path: Path) -> None:
    """SCL-3: get, put and fetch, of bytes and of files, and over what was there."""
    objects, file = opened(), tmp_path / "file"
    file.write_bytes(bytes(range(256)) * 40_000)  # more than one part of an upload
    assert objects.get("a/b") is None
    assert not objects.fetch("a/b", tmp_path / "none")
    objects.put("a/b", b"first")
    objects.put("a/b", file)
    objects.put("a/empty", b"")
    there = opened()
    found = there.get("a/b")
    assert found is not None
    assert found.data == file.read_bytes()
    assert there.fetch("a/b", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == found.data
    empty = there.get("a/empty")
    assert empty is not None
    assert empty.data == b""


def test_what_is_deleted_is_gone_and_the_rest_stays(opened: Open) -> None:
    objects = opened()
    for key in ("a/1", "a/2", "ab/3"):
        objects.put(key, key.encode())
    objects.delete(["a/1", "never"])
    assert objects.get("a/1") is None
    assert [each.key for each in objects.list("")] == ["a/2", "ab/3"]


def test_a_list_shows_what_lies_below_a_prefix(opened: Open) -> None:
    """SCL-3: list by prefix, with sizes, and tags that change with the content."""
    objects = opened()
    for number in range(12):
        objects.put(f"a/{number:02d}/x", b"x" * number)
    objects.put("b/x", b"")
    listed = list(objects.list("a/"))
    assert [each.key for each in listed] == [f"a/{number:02d}/x" for number in range(12)]
    assert [each.size for each in listed] == list(range(12))
    objects.put("a/03/x", b"yyy")
    changed = [now.key for was, now in zip(listed, objects.list("a/"), strict=True) if was.tag != now.tag]
    assert changed == ["a/03/x"]
    assert list(objects.list("none/")) == []


def test_one_of_many_creates(opened: Open) -> None:
    """SCL-3: create-once, raced for; what the first one wrote stays."""
    names = [b"writer %d" % number for number in range(8)]
    with ThreadPoolExecutor(len(names)) as threads:
        won = list(threads.map(lambda name: opened().create("one", name), names))
    assert won.count(True) == 1
    found = opened().get("one")
    assert found is not None
    assert found.data == names[won.index(True)]


def test_writers_take_turns_by_compare_and_set(opened: Open) -> None:
    """SCL-3: no update is lost when several writers count in one object."""

    def count(_: int) -> None:
        objects, done = opened(), 0
        while done < 5:
            there = objects.get("count")
            number = 0 if there is None else int(there.data)
            done += objects.swap("count", b"%d" % (number + 1), None if there is None else there.tag) is not None

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(count, range(4)))
    found = opened().get("count")
    assert found is not None
    assert found.data == b"20"


def test_a_swap_of_what_is_not_there_any_more_does_nothing(opened: Open) -> None:
    objects = opened()
    tag = objects.swap("a", b"1", None)
    assert tag is not None
    assert objects.swap("a", b"2", None) is None
    assert objects.swap("a", b"2", tag) is not None
    assert objects.swap("a", b"3", tag) is None
    objects.delete(["a"])
    assert objects.swap("a", b"4", tag) is None
    assert objects.get("a") is None


@pytest.fixture
def remote(s3: S3Server) -> Iterator[RemoteObjects]:
    yield RemoteObjects(f"s3://{s3.bucket}/{secrets.token_hex(4)}")
    s3.faults.clear()
    s3.late = False


def test_a_busy_server_is_asked_again(s3: S3Server, remote: RemoteObjects) -> None:
    """SCL-3: 503 SlowDown delays any request, and changes what none of them comes to."""
    s3.fail("PUT", slow_down, slow_down)
    remote.put("a", b"1")
    s3.fail("PUT", slow_down)
    assert remote.create("b", b"2")
    s3.fail("PUT", slow_down)
    found = remote.get("b")
    assert found is not None
    assert remote.swap("b", b"3", found.tag)
    s3.fail("GET", slow_down, slow_down)
    found = remote.get("b")
    assert found is not None
    assert found.data == b"3"


@pytest.mark.parametrize("fault", [lost_answer, torn])
def test_a_writer_that_got_no_answer_learns_what_it_did(s3: S3Server, remote: RemoteObjects, fault: object) -> None:
    """SCL-3: a write that was done and not answered counts as done once, a torn one is done again."""
    s3.fail("PUT", fault)  # type: ignore[arg-type]
    assert remote.create("a", b"1")
    assert not remote.create("a", b"1"), "another writer of the same bytes is another"
    s3.fail("PUT", fault)  # type: ignore[arg-type]
    found = remote.get("a")
    assert found is not None
    assert remote.swap("a", b"2", found.tag) is not None
    assert remote.swap("a", b"2", found.tag) is None
    found = remote.get("a")
    assert found is not None
    assert found.data == b"2"


def test_a_torn_upload_leaves_what_was_there(s3: S3Server, remote: RemoteObjects) -> None:
    """SCL-3: nobody reads half an object."""
    remote.put("a", b"1" * 1000)
    s3.fail("PUT", *[torn] * 40)
    with pytest.raises(StoreError, match="expected to read and write a"):
        RemoteObjects(f"{remote.url}", patience_s=1.0).put("a", b"2" * 1000)
    s3.faults.clear()
    found = remote.get("a")
    assert found is not None
    assert found.data == b"1" * 1000


def test_a_late_list_hides_nothing_from_who_knows_a_name(s3: S3Server, remote: RemoteObjects) -> None:
    """SCL-3: lists may come late, reads do not."""
    remote.put("a/1", b"1")
    s3.late = True
    assert [each.key for each in remote.list("a/")] == ["a/1"]
    remote.put("a/2", b"2")
    assert [each.key for each in remote.list("a/")] == ["a/1"]
    assert remote.get("a/2") is not None
    s3.late = False
    assert [each.key for each in remote.list("a/")] == ["a/1", "a/2"]


def test_what_is_wrong_with_an_address_is_said(s3: S3Server) -> None:
    """SCL-3, OPS-15: by the server's own code and words, and not by its markup."""
    with pytest.raises(ConfigurationError, match="s3://, gs://, az://"):
        objects_at("ftp://somewhere/else")
    with pytest.raises(StoreError, match="found: invalid domain character"):
        objects_at("s3://no bucket/prefix")
    absent = RemoteObjects("s3://no-such-bucket-here/prefix")
    with pytest.raises(StoreError, match=r"found: NoSuchBucket: The specified bucket does not exist: .*credentials"):
        absent.put("a", b"1")
    with pytest.raises(StoreError, match=r"found: NoSuchBucket: "):
        absent.list("")
