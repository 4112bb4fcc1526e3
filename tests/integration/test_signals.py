"""Ray, the Java machine and a job's own signal handlers in one process."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

_JAVA_THEN_RAY = """
import signal
from pipelines.indexes.jvm import java_class
from pipelines.runtime.cluster import connect, disconnect
from pipelines.settings import load_settings

asked = []
signal.signal(signal.SIGTERM, lambda *_: asked.append("term"))
text = java_class("java.lang.String")
connect(load_settings().cluster)
chars = java_class("java.util.ArrayList")()
for _ in range(20_000):  # enough for the compiler to rely on faults in place of null checks
    chars.add("x")
    chars.clear()
objects = java_class("java.util.Objects")
for _ in range(20_000):
    try:
        objects.requireNonNull(None)
    except Exception:
        pass
signal.raise_signal(signal.SIGTERM)
disconnect()
print("asked", asked)
"""


@pytest.mark.timeout(120)
def test_java_and_a_jobs_own_handlers_survive_the_start_of_ray() -> None:
    """OPS-1: Ray installs handlers of its own; Java needs its SIGSEGV, and a job its SIGTERM."""
    found = subprocess.run([sys.executable, "-c", _JAVA_THEN_RAY], capture_output=True, text=True, check=False)
    assert found.returncode == 0, signal.Signals(-found.returncode) if found.returncode < 0 else found.stderr[-2000:]
    assert "asked ['term']" in found.stdout
