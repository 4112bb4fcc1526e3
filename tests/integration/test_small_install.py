"""OPS-8a: what the base does alone: `tests.support.base_only` hides what extras bring."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
import venv
from pathlib import Path

import httpx
import pytest

from tests.support.ports import free_ports
from tests.support.service import ROOT, small_store

pytestmark = pytest.mark.integration

BASE = (sys.executable, "-m", "tests.support.base_only")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_store(tmp_path_factory.mktemp("small"))


def ran(*arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run([*BASE, *arguments], cwd=ROOT, input=text, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_base_searches(store: Path) -> None:
    """OPS-8a: without PyTorch, Ray and MLflow a store is searched, and looked at."""
    found = ran("search", "yellow fruit that grows in the tropics", "--json", "--store", str(store))
    assert found.returncode == 0, found.stderr
    assert "bananas.md" in found.stdout.splitlines()[0]
    asked = ran("ask", "--store", str(store), text="what opens a lock?\n")
    assert "locks.md" in asked.stdout, asked.stderr
    for words in (["status"], ["lessons", "list"], ["queries", "list"]):
        shown = ran(*words, "--store", str(store))
        assert shown.returncode == 0, shown.stderr


@pytest.mark.parametrize(
    ("words", "extra"), [("index docs", "index"), ("consolidate", "night"), ("mlflow", "night"), ("mcp", "mcp")]
)
def test_other_commands_name_their_extra(words: str, extra: str, store: Path) -> None:
    """OPS-8a, OPS-15: one line that says what to install, and exit code 1."""
    refused = ran(*words.split(), "--store", str(store))
    assert refused.returncode == 78
    assert refused.stderr.strip().endswith(f"pip install 'weft-retrieval[{extra}]'")
    assert "Traceback" not in refused.stderr


@pytest.mark.slow
def test_the_base_serves(store: Path) -> None:
    """OPS-8a, OPS-5: `weft serve` answers; what it does without, it says in a line each."""
    (port,) = free_ports(1)
    log = store.parent / "serve.log"
    command = [*BASE, "serve", "--store", str(store), "--port", str(port), "--processes", "1"]
    with log.open("wb") as out:
        process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, "WEFT_TOKENS": ""}, stdout=out, stderr=out)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30.0) as client:
            until = time.monotonic() + 240.0
            while process.poll() is None and time.monotonic() < until:
                try:
                    if client.get("/readyz").is_success:
                        break
                except httpx.HTTPError:
                    pass
                time.sleep(0.2)
            answered = client.post("/v1/search", json={"text": "sour fruit"})
            assert answered.status_code == 200, log.read_text()
            assert "lemons.md" in json.dumps(answered.json()["results"][0])
            assert "weft-retrieval[console]" in client.get("/").text
            assert client.post("/mcp", json={}).status_code == 404
    finally:
        process.terminate()
        process.wait(60)
    said = log.read_text()
    for without in ("no console: expected the extra `console`", "no tools at /mcp: expected the extra `mcp`"):
        assert said.count(without) == 1, said


def wheel_of(folder: Path) -> Path:
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*build, "--wheel-dir", str(folder), str(ROOT)], check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def environment_in(folder: Path) -> str:
    """The Python of a new environment."""
    venv.create(folder / "venv", with_pip=True)
    return str(folder / "venv/bin/python")


def installed(python: str, *arguments: str) -> str:
    """What pip prints; skips where there is no index of packages."""
    constraints = ("--constraint", str(ROOT / "infra/python/constraints.txt"))
    install = [python, "-m", "pip", "install", "--quiet", *constraints, *arguments]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    if "No matching distribution" in done.stderr or "Failed to establish" in done.stderr:
        pytest.skip(f"no index of packages: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    return done.stdout


IMPORTED = """
from importlib.metadata import packages_distributions
import faiss
print(*packages_distributions()["faiss"], faiss.IndexFlatIP(4).d, faiss.get_num_gpus())
"""


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("extra", ["cpu", "gpu"])
def test_an_extra_brings_one_build_of_faiss(extra: str, tmp_path: Path) -> None:
    """OPS-8a, SCL-15: it resolves with all else; of what it brings one alone is imported as `faiss`, and it is."""
    wheel, python = wheel_of(tmp_path), environment_in(tmp_path)
    resolved = json.loads(installed(python, "--dry-run", "--report", "-", f"{wheel}[{extra}]"))["install"]
    versions = {each["metadata"]["name"]: each["metadata"]["version"] for each in resolved}
    assert [name for name in versions if name.startswith("faiss")] == [f"faiss-{extra}"]
    needs = [name for name in versions if name.startswith(("faiss", "nvidia")) or name in {"numpy", "packaging"}]
    installed(python, "--no-deps", *(f"{name}=={versions[name]}" for name in needs))
    imported = subprocess.run([python, "-c", IMPORTED], capture_output=True, text=True, check=False)
    shutil.rmtree(tmp_path / "venv")  # more than a gigabyte
    assert imported.stdout.split() == [f"faiss-{extra}", "4", "0"], imported.stderr


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_the_wheel_alone_is_small_and_searches(store: Path, tmp_path: Path) -> None:
    """OPS-8a: at most 60 packages and 1.2 GB out of the index, none of those that extras bring; what is fetched once
    is fetched, and a store of another machine is searched."""
    wheel, python = wheel_of(tmp_path), environment_in(tmp_path)
    installed(python, f"{wheel}[cpu]")

    listed = json.loads(subprocess.check_output([python, "-m", "pip", "list", "--format", "json"]))
    names = {each["name"].lower() for each in listed} - {"pip", "setuptools"}
    assert len(names) <= 60, sorted(names)
    heavy = re.compile("ray|mlflow.*|gliner|torch|nvidia-.*|pyserini|nicegui|mcp")
    assert not [name for name in names if heavy.fullmatch(name)]
    (packages,) = (tmp_path / "venv/lib").glob("python*/site-packages")
    size = sum(path.lstat().st_size for path in packages.rglob("*") if path.is_file())
    assert size <= 1_200_000_000, f"{size / 1e6:.0f} MB"

    moved, home = tmp_path / "moved", tmp_path / "home"
    shutil.copytree(store, moved)
    home.mkdir()
    found = subprocess.run(
        [str(tmp_path / "venv/bin/weft"), "search", "yellow fruit in the tropics", "--json", "--store", str(moved)],
        cwd=home,
        env={**{name: value for name, value in os.environ.items() if name != "PYTHONPATH"}, "HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    assert "bananas.md" in found.stdout.splitlines()[0]
    assert list((home / ".cache/weft/jars").rglob("anserini-*.jar"))
