"""Git, run on a repository without running anything that the repository configures (ING-2, ING-40).

Git reads a repository through one of our own, made for the occasion. So neither settings, hooks, filters, helpers nor
remotes of the repository itself come into play: a tree may hold any of them, and a `.git/config` may name programs.
"""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

_BLOCK = 1 << 16
_OUTPUT_BYTES = 1 << 30  # a history of a million commits names about ten million files
_MEMORY_BYTES = 1 << 32  # address space of git, into which it maps what it reads
_ULIMIT = 'ulimit -v "$1" && shift && exec "$@"'  # a repository may hold objects that take any amount of memory
_OPTIONS = ("core.hooksPath=/dev/null", "core.fsmonitor=false", "core.untrackedCache=false", "core.packedGitLimit=256m")


class ProtectedGit:
    """Runs git from a repository of our own in `folder`, within limits of time, bytes and memory."""

    def __init__(self, folder: Path, within_s: float, *, head: str, wide: bool, objects: Path) -> None:
        """Make it with this HEAD and this folder of objects; `wide` where ids are SHA-256."""
        self.folder, self._objects = folder, objects
        self._ends = time.monotonic() + within_s
        for name in ("objects", "refs", "info"):
            (folder / name).mkdir()
        (folder / "HEAD").write_text(f"{head}\n", encoding="ascii")
        ids = "[extensions]\nobjectformat = sha256\n" if wide else ""
        (folder / "config").write_text(f"[core]\nrepositoryformatversion = {int(wide)}\nbare = true\n{ids}", "ascii")

    def records(self, *arguments: str) -> Iterator[bytes]:
        """What git prints, up to each zero byte; what it prints beyond the limits is left out."""
        with self._process(arguments, None, {}) as process:
            try:
                rest = b""
                for block in self._blocks(process):
                    *whole, rest = (rest + block).split(b"\0")
                    yield from whole
            finally:
                process.kill()

    def answer(
        self, *arguments: str, cwd: Path | None = None, environment: Mapping[str, str | None]
    ) -> list[bytes] | None:
        """All that git prints, up to each zero byte; None where it fails or does not end within the limits."""
        with self._process(arguments, cwd, environment) as process:
            try:
                printed = b"".join(self._blocks(process))
                if process.wait(max(0.0, self._ends - time.monotonic())) == 0:
                    return printed.split(b"\0")[:-1]
            except subprocess.TimeoutExpired:
                pass
            finally:
                process.kill()
        return None

    def _environment(self, more: Mapping[str, str | None]) -> dict[str, str]:
        others = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        own = {
            "HOME": str(self.folder),
            "LC_ALL": "C",
            "GIT_DIR": str(self.folder),
            "GIT_OBJECT_DIRECTORY": str(self._objects),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ALLOW_PROTOCOL": "none",  # a repository without all of its objects would have them fetched
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
        }
        return {name: value for name, value in {**others, **own, **more}.items() if value is not None}

    def _process(
        self, arguments: tuple[str, ...], cwd: Path | None, environment: Mapping[str, str | None]
    ) -> subprocess.Popen[bytes]:
        limits = ("/bin/sh", "-c", _ULIMIT, "sh", str(_MEMORY_BYTES >> 10))
        options = [part for option in _OPTIONS for part in ("-c", option)]
        return subprocess.Popen(
            [*limits, "git", "--no-pager", "--literal-pathspecs", *options, *arguments],
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=self._environment(environment),
        )

    def _blocks(self, process: subprocess.Popen[bytes]) -> Iterator[bytes]:
        if process.stdout is None:
            return
        left_bytes = _OUTPUT_BYTES
        poll = select.poll()
        poll.register(process.stdout, select.POLLIN)
        while left_bytes > 0 and poll.poll(max(0.0, self._ends - time.monotonic()) * 1000):
            block = os.read(process.stdout.fileno(), _BLOCK)
            if not block:
                return
            left_bytes -= len(block)
            yield block
