"""Ray, the Java machine and a job's own signal handlers in one process."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

_JAVA_THEN_RAY = """
import ctypes
import json
import signal
from weft.indexes.text.jvm import java_class
from weft.runtime.ray.cluster import connect, disconnect
from weft.settings import load_settings


def handler_of(number):
    action = ctypes.create_string_buffer(512)
    ctypes.CDLL(None).sigaction(int(number), None, action)
    return int.from_bytes(action.raw[:8], "little")  # struct sigaction begins with the handler's address


asked = []
signal.signal(signal.SIGTERM, lambda *_: asked.append("term"))
java_class("java.lang.String")
before = handler_of(signal.SIGSEGV)
connect(load_settings().cluster)
after = handler_of(signal.SIGSEGV)
signal.raise_signal(signal.SIGTERM)
disconnect()
print(json.dumps({"asked": asked, "before": before, "after": after}))
"""


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_java_and_a_jobs_own_handlers_survive_the_start_of_ray() -> None:
    """OPS-1: Ray installs handlers of its own; Java needs its SIGSEGV, and a job its SIGTERM."""
    found = subprocess.run([sys.executable, "-c", _JAVA_THEN_RAY], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr[-2000:]
    told = json.loads(found.stdout.splitlines()[-1])
    assert told["asked"] == ["term"]
    assert told["before"] != 0  # Java's own, not the default
    assert told["after"] == told["before"]
