from __future__ import annotations

import contextlib
import http.client
import json
import os
import secrets
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import grpc
import httpx
import psutil
import pytest

import weft
from tests.conftest import ROOT
from tests.support.ingestion import a_tree
from tests.support.ports import free_ports
from tests.support.service import small_store
from weft.catalog.catalog import Catalog

BIN = Path(sys.executable).parent
PATIENCE_S = 120.0


@dataclass(frozen=True)
class Head:
    """A Ray head of this test's own.

    Attributes:
        agent: Who runs what is submitted; the dashboard waits 10 s for it, which is not always enough.
        environment: What a client of it needs, the token's place included.
        address: Where drivers join it.
        metrics: Where Ray's own figures are read, of the host first, then of the dashboard and the autoscaler.
        pid: Of the process whose children listen.
    """

    dashboard: str
    agent: str
    address: str
    environment: Mapping[str, str]
    token: Path
    metrics: tuple[int, ...]
    pid: int


@pytest.fixture(scope="module")
def head() -> Iterator[Head]:
    # Sockets lie below this folder and their paths must be short.
    folder = Path(tempfile.mkdtemp(prefix="weft-ray-", dir="/tmp"))
    token = folder / ".ray" / "auth_token"
    port, dashboard, dashboards_own, autoscalers_own, *others = free_ports(8)
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("RAY_") and name != "PYTHONPATH"},
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "RAY_AUTH_MODE": "token",
        "DASHBOARD_METRIC_PORT": str(dashboards_own),
        "AUTOSCALER_METRIC_PORT": str(autoscalers_own),
    }
    subprocess.run(
        [BIN / "ray", "get-auth-token", "--generate"],
        env={**environment, "HOME": str(folder)},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    token.chmod(0o600)
    environment["RAY_AUTH_TOKEN_PATH"] = str(token)
    names = (
        "ray-client-server-port",
        "dashboard-agent-listen-port",
        "dashboard-agent-grpc-port",
        "metrics-export-port",
    )
    command = [BIN / "ray", "start", "--head", "--block", "--num-cpus=2", "--object-store-memory=200000000"]
    command += [f"--temp-dir={folder}", f"--port={port}", f"--dashboard-port={dashboard}", "--disable-usage-stats"]
    command += [f"--{name}={number}" for name, number in zip(names, others, strict=True)]
    log = (folder / "head.log").open("wb")
    process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
    try:
        agent = others[names.index("dashboard-agent-listen-port")]
        web = [f"http://127.0.0.1:{number}" for number in (dashboard, agent)]
        metrics = (others[names.index("metrics-export-port")], dashboards_own, autoscalers_own)
        started = Head(*web, f"127.0.0.1:{port}", environment, token, metrics, process.pid)
        _await_answers(started, process, folder / "head.log")
        yield started
    finally:
        _end(process)
        log.close()
        shutil.rmtree(folder, ignore_errors=True)


def test_a_submitted_job_publishes(head: Head, tmp_path: Path) -> None:
    """Job contract of jobs.reindex: `ray job submit --working-dir .` indexes and publishes on a head with a token."""
    source, store = a_tree(tmp_path, files=2), tmp_path / "store"
    job = ["python", "-m", "jobs.reindex", "--source", str(source), "--store", str(store), "--json"]
    job += ["--set", "extraction.enabled=false"]
    submit = [BIN / "ray", "job", "submit", "--address", head.dashboard, "--working-dir", ".", "--", *job]
    done = subprocess.run(
        submit, cwd=ROOT, env=dict(head.environment), check=False, capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    line = next(line for line in reversed(done.stdout.splitlines()) if line.startswith("{"))
    summary = json.loads(line)
    assert summary["documents"] == 3
    assert Catalog(store).pointer().generation == summary["generation"]
    assert Catalog(store).verify(summary["generation"]).content_hash == summary["content_hash"]


@pytest.mark.slow
@pytest.mark.parametrize("shards", ["0", "1"])
def test_a_submitted_job_serves(head: Head, tmp_path: Path, shards: str) -> None:
    """OPS-5, SCL-13: `jobs.serve` deploys the service's application on Ray Serve, which follows what goes live, with
    shards of its own, too.
    """
    store, (port,), token = small_store(tmp_path), free_ports(1), "s" * 20
    job = [
        "python",
        "-m",
        "jobs.serve",
        "--store",
        str(store),
        "--port",
        str(port),
        "--replicas",
        "1",
        "--shards",
        shards,
    ]
    submit = [BIN / "ray", "job", "submit", "--address", head.dashboard, "--working-dir", "."]
    submit += ["--runtime-env-json", json.dumps({"env_vars": {"WEFT_TOKENS": f"{token}:search"}}), "--", *job]
    environment = {**head.environment, "RAY_ADDRESS": head.address}
    try:
        done = subprocess.run(
            submit, cwd=ROOT, env=dict(head.environment), check=False, capture_output=True, text=True, timeout=280
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        assert f"serving {store} at http://127.0.0.1:{port}" in done.stdout
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30.0) as client:
            asked = {"text": "Which fruit is yellow and sour?", "k": 1}
            assert client.post("/v1/search", json=asked).status_code == 401
            client.headers["Authorization"] = f"Bearer {token}"
            assert _first(client, asked) == "Lemons are yellow and sour, and grow on trees."
            assert client.post("/v1/feedback", json={}).status_code == 403
            assert client.get("/readyz").status_code == 200
            small_store(tmp_path, {"fruit/limes.md": "# Limes\n\nA lime is yellow and sour, and a fruit."})
            deadline = time.monotonic() + PATIENCE_S
            while "lime" not in _first(client, asked):
                assert time.monotonic() < deadline, "the new generation was not followed"
                time.sleep(0.5)
    finally:
        ending = [BIN / "serve", "shutdown", "--yes", "--address", head.dashboard]
        subprocess.run(ending, env=environment, check=False, timeout=PATIENCE_S)


def _first(client: httpx.Client, asked: Mapping[str, object]) -> str:
    answered = client.post("/v1/search", json=asked)
    assert answered.status_code == 200, answered.text
    text: str = answered.json()["results"][0]["text"]
    return text.partition("\n\n")[2] or text


WORKERS = """
import json
import ray
import jobs, weft
from weft.runtime.ray.cluster import connect
from weft.settings import load_settings

connect(load_settings().cluster)
print(json.dumps([weft.__version__, ray.get(ray.remote(lambda: __import__("weft").__version__).remote())]))
"""


@pytest.mark.parametrize(
    "stated",
    [
        {},
        pytest.param({"env_vars": {"OTHER": "1"}}, marks=pytest.mark.slow),
        pytest.param({"env_vars": {"PYTHONPATH": "nowhere"}}, marks=pytest.mark.slow),
    ],
)
def test_workers_import_what_was_submitted(head: Head, tmp_path: Path, stated: dict[str, object]) -> None:
    """Job contract: before a weft that is installed on the cluster, unless the job states a path of its own."""
    for name in ("jobs", "conf", "pipelines/weft"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("checkpoint", "__pycache__"))
    first = tmp_path / "pipelines/weft/__init__.py"
    first.write_text(first.read_text().replace(f'__version__ = "{weft.__version__}"', '__version__ = "submitted"'))
    (tmp_path / "jobs/workers.py").write_text(WORKERS)
    submit = [BIN / "ray", "job", "submit", "--address", head.dashboard, "--working-dir", str(tmp_path)]
    submit += ["--runtime-env-json", json.dumps(stated), "--", "python", "-m", "jobs.workers"]
    done = subprocess.run(
        submit, env=dict(head.environment), check=False, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    line = next(line for line in done.stdout.splitlines() if line.startswith('["'))
    of_workers = weft.__version__ if "PYTHONPATH" in str(stated) else "submitted"
    assert json.loads(line) == ["submitted", of_workers]


def test_a_program_joins_with_the_token_that_it_has(head: Head) -> None:
    """ARC-5: `cluster.address` is all it takes; that there is a token need not be said besides."""
    joining = (
        "import sys, ray\n"
        "from weft.runtime.ray.cluster import connect\n"
        "from weft.settings import load_settings\n"
        "connect(load_settings(assignments=[f'cluster.address={sys.argv[1]}'], environment={}).cluster)\n"
        "print('nodes', len(ray.nodes()))\n"
    )
    environment = {name: value for name, value in head.environment.items() if name != "RAY_AUTH_MODE"}
    done = subprocess.run(
        [sys.executable, "-c", joining, head.address],
        cwd=ROOT,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.stdout.split() == ["nodes", "1"], done.stderr[-3000:]


def test_a_request_without_the_token_is_refused(head: Head) -> None:
    """Hazards of Ray: whoever may submit jobs may run anything, so a head answers to its token alone."""
    assert _status(head, None) == 401
    assert _status(head, secrets.token_hex(32)) in (401, 403)
    assert _status(head, head.token.read_text().strip()) == 200
    assert stat.S_IMODE(head.token.stat().st_mode) == 0o600


def test_nothing_that_a_head_listens_on_obeys_without_the_token(head: Head) -> None:
    """OPS-11, OPS-11a: whatever Ray listens on, found from the kernel; docs/deployment.md says to whom.

    Who has no token reads the page of the dashboard, that the head is alive, and Ray's own figures, and calls nothing.
    """
    listening = set(_listening(head.pid))
    control, dashboard, agent = (int(url.rpartition(":")[2]) for url in (head.address, head.dashboard, head.agent))
    assert {control, dashboard, agent, head.metrics[0]} <= {port for _, port in listening}
    assert {host for host, port in listening if port == dashboard} == {"127.0.0.1"}
    for host, port in listening:
        at = f"{'127.0.0.1' if host in {'0.0.0.0', '::'} else host}:{port}"
        web = {path: _http_status(f"http://{at}{path}") for path in ("/api/jobs/", "/nodes", "/api/cluster_status")}
        if port in head.metrics:
            continue
        assert {status for status in web.values() if status is not None} <= {401, 403}, (at, web)
        called = {call: _called(at, call, None) for call in _CALLS}
        assert not {"OK", "INVALID_ARGUMENT", "INTERNAL", "UNKNOWN"} & set(called.values()), (at, called)
    token = head.token.read_text().strip()
    assert _called(head.address, _CALLS[0], None) == "UNAUTHENTICATED"
    assert _called(head.address, _CALLS[0], token) == "OK"


_CALLS = (
    "/ray.rpc.NodeInfoGcsService/GetAllNodeInfo",
    "/ray.rpc.NodeManagerService/GetNodeStats",
    "/ray.rpc.ObjectManagerService/Pull",
    "/ray.rpc.CoreWorkerService/PushTask",
    "/ray.rpc.RuntimeEnvService/CreateRuntimeEnv",
)


def _listening(pid: int) -> Iterator[tuple[str, int]]:
    """Address and port of all that a process and its children listen on."""
    parent = psutil.Process(pid)
    for process in (parent, *parent.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):
            for connection in process.net_connections(kind="tcp"):
                if connection.status == psutil.CONN_LISTEN:
                    yield connection.laddr.ip, connection.laddr.port


def _http_status(url: str) -> int | None:
    """Without a token; None where no HTTP is spoken."""
    try:
        return _answered(url, None)
    except (OSError, http.client.HTTPException):
        return None


def _called(at: str, call: str, token: str | None) -> str:
    """What gRPC says of an empty call, perhaps with the token."""
    shown = () if token is None else (("authorization", f"Bearer {token}"),)
    with grpc.insecure_channel(at, [("grpc.enable_http_proxy", 0)]) as channel:
        try:
            channel.unary_unary(call)(b"", timeout=10, metadata=shown)
        except grpc.RpcError as error:
            return str(error.code().name)
    return "OK"


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the head and what it started, by process id: nobody else's."""
    own = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
    process.terminate()
    _, stubborn = psutil.wait_procs(own, timeout=5)
    for one in stubborn:
        with contextlib.suppress(psutil.NoSuchProcess):
            one.kill()
    process.kill()
    process.wait()


def _status(head: Head, token: str | None) -> int:
    return _answered(f"{head.dashboard}/api/jobs/", token)


def _answered(url: str, token: str | None) -> int:
    request = urllib.request.Request(url)
    if token is not None:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def _await_answers(head: Head, process: subprocess.Popen[bytes], log: Path) -> None:
    token = head.token.read_text().strip()
    urls = [f"{head.dashboard}/api/jobs/", f"{head.agent}/api/local_raylet_healthz"]
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if all(_answered(url, token) == 200 for url in urls):
                return
        except OSError:
            pass
        time.sleep(0.2)
    pytest.fail(f"the head did not answer within {PATIENCE_S} s: {log.read_text()[-2000:]}")
