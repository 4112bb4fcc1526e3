"""ARC-5: what starting Ray prints on a user's terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT

START = """
import logging
from weft.runtime.ray.cluster import connect, disconnect
from weft.settings import load_settings
logging.basicConfig(level=logging.INFO)
connect(load_settings(assignments=["cluster.cpus=1"], environment={}).cluster)
disconnect()
logging.getLogger("ray._private.authentication.authentication_token_setup").warning("heard again")
"""


def test_a_cluster_of_ones_own_starts_without_advice(tmp_path: Path) -> None:
    """ARC-5: that it has a token is what weft wants; the one line left is of Ray's core, which says its log level."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    done = subprocess.run(
        [sys.executable, "-c", START],
        cwd=ROOT, env={**kept, "HOME": str(tmp_path)}, check=True, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    lines = [line for line in done.stderr.splitlines() if line and "RAY_BACKEND_LOG_LEVEL" not in line]
    assert lines == ["heard again"]
    assert done.stdout == ""
    assert (tmp_path / ".ray" / "auth_token").stat().st_mode & 0o777 == 0o600
