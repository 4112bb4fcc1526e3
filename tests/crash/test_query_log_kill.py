"""EVA-3: a process that dies while it logs loses at most what was not written, and damages nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from weft.evaluation.queries.days import QUERY_LOG, files_of
from weft.evaluation.queries.reader import read_queries
from weft.settings import load_settings

pytestmark = pytest.mark.crash

SETTINGS = load_settings(environment={}).query_log
LOGGING = """
import sys
from dataclasses import replace
from pathlib import Path
from weft.evaluation.queries.writer import QueryLog
from weft.settings import load_settings
from tests.support.retrieval_fakes import MemoryGeneration, a_query, a_searcher
answer = a_searcher(MemoryGeneration({"a": ["red apple"], "b": ["red pear"]})).search(a_query("red apple"))
log = QueryLog(Path(sys.argv[1]), load_settings(environment={}).query_log, waiting=100000, flush_rows=5)
print("ready", flush=True)
for number in range(100000):
    log.emit(replace(answer, query=replace(answer.query, query_id=f"q{number}")))
    print(log.logged, flush=True)
"""


@pytest.mark.parametrize("delay_s", [0.05, 0.2])
def test_what_was_written_before_a_kill_is_there(tmp_path: Path, delay_s: float) -> None:
    """EVA-3: killed at any instant; every row that was counted as logged is read back, whole."""
    process = subprocess.Popen(
        [sys.executable, "-c", LOGGING, str(tmp_path)], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(delay_s)  # the kill may fall anywhere: there is no condition to wait for
    process.send_signal(signal.SIGKILL)
    said = process.stdout.read().splitlines()
    process.wait()
    counted = max(int(line) for line in said[:-1])  # the last line may be cut
    found = read_queries(tmp_path, limit=100_000)
    assert len(found) >= counted
    names = {query.query_id for query in found}
    assert names == {f"q{number}" for number in range(len(names))}
    assert all(len(query.results) == 2 for query in found)
    folders = list((tmp_path / QUERY_LOG).glob("*/*.parquet"))
    assert len(files_of(tmp_path / QUERY_LOG)) == len(folders)
