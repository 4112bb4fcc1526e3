"""CON-2, CON-3: how long a night takes, step by step, and how much memory it needs, as contents grow.

`WEFT_NIGHT` says over how many contents, such as "30000 100000" (the default). Every night runs in a process of its own
over a synthetic store with five events of feedback a content (`tests.support.night_bench`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT

COUNTS = [int(each) for each in (os.environ.get("WEFT_NIGHT") or "30000 100000").split()]
OPPOSED = 0.005  # of contents, at least: what was planted and is denied beyond doubt


def night(folder: Path, count: int, data: Path) -> dict[str, Any]:
    """What a night over so many contents took."""
    bench = [sys.executable, "-m", "tests.support.night_bench"]
    subprocess.run([*bench, "store", str(folder), str(count), str(data)], cwd=ROOT, check=True)
    subprocess.run([*bench, "night", str(folder), str(folder / "found")], cwd=ROOT, check=True)
    found: dict[str, Any] = json.loads((folder / "found").read_text(encoding="utf-8"))
    return found


def lines_of(count: int, found: dict[str, Any]) -> list[str]:
    """What a person reads of it: by step seconds, those of the processor, and the most memory by its end."""
    whole = f"{found['seconds']:.1f} s, {found['cpu_s']:.1f} s CPU, {found['peak_mib']:,.0f} MiB"
    steps = [
        f"  {name:<15}{step['seconds']:>8.2f} s{step['cpu_s']:>8.2f} s CPU"
        f"{step['cpu_s'] / count * 1e6:>9.1f} µs CPU a content{step['peak_mib']:>9,.0f} MiB"
        for name, step in found["steps"].items()
    ]
    return [f"{count:,} contents: {whole}, {found['cpu_s'] / count * 1e6:.0f} µs CPU a content", *steps]


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_a_night_as_contents_grow(tmp_path: Path, data_root: Path) -> None:
    """CON-2, CON-3, CON-4: what was planted is found at every size; time and memory are printed."""
    for count in COUNTS:
        found = night(tmp_path / str(count), count, data_root)
        sys.stderr.write("\n".join(["", *lines_of(count, found), ""]))
        steps = found["steps"]
        assert steps["duplicates"]["aliases"] >= 0.015 * count
        assert steps["contradictions"]["acting"] >= OPPOSED * count
        assert steps["links"]["similar"] >= 0.015 * count
