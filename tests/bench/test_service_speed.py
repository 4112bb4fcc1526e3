"""What the service does over many chunks: searches a second, its share of their time, and what memory it holds.

    make bench-serve

Over which chunks, `tests/bench/conftest.py` says; `WEFT_SOAK_S` for how many seconds memory is watched (120).
"""

from __future__ import annotations

import http.client
import itertools
import json
import os
import re
import shutil
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest

from tests.support.ports import free_ports
from tests.support.search_bench import CORES, RIVAL_PYTHON, RIVALS, Corpus, Line, handed_over
from tests.support.service import ADMIN, Served, serving
from weft.app.searching.engines import opened
from weft.embedding.models import locate

CLIENTS, SECONDS, SOAK_S = 8, 30, float(os.environ.get("WEFT_SOAK_S") or 120)
SHARED = 0.8  # of its throughput, at which memory is watched

pytestmark = [pytest.mark.slow, pytest.mark.timeout(7200)]

_LUA = """
local bodies = {}
for line in io.lines(os.getenv("WEFT_BODIES")) do bodies[#bodies + 1] = line end
local at = 0
function setup(thread) thread:set("first", at); at = at + 1 end
function init(args) place = first * 37 end
function request()
  place = place + 1
  return wrk.format("POST", os.getenv("WEFT_PATH"), {["Content-Type"] = "application/json",
    ["Authorization"] = "Bearer " .. os.getenv("WEFT_BEARER")}, bodies[place % #bodies + 1])
end
function done(summary, latency, requests)
  local failed = summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.timeout
  io.write(string.format('{"requests": %d, "s": %f, "p50": %f, "p95": %f, "failed": %d}\\n', summary.requests,
    summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(95) / 1e3, failed))
end
"""


@pytest.fixture(scope="module")
def served(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service with as many search processes as there are cores, over a store of its own that shares the files."""
    store, kept = tmp_path_factory.mktemp("serve") / "store", Path(corpus.settings.storage.root)
    store.mkdir()
    (store / "generations").symlink_to(kept / "generations")
    for name in ("current.json", "settings.json", "store.json"):
        if (kept / name).exists():
            shutil.copyfile(kept / name, store / name)
    with serving(store, "--set", "serve.requests_per_s=100000", processes=CORES) as running:
        yield running


def bodies(corpus: Corpus, at: Path, text: str = "text", count: str = "k") -> Path:
    """Every question once: none is remembered when wrk comes to it again."""
    texts = [asked.text for asked in corpus.others]
    at.write_text("\n".join(json.dumps({text: one, count: 10}) for one in texts), encoding="utf-8")
    return at


def asked_by_wrk(
    url: str, asked: Path, connections: int, seconds: int, *, path: str = "/v1/search"
) -> dict[str, float]:
    """What wrk counts: requests, seconds, milliseconds at two percentiles, and what failed."""
    script = asked.with_name("ask.lua")
    script.write_text(_LUA, encoding="utf-8")
    environment = {**os.environ, "WEFT_BODIES": str(asked), "WEFT_BEARER": ADMIN, "WEFT_PATH": path}
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "-s", str(script), url]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    counted: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return counted


def test_searches_over_http(corpus: Corpus, served: Served, line: Line, tmp_path: Path) -> None:
    """OPS-5: eight clients, by wrk, beside one; no request fails."""
    if shutil.which("wrk") is None:
        pytest.skip("wrk is not installed")
    asked = bodies(corpus, tmp_path / "bodies.jsonl")
    asked_by_wrk(served.url, asked, CLIENTS, SECONDS)  # Java compiles what it runs
    for connections in (1, 2, CLIENTS):
        counted = asked_by_wrk(served.url, asked, connections, SECONDS)
        rate = counted["requests"] / counted["s"]
        line(
            f"searches over HTTP, {connections} clients",
            f"{rate:.0f}/s, p50 {counted['p50']:.1f} ms, p95 {counted['p95']:.1f} ms",
            "120/s, 80 ms" if connections == CLIENTS else "",
        )
        assert counted["requests"] > connections
        assert counted["failed"] == 0


def test_what_http_adds(corpus: Corpus, served: Served, line: Line) -> None:
    """OPS-5: of a search, what passes outside of the searcher."""
    added, whole = [], []
    connection = http.client.HTTPConnection(urlsplit(served.url).netloc)
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {ADMIN}"}
    for query in corpus.drawn(1)[:400]:
        began = time.perf_counter()
        connection.request("POST", "/v1/search", json.dumps({"text": query.text, "k": 10}), headers)
        answer = json.loads(connection.getresponse().read())
        took = (time.perf_counter() - began) * 1e3
        whole.append(took)
        added.append(took - answer["took_ms"])
    connection.close()
    line(
        "HTTP and processes, of one client's search",
        f"median {np.median(added):.1f} of {np.median(whole):.1f} ms",
        "3 ms",
    )
    assert np.median(added) < np.median(whole)


def test_beside_pyserini(corpus: Corpus, served: Served, line: Line, tmp_path: Path) -> None:
    """OPS-5: beside Pyserini's own REST server over the same texts and vectors, in one run; told, whoever is faster."""
    if shutil.which("wrk") is None or not RIVAL_PYTHON.exists():
        pytest.skip("wrk and .venv-bench are needed: `make bench-serve` makes the latter")
    with opened(corpus.settings) as searcher:
        handed_over(corpus, searcher, tmp_path)
    asked, theirs = (
        bodies(corpus, tmp_path / "bodies.jsonl"),
        bodies(corpus, tmp_path / "theirs.jsonl", "query", "hits"),
    )
    (port,) = free_ports(1)
    command = [RIVAL_PYTHON, RIVALS / "pyserini_rest.py", str(locate(corpus.settings.embedding)), str(tmp_path)]
    with subprocess.Popen([*command, str(port)], stdout=subprocess.PIPE, text=True) as rival:
        try:
            assert rival.stdout is not None
            assert any(line.startswith('{"ready"') for line in rival.stdout), "it ended"
            url = f"http://127.0.0.1:{port}"
            _await(url)
            for name in ("words", "hybrid"):
                path = f"/v1/indexes/{name}/search"
                asked_by_wrk(url, theirs, CLIENTS, SECONDS, path=path)
                for connections in (1, CLIENTS):
                    _told(
                        line,
                        f"Pyserini, {name}",
                        connections,
                        asked_by_wrk(url, theirs, connections, SECONDS, path=path),
                    )
        finally:
            rival.kill()
    for connections in (1, CLIENTS):
        _told(line, "weft", connections, asked_by_wrk(served.url, asked, connections, SECONDS))


def _await(url: str) -> None:
    ends = time.monotonic() + 60.0
    while time.monotonic() < ends:
        try:
            urllib.request.urlopen(url, timeout=5.0).close()
            return
        except OSError:
            time.sleep(0.2)
    pytest.fail(f"{url} does not answer")


def _told(line: Line, who: str, connections: int, counted: Mapping[str, float]) -> None:
    rate = counted["requests"] / counted["s"]
    figures = f"{rate:.0f}/s, p50 {counted['p50']:.1f} ms, p95 {counted['p95']:.1f} ms"
    line(f"beside: {who}, {connections} clients", figures, "")
    assert counted["failed"] == 0


def own_memory(process: int) -> float:
    """MiB that a process shares with no other."""
    rollup = Path(f"/proc/{process}/smaps_rollup").read_text()
    return sum(int(kib) for kib in re.findall(r"Private_(?:Clean|Dirty):\s+(\d+)", rollup)) / 1024.0


def test_memory_stays(corpus: Corpus, served: Served, line: Line, tmp_path: Path) -> None:
    """OPS-5: at four fifths of its throughput, from when it is warm; each search process beside what all share."""
    asked = bodies(corpus, tmp_path / "bodies.jsonl")
    lines = asked.read_text().splitlines()
    began = time.monotonic()
    rate = SHARED * _rate(served, lines, 10.0, per_s=None)
    before = [own_memory(process) for process in served.search_processes()]
    _rate(served, lines, SOAK_S, per_s=rate)
    after = [own_memory(process) for process in served.search_processes()]
    line(
        f"own memory of search processes, {time.monotonic() - began:.0f} s",
        f"{', '.join(f'{mib:.0f}' for mib in before)}, then {', '.join(f'{mib:.0f}' for mib in after)} MiB",
        "300 MiB, ×1.05",
    )
    assert max(after) < 2.0 * max(before)


def _rate(served: Served, asked: Sequence[str], seconds: float, *, per_s: float | None) -> float:
    """Searches a second by as many clients, at most so many."""
    counts, until = [0] * CLIENTS, time.monotonic() + seconds
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {ADMIN}"}

    def ask(client: int) -> None:
        connection = http.client.HTTPConnection(urlsplit(served.url).netloc)
        due = time.monotonic()
        for body in itertools.cycle(asked[client * 7 :]):
            if time.monotonic() >= until:
                break
            connection.request("POST", "/v1/search", body, headers)
            answered = connection.getresponse()
            answered.read()
            assert answered.status == 200
            counts[client] += 1
            if per_s is not None:
                due += CLIENTS / per_s
                time.sleep(max(0.0, due - time.monotonic()))
        connection.close()

    clients = [threading.Thread(target=ask, args=(client,)) for client in range(CLIENTS)]
    for each in clients:
        each.start()
    for each in clients:
        each.join()
    return sum(counts) / seconds
