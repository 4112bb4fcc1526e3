"""SCL-2: sources that are prefixes of an object store, and git repositories."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.s3 import S3Server, s3_server
from weft.domain.documents import Document
from weft.domain.errors import ConfigurationError, SourceError
from weft.ingestion.settings import SourceSettings
from weft.ingestion.sources.items import FileItem
from weft.ingestion.sources.sources import list_items, read_item, read_source
from weft.runtime.storage.origins import source_place
from weft.settings import load_settings

SETTINGS = load_settings(environment={}).ingest
FILES = {"app/main.py": b"print('hello')\n", "notes.md": b"# Notes\n\nA note.\n", "notes.md.weft.yaml": b"trust: 90\n"}


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[S3Server]:
    with s3_server() as server:
        for name, value in {**server.environment(), "XDG_CACHE_HOME": str(tmp_path / "cache")}.items():
            monkeypatch.setenv(name, value)
        yield server


def put(server: S3Server, **files: bytes) -> None:
    for key, data in files.items():
        server.client().put_object(Bucket=server.bucket, Key=key, Body=data)


def documents(place: Path) -> dict[str, Document]:
    read = [one for one in read_source(place, SETTINGS, domain=None) if isinstance(one, Document)]
    return {one.uri: one for one in read}


def test_a_prefix_is_read_as_a_folder_of_that_name(s3: S3Server, tmp_path: Path) -> None:
    """SCL-2: the same documents with the same URIs, sidecars and times; and what lies beside it is not read."""
    for name, data in FILES.items():
        (tmp_path / "corpus" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "corpus" / name).write_bytes(data)
    put(s3, **{f"data/corpus/{name}": data for name, data in FILES.items()}, **{"data/corpus2/x.md": b"# Other"})
    place = source_place(f"s3://{s3.bucket}/data/corpus")
    brought, here = documents(place), documents(tmp_path / "corpus")
    assert {uri: (one.text, one.trust_level) for uri, one in brought.items()} == {
        uri: (one.text, one.trust_level) for uri, one in here.items()
    }
    (head,) = (s3.client().head_object(Bucket=s3.bucket, Key="data/corpus/notes.md")["LastModified"],)
    assert brought["corpus/notes.md"].modified_at == pytest.approx(head.timestamp(), abs=1.0)


def test_what_changed_is_fetched_and_what_went_is_gone(s3: S3Server) -> None:
    """SCL-2: a second run asks for nothing that it has."""
    put(s3, **{"c/a.md": b"# One", "c/b.md": b"# Two", "c/c.md": b"# Three"})
    place = source_place(f"s3://{s3.bucket}/c")
    assert set(documents(place)) == {"c/a.md", "c/b.md", "c/c.md"}
    put(s3, **{"c/a.md": b"# Changed"})
    s3.client().delete_object(Bucket=s3.bucket, Key="c/b.md")
    s3.requests.clear()
    again = documents(place)
    assert {uri: one.text for uri, one in again.items()} == {"c/a.md": "# Changed", "c/c.md": "# Three"}
    assert [path.rpartition("/")[2] for method, path in s3.requests if method == "GET" and "." in path] == ["a.md"]


def test_a_worker_elsewhere_fetches_the_object_itself(s3: S3Server) -> None:
    """SCL-2: an item is read on a host that has none of the source."""
    put(
        s3,
        **{f"c/{name}": data for name, data in FILES.items()},
        **{"d/records.jsonl": b'{"_id": "1", "text": "one"}\n'},
    )
    for url in (f"s3://{s3.bucket}/c", f"s3://{s3.bucket}/d/records.jsonl", f"s3://{s3.bucket}/c/notes.md"):
        place = source_place(url)
        items = list_items(place, SETTINGS)
        expected = [one for item in items for one in read_item(item, SETTINGS, domain=None)]
        shutil.rmtree(place.parent)
        assert [one for item in items for one in read_item(item, SETTINGS, domain=None)] == expected
        assert any(isinstance(one, Document) for one in expected)


def test_keys_that_are_no_paths_lead_nowhere(s3: S3Server, tmp_path: Path) -> None:
    """ING-3: an object's name cannot reach outside of its folder; what a console makes for a folder is passed over."""
    put(s3, **{"c/folder/": b"", "c/fine.md": b"# Fine"})
    place = source_place(f"s3://{s3.bucket}/c")
    assert set(documents(place)) == {"c/fine.md"}
    put(s3, **{"c/../../up.md": b"# Up"})
    with pytest.raises(SourceError, match=r"c/\.\./\.\./up\.md"):
        documents(place)
    assert not list(tmp_path.rglob("up.md"))


def test_a_prefix_without_objects_is_an_error_that_names_it(s3: S3Server) -> None:
    with pytest.raises(SourceError, match=f"s3://{s3.bucket}/nothing: expected objects"):
        list_items(source_place(f"s3://{s3.bucket}/nothing"), SETTINGS)
    with pytest.raises(ConfigurationError, match="expected a path, s3://"):
        source_place("ftp://host/files")


def test_a_git_repository_is_cloned_and_read_by_its_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SCL-2, ING-40: files that are committed, on the branch that is named; a later run sees later commits."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    work = tmp_path / "work" / "project"
    work.mkdir(parents=True)

    def git(*words: str) -> None:
        named = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main")
        subprocess.run(("git", "-C", str(work), *named, *words), check=True, capture_output=True)

    git("init")
    (work / "readme.md").write_text("# Read me")
    git("add", ".")
    git("commit", "-m", "one")
    git("branch", "old")
    (work / "readme.md").write_text("# Read me again")
    git("commit", "-am", "two")
    url = f"file://{work}"
    declared = SourceSettings(path=url)
    assert documents(declared.place)["project/readme.md"].text == "# Read me again"
    assert documents(source_place(f"{url}#old"))["project/readme.md"].text == "# Read me"
    (item,) = list_items(declared.place, SETTINGS)
    assert isinstance(item, FileItem)
    assert item.commit is not None
    assert item.origin is None, "a host that does not have the clone says so"
    with pytest.raises(SourceError, match="expected a git repository to clone"):
        list_items(source_place(f"file://{tmp_path / 'nowhere'}"), SETTINGS)
