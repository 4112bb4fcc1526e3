"""CON-7, CON-7a: making a generation anew, killed with SIGKILL anywhere, is finished by the next night.

`WEFT_CRASH_KILLS` and `WEFT_CRASH_SEED` choose how often and where.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.crash.test_ingest_kill import kills, seed
from tests.support.rebuilding import NOTES, index, rebuild_store, settings_of
from weft.catalog.catalog import Catalog
from weft.catalog.pointer import POINTER_FILE
from weft.indexes.manifest import Manifest


def live(store: Path) -> Manifest:
    catalog = Catalog(store)
    return catalog.verify(catalog.pointer().generation)  # type: ignore[arg-type]  # one is live


def bits(manifest: Manifest) -> dict[str, str]:
    """The hashes of its files but for those of the text index, whose segments Lucene names anew each time."""
    return {name: digest for name, digest in manifest.files.items() if not name.startswith("text/")}


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.timeout(3600)
def test_a_rebuild_killed_at_many_points_is_finished_by_the_next(tmp_path: Path) -> None:
    """CON-7: the next one makes the same files, and every one that was killed left a generation that is whole."""
    prepared, context = tmp_path / "prepared", multiprocessing.get_context("spawn")
    for first in (0, 200):
        index(settings_of(prepared), tmp_path / "notes.parquet", range(first, first + NOTES))
    before = live(prepared)

    def run(store: Path, delay_s: float | None = None) -> tuple[int | None, float]:
        ready = context.Event()
        process = context.Process(target=rebuild_store, args=(store, ready))
        process.start()
        ready.wait()
        began = time.monotonic()
        process.join(delay_s)
        if process.is_alive():
            os.kill(process.pid or 0, signal.SIGKILL)
        process.join()
        return process.exitcode, time.monotonic() - began

    whole = shutil.copytree(prepared, tmp_path / "whole")
    code, seconds = run(whole)
    expected = live(whole)
    assert (code, expected.id == before.id) == (0, False)
    # As a kill leaves it between the last file and the pointer: what never was live was not taken back.
    (whole / POINTER_FILE).write_bytes((prepared / POINTER_FILE).read_bytes())
    assert run(whole)[0] == 0
    assert bits(live(whole)) == bits(expected)
    rng, wanted, killed, number = random.Random(seed()), kills(default=20), 0, 0
    while killed < wanted:
        store = shutil.copytree(prepared, tmp_path / str(number))
        delay = rng.uniform(0.0, seconds)
        code, _ = run(store, delay)
        assert code in {0, -signal.SIGKILL}
        killed += code == -signal.SIGKILL
        left = live(store)
        assert bits(left) in (bits(before), bits(expected))
        assert run(store)[0] == 0
        assert bits(live(store)) == bits(expected), delay
        sys.stdout.write(f"{number}: {code} after {delay:.2f} s of {seconds:.2f}, published {left.id != before.id}\n")
        shutil.rmtree(store)
        number += 1
        assert number < 3 * wanted, "killed in time too seldom"
    sys.stdout.write(f"killed {killed} times\n")
