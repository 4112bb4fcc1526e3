"""What `ray job submit --working-dir . -- python -m jobs.NAME` names: commands of `weft`, and of the laboratory.

The sources that a job was submitted with come before an installed weft, here and in every worker.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

_SOURCES = str(Path(__file__).resolve().parent.parent / "pipelines")

sys.path.insert(0, _SOURCES)
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [_SOURCES, os.environ.get("PYTHONPATH")]))
