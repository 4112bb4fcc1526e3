"""FBK-8, FBK-11: however many sessions, principals, agents and models appear, memory and evidence are bounded."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.feedback_events import RULES

ROOT = Path(__file__).parents[2]
GIBIBYTE_MB = 1024


def fed(folder: Path, events: int, at_once: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.support.many_names", str(events), str(folder), str(at_once)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_which_names_share_one_is_the_logs_to_say(tmp_path: Path) -> None:
    """FBK-8: the same names are told apart, and the same events counted as overflow, however the log is cut."""
    found = [fed(tmp_path / str(at_once), 4_000, at_once) for at_once in (4_000, 700)]
    for each in found:
        each.pop("peak_mb")
    assert found[0] == found[1]
    assert found[0]["overflow"] == dict.fromkeys(("agent", "model"), 4000 - 1334 - RULES.limits.names)


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.timeout(3600)
def test_a_million_names_of_each_kind_fit_into_a_gibibyte(tmp_path: Path) -> None:
    """FBK-8: 1,000,000 sessions and principals, 500,000 of them isolated and open; as many agents and models."""
    found = fed(tmp_path, 1_500_000, RULES.poll_records)
    sys.stderr.write(f"a million names: {found}\n")
    assert found["peak_mb"] <= GIBIBYTE_MB
    assert (found["applied"], found["balanced"], found["open"]) == (1_500_000, True, 500_000)
    assert found["overflow"]["agent"] == found["overflow"]["model"] == 1_000_000 - RULES.limits.names
    assert found["overflow"]["principal"] == 1_500_000 - 3 * RULES.limits.principals // 2
