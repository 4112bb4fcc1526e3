"""OPS-7, OPS-9: nights, their figures and the registry on an MLflow server whose database is PostgreSQL."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.consolidating import FIRST_DAY, SECOND_DAY, SETTINGS, THIRD_DAY, go, move_alias_in_the_ui, the_ui
from tests.support.infra import DOCKERFILE
from tests.support.nights import stream
from tests.support.ports import free_ports
from weft.cli.main import main
from weft.consolidation.champion import CHAMPION, EXPERIMENT, follow_champion
from weft.consolidation.night import Night
from weft.runtime.mlflow.tracking import REGISTERED_MODEL, Tracking

pytestmark = [pytest.mark.slow, pytest.mark.integration]

PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1:]
DRIVER = next(word for word in DOCKERFILE.read_text().split() if word.startswith("pg8000=="))


def until(answers: Callable[[], bool], what: str, *, seconds: float = 180.0) -> None:
    ends = time.monotonic() + seconds
    while not answers():
        assert time.monotonic() < ends, what
        time.sleep(0.2)


def ended(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    process.send_signal(number)
    process.wait(60)


@pytest.fixture(scope="module")
def postgresql() -> Iterator[str]:
    """host:port of a new database server that a user without rights runs; its database is "postgres"."""
    if not PROGRAMS:
        pytest.skip("PostgreSQL is missing: apt-get install postgresql")
    (port,) = free_ports(1)
    folder = Path(tempfile.mkdtemp(prefix="weft-postgresql-"))
    user = {}
    if os.geteuid() == 0:  # as which PostgreSQL refuses to run
        nobody = pwd.getpwnam("nobody")
        user = {"user": nobody.pw_uid, "group": nobody.pw_gid}
        shutil.chown(folder, nobody.pw_uid, nobody.pw_gid)
    made = [PROGRAMS[0] / "initdb", "-D", folder / "data", "-U", "mlflow", "-A", "trust", "-E", "UTF8", "--no-sync"]
    subprocess.run(made, check=True, capture_output=True, cwd=folder, **user)
    options = ["-p", str(port), "-k", folder, "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"]
    server = subprocess.Popen(
        [PROGRAMS[0] / "postgres", "-D", folder / "data", *options], cwd=folder, stderr=subprocess.DEVNULL, **user
    )
    ready = [PROGRAMS[0] / "pg_isready", "-h", "127.0.0.1", "-p", str(port)]
    try:
        until(lambda: subprocess.run(ready, check=False, capture_output=True).returncode == 0, "PostgreSQL")
        yield f"127.0.0.1:{port}"
    finally:
        ended(server, signal.SIGINT)  # at once, connections or not
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def server(postgresql: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of an MLflow server on it, with the driver of the container image."""
    folder = tmp_path_factory.mktemp("mlflow-server")
    install = [sys.executable, "-m", "pip", "install", "--quiet", f"--target={folder / 'driver'}", DRIVER]
    if (failed := subprocess.run(install, capture_output=True, text=True, check=False)).returncode:
        pytest.skip(f"pip did not install {DRIVER}: {failed.stderr[-300:]}")
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "mlflow", "server", "--host=127.0.0.1", f"--port={port}", "--workers=1"]
    command += [f"--artifacts-destination={folder / 'artifacts'}", "--serve-artifacts"]
    environment = {
        **os.environ,
        "PYTHONPATH": str(folder / "driver"),
        "MLFLOW_BACKEND_STORE_URI": f"postgresql+pg8000://mlflow@{postgresql}/postgres",
        "MLFLOW_DISABLE_TELEMETRY": "true",
    }
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, cwd=folder, stdout=log, stderr=log, start_new_session=True)
    url = f"http://127.0.0.1:{port}"

    def healthy() -> bool:
        assert process.poll() is None, (folder / "log").read_text()[-3000:]
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5) as response:
                return bool(response.status == 200)
        except OSError:
            return False

    try:
        until(healthy, "MLflow", seconds=300.0)
        yield url
    finally:
        os.killpg(process.pid, signal.SIGTERM)  # its workers are processes of its own
        process.wait(60)


def rows(postgresql: str, query: str) -> list[str]:
    host, port = postgresql.split(":")
    command = [PROGRAMS[0] / "psql", "-h", host, "-p", port, "-U", "mlflow", "-d", "postgres", "-At", "-c", query]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def test_nights_record_register_and_roll_back(  # noqa: PLR0917  fixtures
    postgresql: str,
    server: str,
    night: Night,
    root: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """CON-9, OPS-7: versions have their numbers, aliases move by UI and command, artifacts come back as they went."""
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "60")  # a busy machine may need more than the 5 s of everyday
    shutil.rmtree(root / "mlflow")
    night = replace(night, tracking=Tracking.of(SETTINGS.tracking.model_copy(update={"uri": server}), root))
    stream(root, 0, FIRST_DAY)
    first = go(night)["learned"]
    stream(root, 0, FIRST_DAY + SECOND_DAY)
    second = go(night)["learned"]
    assert night.tracking.alias(CHAMPION) == second == night.catalog.pointer().learned

    runs = the_ui(night).search_runs([the_ui(night).get_experiment_by_name(EXPERIMENT).experiment_id])
    recorded = [run for run in runs if run.data.params.get("learned") == second]
    assert {run.info.status for run in runs} == {"FINISHED"}
    assert recorded
    assert recorded[0].data.metrics
    folder = root / "returned"
    folder.mkdir()
    learned = Path(the_ui(night).download_artifacts(recorded[0].info.run_id, "learned", str(folder)))
    kept = {file.name: file.read_bytes() for file in (root / "learned" / second).iterdir() if file.is_file()}
    returned = {file.name: file.read_bytes() for file in learned.rglob("*") if file.is_file()}
    assert returned
    assert {name: kept.get(name) for name in returned} == returned

    move_alias_in_the_ui(night, first)
    assert follow_champion(night.catalog, night.tracking) == first
    stream(root, 0, FIRST_DAY + SECOND_DAY + THIRD_DAY)
    assert night.catalog.live.evidence() == FIRST_DAY + THIRD_DAY
    command = ["learned", "promote", second, "--why", "it was right", "--store", str(root), "--set"]
    assert main([*command, f"tracking.uri={server}"]) == 0
    assert capsys.readouterr().out == f"{second} is live, instead of {first}\n"
    assert not (root / "mlflow").exists()

    numbered = f"select version from model_versions where name = '{REGISTERED_MODEL}' order by version"
    assert rows(postgresql, numbered) == [str(int(name.lstrip("v"))) for name in (first, second)]
    named = f"select alias, version from registered_model_aliases where name = '{REGISTERED_MODEL}'"
    assert rows(postgresql, named) == [f"{CHAMPION}|{int(second.lstrip('v'))}"]
