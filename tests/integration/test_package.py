"""OPS-8a: the wheel holds all that weft needs, and works from any folder."""

from __future__ import annotations

import json
import os
import site
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from weft import Query, load_settings
from weft.feedback.events.producer import FeedbackProducer
from weft.runtime.kafka.broker import EmbeddedBroker

ROOT = Path(__file__).resolve().parents[2]


class Installed:
    """An environment with the wheel, and the dependencies of this one."""

    def __init__(self, folder: Path) -> None:
        self.elsewhere = folder / "elsewhere"
        self.elsewhere.mkdir()
        self._bin = folder / "venv/bin"

    def weft(self, *arguments: str) -> str:
        return self._run(str(self._bin / "weft"), *arguments)

    def job(self, name: str, *arguments: str) -> str:
        return self._run(str(self._bin / "python"), "-m", f"jobs.{name}", *arguments)

    def _run(self, *command: str) -> str:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        done = subprocess.run(
            command, cwd=self.elsewhere, env=environment, capture_output=True, text=True, check=False, timeout=240
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("package")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", str(folder)]
    subprocess.run([*build, str(ROOT)], check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv/bin/python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-deps", str(wheel)], check=True)
    (packages,) = (folder / "venv/lib").glob("python*/site-packages")
    # A path file names folders alone: this environment's own link to the checkout is not followed.
    (packages / "dependencies.pth").write_text("\n".join(site.getsitepackages()))
    return Installed(folder)


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as running:
        yield running


@pytest.mark.timeout(600)
def test_the_wheel_indexes_searches_learns_and_consolidates(
    installed: Installed, broker: EmbeddedBroker, tmp_path: Path
) -> None:
    """OPS-8a, OPS-4: `weft` from another folder, which stays as it was."""
    source, store = tmp_path / "notes", ["--store", str(tmp_path / "store")]
    source.mkdir()
    (source / "locks.md").write_text("# Locks\n\nA lock is released when its transaction ends.\n")
    (source / "fruit.md").write_text("# Fruit\n\nBananas are yellow and grow in the tropics.\n")
    indexed = json.loads(installed.weft("index", str(source), *store, "--json").splitlines()[-1])
    assert indexed["documents"] == 2
    answer = json.loads(installed.weft("search", "when is a lock released", *store, "--json").splitlines()[-1])
    best = answer["results"][0]
    assert best["uris"] == ["notes/locks.md"]
    update = ["--local", "--until-caught-up", "--json", *store, "--bootstrap", broker.bootstrap]
    installed.job("update", *update)  # which makes the topic
    settings = load_settings(assignments=[f"kafka.bootstrap={broker.bootstrap}"], environment={})
    asked = ["when is a lock released", *store, "--bootstrap", broker.bootstrap, "--session", "s1", "--json"]
    shown = json.loads(installed.weft("search", *asked).splitlines()[-1])
    producer = FeedbackProducer.connect_now(settings.kafka, settings.feedback)
    query = Query(text="when is a lock released", query_id=shown["query_id"], session_id="s1", principal="ada")
    producer.selection(query, best["content_hash"], rank=1)
    assert producer.close() == 0
    assert json.loads(installed.job("update", *update).splitlines()[-1])["applied"] == 2
    assert json.loads(installed.job("consolidate", *store, "--json").splitlines()[-1])["learned"] == "v000001"
    assert json.loads(installed.weft("status", *store, "--json"))["events_applied"] == 2
    assert list(installed.elsewhere.iterdir()) == []
