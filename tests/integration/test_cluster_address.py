"""Joining a cluster that is not there."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import ray

from weft.cli.commands.reindex import reindex
from weft.cli.console.options import run_job
from weft.domain.errors import WeftError
from weft.runtime.ray.cluster import require_head
from weft.settings import load_settings


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A socket that takes connections and says nothing, as a stopped process does."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield server


def port_of(server: socket.socket) -> int:
    return int(server.getsockname()[1])


@pytest.fixture
def closed_port(listener: socket.socket) -> int:
    listener.close()
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        return port_of(server)


def test_a_dead_address_is_named_with_where_it_comes_from(
    tmp_path: Path, closed_port: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """OPS-15: the job ends with the address and RAY_ADDRESS, before anything is indexed."""
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{closed_port}")
    (tmp_path / "note.md").write_text("# A note\n")
    store = tmp_path / "store"
    code = run_job(
        reindex, ["--source", str(tmp_path / "note.md"), "--store", str(store), "--set", "cluster.join_timeout_s=0.5"]
    )
    said = capsys.readouterr().err
    assert code == 1
    assert f"127.0.0.1:{closed_port}, which RAY_ADDRESS names, found no answer within 0.5 s" in said
    assert not store.exists()


def test_the_wait_for_a_dead_address_is_less_than_a_minute() -> None:
    """OPS-15."""
    assert load_settings(environment={}).cluster.join_timeout_s < 60


def test_a_head_that_says_nothing_is_given_up(listener: socket.socket) -> None:
    """OPS-15: a port that takes connections is no sign of life."""
    address = f"127.0.0.1:{port_of(listener)}"
    with pytest.raises(WeftError, match=f"{address}, which cluster.address names, found no answer within 0.5 s"):
        require_head(address, "cluster.address", within_s=0.5)


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ("http://127.0.0.1:8265", "found the URL of something else: give the host:port"),
        ("no-port", "found: Invalid address format"),
    ],
)
def test_what_is_no_address_of_a_head_says_what_is(address: str, found: str) -> None:
    """OPS-15: the dashboard's URL, which `ray job submit` takes, is no head's."""
    with pytest.raises(WeftError, match=found):
        require_head(address, "RAY_ADDRESS", within_s=0.5)


@pytest.mark.usefixtures("cluster")
def test_a_head_answers_and_its_other_ports_do_not() -> None:
    """OPS-15: the port of a node's own server speaks Ray's protocol, and is no head."""
    require_head(ray.get_runtime_context().gcs_address, "RAY_ADDRESS", within_s=30.0)
    node = ray.nodes()[0]
    with pytest.raises(WeftError, match="found something else there"):
        require_head(f"{node['NodeManagerAddress']}:{node['NodeManagerPort']}", "RAY_ADDRESS", within_s=30.0)


ON_THIS_HOST = """
import os, sys
import ray
from weft.runtime.ray.stages import run_tasks

def process_of(task):
    return os.getpid()

ray.init(num_cpus=int(sys.argv[1]), include_dashboard=False, log_to_driver=False)
print(sorted({process == os.getpid() for process in run_tasks(process_of, [1, 2, 3], here=True)}))
"""


@pytest.mark.parametrize(("cpus", "own"), [(0, True), (2, False)])
def test_a_host_without_cpus_runs_its_own_tasks_itself(cpus: int, own: bool) -> None:
    """SCL-2, SCL-6: heads often give the cluster none; what has to stay on one would wait there for ever."""
    command = [sys.executable, "-c", ON_THIS_HOST, str(cpus)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.splitlines()[-1] == str([own])
