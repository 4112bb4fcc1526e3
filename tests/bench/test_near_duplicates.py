"""CON-2: near-duplicates beside SemHash, on the same texts, cores and static vectors in one run; and among very many.

`WEFT_DUPLICATES` says among how many texts time and memory are measured (1,000,000). SemHash has no model of its own
here, which it would download: it is given the vectors distilled from weft's encoder.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import ROOT
from tests.support.duplicate_bench import collection, found_shares, mixed, plant
from weft.embedding.models import locate
from weft.embedding.static_vectors import static_vectors
from weft.settings import load_settings

RIVAL_PYTHON = Path(os.environ.get("WEFT_DUPLICATES_RIVAL") or ROOT / ".venv-bench" / "bin" / "python")
RIVAL = ROOT / "tests" / "support" / "rivals" / "semhash_duplicates.py"
COLLECTIONS = ("scifact", "nfcorpus", "cacm", "locomo")
MANY = int(os.environ.get("WEFT_DUPLICATES") or 1_000_000)
EACH = 300
OPPOSITES = ("denied", "renumbered")


@pytest.fixture(scope="module")
def texts(data_root: Path) -> list[str]:
    """The texts of all collections, each once."""
    return list(dict.fromkeys(text for name in COLLECTIONS for text in collection(name, data_root)))


def ours(folder: Path) -> dict[str, Any]:
    return _run([sys.executable, "-m", "tests.support.duplicate_bench"], folder)


def theirs(folder: Path, model: Path, threshold: float) -> dict[str, Any]:
    return _run([str(RIVAL_PYTHON), str(RIVAL)], folder, str(model), str(threshold))


def _run(command: list[str], folder: Path, *more: str) -> dict[str, Any]:
    subprocess.run([*command, str(folder / "texts"), str(folder / "found"), *more], cwd=ROOT, check=True)
    found: dict[str, Any] = json.loads((folder / "found").read_text(encoding="utf-8"))
    return found


def write(folder: Path, texts: list[str]) -> None:
    (folder / "texts").write_text("".join(json.dumps(text) + "\n" for text in texts), encoding="utf-8")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The vectors that SemHash is given."""
    if not RIVAL_PYTHON.exists():
        pytest.skip("no .venv-bench: `make bench-duplicates` makes it")
    folder, settings = tmp_path_factory.mktemp("model"), load_settings(environment={})
    table = static_vectors(settings.embedding).table
    zipf = 1.0 / np.arange(1.0, len(table) + 1.0)  # shares of tokens by their ranks, where no texts are at hand
    rarity = 1e-3 / (1e-3 + zipf / zipf.sum())
    np.save(folder / "vectors.npy", table * rarity.astype(np.float32)[:, None])
    shutil.copy(locate(settings.embedding) / "tokenizer.json", folder / "tokenizer.json")
    return folder


def cost_of(found: dict[str, Any]) -> str:
    return f"{found['seconds']:.1f} s, {found['cpu_s']:.1f} s CPU, {found['peak_mib']:,.0f} MiB"


def say(lines: list[str]) -> None:
    sys.stderr.write("\n".join(["", *lines, ""]))


def told(shares: dict[str, float]) -> str:
    return ", ".join(f"{kind} {share:.3f}" for kind, share in shares.items())


@pytest.mark.slow
@pytest.mark.parametrize("count", [0, 100_000])
def test_beside_semhash(count: int, texts: list[str], tmp_path: Path, model: Path) -> None:
    """CON-2: at least as fast, at equal or better recall of what was planted, and no opposite merged."""
    planted = plant(mixed(texts, count, random.Random(1)) if count else texts, EACH)
    write(tmp_path, planted.texts)
    measured = {"weft": ours(tmp_path), "SemHash .95": theirs(tmp_path, model, 0.95)}
    if not count:
        measured["SemHash .90"] = theirs(tmp_path, model, 0.9)
    shares = {name: found_shares(planted, each["standing"]) for name, each in measured.items()}
    lines = [f"{name:<12} {cost_of(each)}: {told(shares[name])}" for name, each in measured.items()]
    say([f"{len(planted.texts):,} texts, {EACH} of each kind planted", *lines])
    weft, rival = shares["weft"], shares["SemHash .95"]
    kinds = [kind for kind in weft if kind not in OPPOSITES]
    assert [weft[kind] for kind in OPPOSITES] == [0.0, 0.0]
    assert sum(weft[kind] for kind in kinds) >= sum(rival[kind] for kind in kinds)


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_among_very_many(texts: list[str], tmp_path: Path) -> None:
    """CON-2: a million contents in minutes; time and memory are printed."""
    planted = plant(mixed(texts, MANY, random.Random(2)), EACH)
    write(tmp_path, planted.texts)
    found = ours(tmp_path)
    shares = found_shares(planted, found["standing"])
    say([f"{len(planted.texts):,} texts: {cost_of(found)}; {found['candidates']:,} candidates; {told(shares)}"])
    assert [shares[kind] for kind in OPPOSITES] == [0.0, 0.0]
