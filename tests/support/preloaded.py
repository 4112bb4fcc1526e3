"""Processes that split off from one that has imported everything: each is a process of its own, and starts at once.

Most of the time that an updater takes to start goes by while modules are imported. Nothing is open in the process that
splits: files, connections and threads are all made by the updater itself, as if it had been started by hand.
"""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PRELOADED = ("jobs.update", "tests.support.failpoints", "weft.runtime.kafka.reader", "pyarrow.parquet")


class Split:
    """A process that was split off; what `subprocess.Popen` has, as far as tests ask for it."""

    def __init__(self, server: Server, pid: int, stderr: Path) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._server = server
        self._stderr = stderr

    def poll(self) -> int | None:
        """How it ended; None while it lives."""
        if self.returncode is None:
            self.returncode = self._server.ask({"ended": self.pid})
        return self.returncode

    def wait(self, timeout: float) -> int:
        """How it ended.

        Raises:
            TimeoutError: It lives on.
        """
        deadline = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > deadline:
                raise TimeoutError(f"process {self.pid} lives after {timeout} s")
            time.sleep(0.01)
        return code

    def said(self) -> str:
        """What it wrote to its standard error."""
        return self._stderr.read_text(encoding="utf-8", errors="replace")


class Server:
    """The process that the others split off from."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.support.preloaded"]
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self._folder = tempfile.TemporaryDirectory()
        self._started = 0

    def start(self, module: str, arguments: Sequence[str]) -> Split:
        """Run a module as a program."""
        self._started += 1
        stderr = Path(self._folder.name) / str(self._started)
        return Split(self, self.ask({"run": module, "arguments": list(arguments), "stderr": str(stderr)}), stderr)

    def ask(self, question: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()
        self._folder.cleanup()


def serve() -> None:
    for module in PRELOADED:
        __import__(module)
    for line in sys.stdin:
        question = json.loads(line)
        answer = _ended(question["ended"]) if "ended" in question else _split(question)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _ended(pid: int) -> int | None:
    found, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if found else None


def _split(question: dict[str, Any]) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, 0)
        os.dup2(nowhere, 1)
        os.dup2(os.open(question["stderr"], os.O_WRONLY | os.O_CREAT), 2)
        sys.argv = [question["run"], *question["arguments"]]
        runpy.run_module(question["run"], run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(bool(end.code))
    finally:
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    serve()
