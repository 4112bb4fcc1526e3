"""SCL-3, SCL-4, SCL-14: the whole loop with a store in S3, each step on another host, beside one in a folder."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.s3 import S3Server, lost_answer, s3_server, slow_down
from weft.catalog.catalog import Catalog
from weft.cli.main import main
from weft.runtime.kafka.broker import EmbeddedBroker
from weft.runtime.storage.working_copy import place_of

pytestmark = pytest.mark.integration

ASKED = "when is a lock released"
RESULT = ("content_hash", "score")
Run = Callable[..., dict[str, Any]]


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    with s3_server() as server:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        yield server


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command of weft; what it prints as JSON."""

    def ran(*arguments: str) -> dict[str, Any]:
        capsys.readouterr()
        code = main([*arguments, "--json"])
        out, err = capsys.readouterr()
        assert code == 0, err
        told: dict[str, Any] = json.loads(out.strip().splitlines()[-1])
        return told

    return ran


def assert_alike(*answers: dict[str, Any]) -> None:
    """The same results; a step of the clock between two searches makes what is fresh a little less so."""
    hashes, scores = ([[each[name] for each in answer["results"]] for answer in answers] for name in RESULT)
    assert hashes[0] == hashes[1]
    assert scores[0] == pytest.approx(scores[1], abs=1e-4)


def test_the_loop_over_s3_comes_to_what_it_does_in_a_folder(
    s3: S3Server, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SCL-3, SCL-4, SCL-14: index, search, feedback, night, search; each on a host that has nothing of the others."""
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/locks.md").write_text("# Locks\n\nA lock is released when its transaction ends.\n")
    (tmp_path / "notes/waiting.md").write_text("# Waiting\n\nWho waits for a lock is told when it is released.\n")
    (tmp_path / "notes/fruit.md").write_text("# Fruit\n\nBananas are yellow.\n")
    url, folder = f"s3://{s3.bucket}/{secrets.token_hex(4)}/store", str(tmp_path / "folder")

    def on(host: str) -> str:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / host))
        return url

    indexing = ("index", "--local", "--source", str(tmp_path / "notes"), "--set", "extraction.enabled=false")
    s3.fail("PUT", slow_down, lost_answer, slow_down)  # the loop goes on through what goes wrong on the way
    remote, local = run(*indexing, "--store", on("indexer")), run(*indexing, "--store", folder)
    assert remote["content_hash"] == local["content_hash"]
    searching = ("search", ASKED, "--server", "none")
    before = run(*searching, "--store", on("searcher"))
    assert_alike(before, run(*searching, "--store", folder))

    with EmbeddedBroker() as broker:
        updating = ("update", "--local", "--until-caught-up", "--bootstrap", broker.bootstrap)
        run(*updating, "--store", on("updater"))
        telling = ("tell", ASKED, "--right", "notes/waiting.md", "--server", "none", "--bootstrap", broker.bootstrap)
        run(*telling, "--store", on("searcher"))
        assert run(*updating, "--store", on("updater"))["applied"] == 1
        taken = run(*updating, "--store", on("other updater"))
        assert (taken["applied"], taken["balanced"]) == (1, True), "another host replayed what the first one had read"
        assert run(*updating, "--store", folder)["applied"] == 1

    night = run("consolidate", "--store", on("night"))
    assert night["learned"] == run("consolidate", "--store", folder)["learned"] is not None
    evidence = [Catalog(place_of(store)).learned.read(night["learned"]).evidence for store in (on("reader"), folder)]
    assert evidence[0] == evidence[1]
    assert not evidence[0].is_empty
    after = run(*searching, "--store", on("searcher"))
    assert_alike(after, run(*searching, "--store", folder))
    assert after["learned"] == night["learned"]
    assert run("status", "--store", on("watcher"))["events_applied"] == 1
    assert run("generations", "list", "--store", on("watcher"))
