"""Azurite, the emulator of Azure's object store that Microsoft publishes on npm, over HTTP (SCL-2, SCL-3)."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path

import httpx
import pytest

from tests.support.ports import free_ports

PACKAGE = "azurite@3.37.0"
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Both are the same wherever it runs, and no secret."""
PATIENCE_S = 60.0


@dataclass(frozen=True)
class Azurite:
    """A server with one container."""

    endpoint: str
    bucket: str = "weft"

    def environment(self) -> dict[str, str]:
        """What a client of Azure reads to find it."""
        return {
            "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
            "AZURE_STORAGE_ACCOUNT_KEY": KEY,
            "AZURE_STORAGE_USE_EMULATOR": "true",
            "AZURITE_BLOB_STORAGE_URL": self.endpoint,
            "AZURE_ALLOW_HTTP": "true",
        }

    def make_container(self) -> None:
        """Make the container, by a request that is signed as Azure has it."""
        own = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2023-11-03"}
        canonical = "".join(f"{name}:{value}\n" for name, value in own.items())
        signed = f"PUT{12 * chr(10)}{canonical}/{ACCOUNT}/{ACCOUNT}/{self.bucket}\nrestype:container"
        digest = hmac.digest(base64.b64decode(KEY), signed.encode(), hashlib.sha256)
        own["Authorization"] = f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}"
        made = httpx.put(f"{self.endpoint}/{ACCOUNT}/{self.bucket}", params={"restype": "container"}, headers=own)
        assert made.status_code == 201, made.text


@contextlib.contextmanager
def azurite(folder: Path) -> Iterator[Azurite]:
    """A server; skips where npm or its registry is missing."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm gets Azurite, and there is none")
    install = [npm, "install", "--prefix", str(folder), "--no-audit", "--no-fund", PACKAGE]
    got = subprocess.run(install, capture_output=True, text=True, check=False, timeout=300)
    if got.returncode:
        pytest.skip(f"npm could not get {PACKAGE}: {got.stderr[-200:]}")
    (port,) = free_ports(1)
    options = ["--inMemoryPersistence", "--silent", "--skipApiVersionCheck", "--disableTelemetry"]
    command = [str(folder / "node_modules/.bin/azurite-blob"), "--blobPort", str(port), *options]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        server = Azurite(f"http://127.0.0.1:{port}")
        _await(server, process)
        server.make_container()
        yield server
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def _await(server: Azurite, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + PATIENCE_S
    while process.poll() is None and time.monotonic() < until:
        with contextlib.suppress(httpx.TransportError):
            httpx.get(server.endpoint)
            return
        time.sleep(0.1)
    pytest.fail(f"{PACKAGE} does not answer")
