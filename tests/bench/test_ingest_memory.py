"""The memory of the process that drives ingestion, for a corpus and for one ten times as large."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.support.ingestion import TOPICS

DOCUMENTS = 1_500


def peak_mb(folder: Path, documents: int) -> float:
    folder.mkdir()
    rng = random.Random(documents)
    corpus = folder / "corpus.jsonl"
    with corpus.open("w") as file:
        for number in range(documents):
            text = " ".join(rng.choices(TOPICS, k=200))
            file.write(
                json.dumps({"_id": f"d{number}", "title": f"Number {number}", "text": f"{number} {text}"}) + "\n"
            )
    command = [sys.executable, "-m", "tests.support.ingest_process", "memory", str(corpus), str(folder / "store")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2_000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["documents"] == documents
    return float(told["peak_mb"])


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_ten_times_the_corpus_takes_the_driver_hardly_more_memory(tmp_path: Path) -> None:
    """ING-24: the driver's peak grows by at most a fifth; tables are merged on disk, and by workers."""
    small, large = peak_mb(tmp_path / "small", DOCUMENTS), peak_mb(tmp_path / "large", 10 * DOCUMENTS)
    sys.stdout.write(f"driver's peak: {small:.0f} MB for {DOCUMENTS}, {large:.0f} MB for {10 * DOCUMENTS} documents\n")
    assert large <= 1.2 * small
