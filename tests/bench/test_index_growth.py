"""SCL-10: what building a generation costs, content by content, as contents grow.

`WEFT_GROWTH` says over how many contents, such as "200000 400000 800000 1600000" (the default), and `WEFT_SHARD` how
many make a shard (2000000). Every build runs in a process of its own, one thing after the other, over texts and vectors
that are made cheaply (`tests.support.growth_bench`).
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

COUNTS = [int(each) for each in (os.environ.get("WEFT_GROWTH") or "200000 400000 800000 1600000").split()]
SHARD = os.environ.get("WEFT_SHARD") or "2000000"
STEPS = ("merge", "build", "verify")  # the others are parts of these


def lines_of(found: dict[str, Any]) -> list[str]:
    """What a person reads of it: microseconds of processor and clock by content."""
    count = found["contents"]
    told = [f"{count:,} contents, {found['shards']} shards, at most {found['peak_mib']:,.0f} MiB"]
    for name, (cpu, wall) in sorted(found["steps"].items(), key=lambda item: -item[1][0]):
        told.append(f"  {name:<18}{cpu / count * 1e6:>9.1f} us of processor{wall / count * 1e6:>9.1f} us of clock")
    return told


@pytest.mark.slow
@pytest.mark.timeout(4 * 3600)
def test_a_content_costs_the_same_however_many_there_are(tmp_path: Path) -> None:
    """SCL-10: merging, building and verifying a content take within 15 % of each other, by the processor's time."""
    costs = []
    for count in COUNTS:
        bench = [sys.executable, "-m", "tests.support.growth_bench", str(tmp_path / str(count)), str(count)]
        bench += ["--set", f"index.shard_contents={SHARD}"]
        done = subprocess.run(bench, cwd=ROOT, check=True, capture_output=True, text=True)
        found = json.loads(done.stdout.splitlines()[-1])
        sys.stderr.write("\n".join(["", *lines_of(found), ""]))
        costs.append(sum(found["steps"][name][0] for name in STEPS) / count)
    assert max(costs) <= 1.15 * min(costs)
