"""RET-20: what a search frees serves the next one."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.integration

FAULTS = """
import resource, sys
import numpy as np
from weft.runtime.process import keep_freed_memory

if not keep_freed_memory(int(sys.argv[1])) and int(sys.argv[1]):
    print("none")
    raise SystemExit
blocks = [np.ones(1_000_000) for _ in range(4)]
del blocks
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    blocks = [np.ones(1_000_000) for _ in range(4)]
    del blocks
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def page_faults(kept: int) -> int:
    """Of a process that takes and frees 32 MB twenty times over, having done so once."""
    done = subprocess.run([sys.executable, "-c", FAULTS, str(kept)], capture_output=True, text=True, check=True)
    if done.stdout.strip() == "none":
        pytest.skip("this C library cannot be told what to keep")
    return int(done.stdout)


def test_memory_that_was_freed_is_taken_again_without_a_page_fault() -> None:
    """RET-20: of the pages that are faulted in anew otherwise, hardly any is."""
    assert page_faults(128 * 1024**2) * 20 < page_faults(0)
