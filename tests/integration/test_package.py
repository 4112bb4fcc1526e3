"""OPS-8a: the wheel holds all that weft needs, and works from any folder."""

from __future__ import annotations

import json
import os
import signal
import site
import subprocess
import sys
import time
import urllib.request
import venv
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from tests.support.ports import free_ports
from weft import Query, load_settings
from weft.feedback.events.producer import FeedbackProducer
from weft.runtime.kafka.broker import EmbeddedBroker

ROOT = Path(__file__).resolve().parents[2]


def answers(url: str, *, within_s: float = 300.0) -> bytes:
    """What a server says, as soon as it has started."""
    until = time.monotonic() + within_s
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5) as response:
                return bytes(response.read())
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.5)


class Installed:
    """An environment with the wheel, and the dependencies of this one."""

    def __init__(self, folder: Path) -> None:
        self.elsewhere = folder / "elsewhere"
        self.elsewhere.mkdir()
        for name in ("pipelines", "jobs"):  # an application's own, which nobody but it may import
            (self.elsewhere / name).mkdir()
            (self.elsewhere / name / "__init__.py").write_text(
                f"raise RuntimeError('the application\\'s own {name}')\n"
            )
        self._bin = folder / "venv/bin"
        (wheel,) = folder.glob("*.whl")
        names = (name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist())
        self.top_level = {name for name in names if not name.endswith(".dist-info")}

    def weft(self, *arguments: str) -> str:
        return self._run(str(self._bin / "weft"), *arguments)

    def python(self, *arguments: str) -> str:
        return self._run(str(self._bin / "python"), *arguments)

    @contextmanager
    def running(self, *arguments: str) -> Iterator[None]:
        """A command of `weft` that runs until it is stopped."""
        process = subprocess.Popen(
            [str(self._bin / "weft"), *arguments],
            cwd=self.elsewhere,
            env=self._environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            yield
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(timeout=60)

    def _run(self, *command: str) -> str:
        done = subprocess.run(
            command, cwd=self.elsewhere, env=self._environment, capture_output=True, text=True, check=False, timeout=500
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    @property
    def _environment(self) -> dict[str, str]:
        return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


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


def indexed_and_searched(installed: Installed, folder: Path) -> tuple[list[str], dict[str, Any]]:
    """Options that name a store of two pages, and the best result of a search in it."""
    source, store = folder / "notes", ["--store", str(folder / "store")]
    source.mkdir()
    (source / "locks.md").write_text("# Locks\n\nA lock is released when its transaction ends.\n")
    (source / "fruit.md").write_text("# Fruit\n\nBananas are yellow and grow in the tropics.\n")
    indexed = json.loads(installed.weft("index", str(source), *store, "--json").splitlines()[-1])
    assert indexed["documents"] == 2
    answer = json.loads(installed.weft("search", "when is a lock released", *store, "--json").splitlines()[-1])
    return store, answer["results"][0]


def test_the_wheel_indexes_and_searches(installed: Installed, tmp_path: Path) -> None:
    """OPS-8a, OPS-4: `weft` from another folder, which stays as it was."""
    _, best = indexed_and_searched(installed, tmp_path)
    assert best["uris"] == ["notes/locks.md"]
    assert {path.name for path in installed.elsewhere.iterdir()} == {"pipelines", "jobs"}


@pytest.mark.slow
@pytest.mark.timeout(1_200)
def test_the_wheel_learns_and_consolidates(installed: Installed, broker: EmbeddedBroker, tmp_path: Path) -> None:
    """OPS-8a, OPS-4: from feedback on, to what a night made of it and MLflow shows."""
    store, best = indexed_and_searched(installed, tmp_path)
    update = ["--local", "--until-caught-up", "--json", *store, "--bootstrap", broker.bootstrap]
    installed.weft("update", *update)  # which makes the topic
    settings = load_settings(assignments=[f"kafka.bootstrap={broker.bootstrap}"], environment={})
    asked = ["when is a lock released", *store, "--bootstrap", broker.bootstrap, "--session", "s1", "--json"]
    shown = json.loads(installed.weft("search", *asked).splitlines()[-1])
    producer = FeedbackProducer.connect_now(settings.kafka, settings.feedback)
    query = Query(text="when is a lock released", query_id=shown["query_id"], session_id="s1", principal="ada")
    producer.selection(query, best["content_hash"], rank=1)
    assert producer.close() == 0
    assert json.loads(installed.weft("update", *update).splitlines()[-1])["applied"] == 2
    assert json.loads(installed.weft("consolidate", *store, "--json").splitlines()[-1])["learned"] == "v000001"
    assert json.loads(installed.weft("status", *store, "--json"))["events_applied"] == 2
    measured = json.loads(installed.weft("evaluate", *store, "--json").splitlines()[-1])
    assert measured["queries"] >= 0
    (port,) = free_ports(1)
    with installed.running("mlflow", *store, "--port", str(port)):
        assert answers(f"http://127.0.0.1:{port}/health") == b"OK"
    assert {path.name for path in installed.elsewhere.iterdir()} == {"pipelines", "jobs"}


def test_the_wheel_runs_a_broker(installed: Installed) -> None:
    """OPS-8a: for trying things out, where nothing but the wheel is."""
    (port,) = free_ports(1)
    with installed.running("broker", "--port", str(port)):
        client = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}"})
        assert client.list_topics(timeout=60).brokers


def test_an_application_with_folders_of_the_same_names_imports_weft(installed: Installed) -> None:
    """OPS-8a: a wheel installs `weft` and nothing else at the top; it knows its version and the schema of events."""
    told = "import weft; from weft import open_searcher; print(weft.__version__, open_searcher.__module__)"
    assert installed.python("-c", told).split() == [version("weft-retrieval"), "weft.app.library"]
    assert installed.weft("--version").split() == ["weft", version("weft-retrieval")]
    read = "from importlib.resources import files; print(files('weft').joinpath('feedback.schema.json').read_text())"
    assert installed.python("-c", read).strip() == installed.weft("feedback", "schema").strip()
    assert installed.top_level == {"weft"}
