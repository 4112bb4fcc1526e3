"""What benchmarks of searches are run on: a corpus indexed by the real pipeline, a warm searcher, one table.

`WEFT_SEARCH_CHUNKS` says over how many chunks (100,000), `WEFT_SEARCH_STORE` where corpus and store are kept between
runs, `WEFT_SEARCH_SETTINGS` what is set otherwise (a JSON list of assignments): cutting and embedding 100,000 chunks
takes half an hour on two cores. The chunks are code of installed packages, the questions the first sentences of its
docstrings, which stand nowhere in the code that is indexed.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.support.search_bench import CORES, QUERIES, ROUNDS, Corpus, Line
from tests.support.search_corpus import kept_corpus
from weft.app.searching.engines import opened
from weft.catalog.catalog import Catalog
from weft.cli.commands import reindex
from weft.retrieval.searcher import Searcher
from weft.settings import load_settings

CHUNKS = int(os.environ.get("WEFT_SEARCH_CHUNKS") or 100_000)


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Indexed by the real pipeline, once per folder."""
    folder = Path(os.environ.get("WEFT_SEARCH_STORE") or tmp_path_factory.mktemp("search"))
    set_otherwise = json.loads(os.environ.get("WEFT_SEARCH_SETTINGS") or "[]")
    assignments = [f"storage.root={folder / 'store'}", "extraction.enabled=false", *set_otherwise]
    settings = load_settings(assignments=assignments, environment={})
    questions = kept_corpus(folder, settings, chunks=CHUNKS)
    if Catalog(folder / "store").pointer().generation is None:
        reindex.run_visibly(settings, reindex.plan_of(settings, [folder / "code"]))
    drawn = np.random.default_rng(5).permutation(len(questions))
    chosen, others = ([questions[at] for at in some] for some in (drawn[:QUERIES], drawn[QUERIES:]))
    return Corpus(settings, chosen, others)


@pytest.fixture(scope="session")
def line() -> Iterator[Line]:
    """Collects lines of the table, shown when all is measured."""
    lines: list[str] = []
    yield lambda what, measured, goal: lines.append(f"{what:<46} {goal:<12} {measured}")
    sys.stderr.write("\n".join(["", f"{'what':<46} {'goal':<12} measured, {CORES} cores", *lines, ""]))


@pytest.fixture(scope="module")
def searcher(corpus: Corpus) -> Iterator[Searcher]:
    with opened(corpus.settings) as made:
        # Java compiles what it runs on threads of its own, for the first hundreds of searches.
        for query in corpus.queries * ROUNDS:
            made.search(query)
        yield made
