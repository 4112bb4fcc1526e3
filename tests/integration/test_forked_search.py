"""ARC-2, RET-8: what a searcher stands on does not survive a fork; a child says so, and ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT
from tests.support.parts import a_document
from tests.support.small_store import published_store

FORKED = """
import multiprocessing, os, sys
from pathlib import Path
from tests.support.retrieval_fakes import a_query
from tests.support.small_store import DirectionEncoder
from weft.app.library import open_searcher
from weft.catalog.catalog import Catalog
from weft.domain.errors import ForkedError
from weft.retrieval.searcher import Searcher
from weft.retrieval.snapshot.live import CatalogSource
from weft.runtime.clock import system_clock
from weft.settings import load_settings

settings = load_settings(environment={})

def opened():
    source = CatalogSource(Catalog(Path(sys.argv[1])), settings.priors, clock=system_clock)
    return Searcher(source, DirectionEncoder(), settings.retrieval, clock=system_clock)

def says(what):
    try:
        what()
    except ForkedError as error:
        print("forked from" in str(error) and "spawn" in str(error))

def search_in_a_child():
    says(lambda: searcher.search(a_query("checkpoint")))
    says(searcher.refresh)
    says(opened)
    says(lambda: open_searcher(sys.argv[1]).__enter__())

with opened() as searcher:
    first = searcher.search(a_query("checkpoint"))
    sys.stdout.flush()
    if (child := os.fork()) == 0:
        search_in_a_child()
        sys.exit(0)  # closes the searcher, and runs what runs at exit
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    process = multiprocessing.get_context("fork").Process(target=search_in_a_child)
    process.start()
    process.join()
    print(process.exitcode, searcher.search(a_query("checkpoint")).results == first.results)
"""


def test_a_forked_child_is_told_to_open_a_searcher_of_its_own_before_anybody_does(tmp_path: Path) -> None:
    """RET-8: by `os.fork`, as gunicorn preloads, and by multiprocessing; it ends, and the parent goes on."""
    published_store(tmp_path, [a_document("guide.md", "a checkpoint is written after every commit")])
    done = subprocess.run(
        [sys.executable, "-c", FORKED, str(tmp_path)],
        cwd=ROOT, check=False, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.stdout.split("\n") == [*4 * ["True"], "0", *4 * ["True"], "0 True", ""], done.stderr
