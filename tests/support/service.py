"""A service as a process of its own over a small store, for tests that ask it over HTTP."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

import weft
from tests.support.ports import free_ports

ROOT = Path(__file__).resolve().parents[2]

SEARCH, FEEDBACK, ADMIN = ("search-" + "s" * 20, "feedback-" + "f" * 20, "admin-" + "a" * 20)
TOKENS = f"{SEARCH}:search,{FEEDBACK}:search+feedback,{ADMIN}:search+feedback+admin"

TEXTS = {
    "fruit/apples.md": "# Apples\n\nApples are green or red and grow on trees.",
    "fruit/bananas.md": "# Bananas\n\nBananas are yellow and grow in the tropics.",
    "fruit/lemons.md": "# Lemons\n\nLemons are yellow and sour, and grow on trees.",
    "locks.md": "# Locks\n\nA lock is released when the transaction ends.\n\n## Keys\n\nA key opens a lock.",
}


@dataclass
class Served:
    """A running service."""

    url: str
    store: Path
    process: subprocess.Popen[bytes]

    def client(self, token: str | None = ADMIN, **more: Any) -> httpx.Client:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=30.0, **more)

    def ask(self, text: str, **more: Any) -> dict[str, Any]:
        with self.client() as client:
            answered = client.post("/v1/search", json={"text": text, **more})
        assert answered.status_code == 200, answered.text
        found: dict[str, Any] = answered.json()
        return found

    def search_processes(self) -> list[int]:
        """The processes that hold a searcher: all that the fork server of the service began."""
        return [int(each) for server in _children(self.process.pid) for each in _children(server) if _has_threads(each)]

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


def small_store(folder: Path, texts: Mapping[str, str] = TEXTS, *assignments: str) -> Path:
    """A store in which texts are live."""
    for name, text in texts.items():
        path = folder / "texts" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    weft.index([folder / "texts"], folder / "store", assignments=["extraction.enabled=false", *assignments])
    return folder / "store"


@contextmanager
def serving(store: Path, *arguments: str, tokens: str = TOKENS, processes: int = 1) -> Iterator[Served]:
    """A service over a store, ready to answer."""
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "weft", "serve", "--store", str(store), "--port", str(port)]
    command += ["--processes", str(processes), *arguments]
    log = store.parent / f"serve-{port}.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, "WEFT_TOKENS": tokens}, stdout=out, stderr=subprocess.STDOUT
        )
    served = Served(f"http://127.0.0.1:{port}", store, process)
    try:
        _await_ready(served, log)
        yield served
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()


def _await_ready(served: Served, log: Path, within_s: float = 180.0) -> None:
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        if served.process.poll() is not None:
            break
        try:
            if httpx.get(f"{served.url}/readyz", timeout=5.0).status_code == 200:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.1)
    raise AssertionError(f"expected a service that is ready, found:\n{log.read_text()}")


def announced(store: Path) -> dict[str, Any]:
    """What a service says of itself in its store."""
    stated: dict[str, Any] = json.loads((store / "serving.json").read_bytes())
    return stated


def _children(pid: int) -> list[int]:
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return [int(each) for task in tasks for each in (task / "children").read_text().split()]
    except OSError:
        return []


def _has_threads(pid: int) -> bool:
    try:
        return len(list(Path(f"/proc/{pid}/task").iterdir())) > 1
    except OSError:
        return False
