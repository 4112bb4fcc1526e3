"""How many files of weft one document, query, event and night enter."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import ROOT
from tests.support.trace import FLOWS, LIMITS


@pytest.mark.parametrize(
    "flow", ["event", *(pytest.param(flow, marks=pytest.mark.slow) for flow in FLOWS if flow != "event")]
)
def test_a_flow_enters_no_more_files_than_it_may(flow: str) -> None:
    """ARC-6: whoever follows one thing through the code opens so many files; traced in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.trace", flow], cwd=ROOT, capture_output=True, text=True, check=True
    )
    _, name, files, limit, functions, _ = (part.strip() for part in done.stdout.splitlines()[-1].split("|"))
    assert (name, int(limit)) == (flow, LIMITS[flow])
    assert 0 < int(files) <= min(LIMITS[flow], int(functions)), done.stdout
