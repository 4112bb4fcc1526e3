"""What words as people write them cost beside the English analyser alone, in indexing and in searching (RET-22).

    python -m pytest -m slow -s tests/bench/test_words_cost.py

Ratios of one run over NFCorpus, each side in turns with the other; nothing of the vectors is cached.
"""

from __future__ import annotations

import gzip
import itertools
import json
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pipelines.catalog.catalog import Catalog
from pipelines.domain.ids import QueryId
from pipelines.domain.ranking import Query
from pipelines.indexes.text.build import lexical_documents, write_shard
from pipelines.ingestion.pipeline import ingest
from pipelines.retrieval.searcher import Searcher
from pipelines.runtime.ray.stages import HERE
from pipelines.serving.collections import measuring
from pipelines.serving.indexing import plan_of
from pipelines.serving.searching.engines import opened
from pipelines.settings import Settings, load_settings

RECORDS, QUERIES, ROUNDS = 1_000, 300, 3
MOST = 1.10  # of the time that the English analyser alone takes, of a whole run and of a whole search
ANALYSES = ("english", "words-1")

pytestmark = [pytest.mark.slow, pytest.mark.data, pytest.mark.timeout(3600)]


def settings_of(analysis: str, root: Path) -> Settings:
    return measuring(
        load_settings(assignments=[f"storage.root={root}", f"index.lexical.analysis={analysis}"], environment={})
    )


def seconds_of(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def tell(what: str, plain: float, words: float) -> None:
    sys.stderr.write(f"\n{what:<24} {plain:>9.4f} s, with words {words:>9.4f} s, {words / plain:.3f} times")


@pytest.fixture(scope="module")
def folder(data_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("words")
    with gzip.open(data_root / "nfcorpus" / "corpus.jsonl.gz", "rt") as lines:
        (folder / "corpus.jsonl").write_text("".join(itertools.islice(lines, RECORDS)))
    return folder


@pytest.fixture(scope="module")
def indexing_s(folder: Path) -> Mapping[str, Sequence[float]]:
    """Seconds of whole runs by analysis, in turns; the stores of the last round stay."""
    seconds: dict[str, list[float]] = {name: [] for name in ANALYSES}
    for analysis in ANALYSES * ROUNDS:
        shutil.rmtree(folder / analysis, ignore_errors=True)
        settings = settings_of(analysis, folder / analysis)
        plan, catalog = plan_of(settings, [folder / "corpus.jsonl"]), Catalog(folder / analysis)
        seconds[analysis].append(
            seconds_of(lambda: ingest(plan, catalog, HERE, lambda _: None, clock=time.monotonic))  # noqa: B023
        )
    return seconds


def test_indexing_takes_a_tenth_longer_at_most(indexing_s: Mapping[str, Sequence[float]], folder: Path) -> None:
    """RET-22: of a whole run; what Lucene alone takes is told beside it."""
    plain, words = (statistics.median(indexing_s[name]) for name in ANALYSES)
    generation = Catalog(folder / ANALYSES[0]).pointer().generation
    chunks = folder / ANALYSES[0] / "generations" / str(generation) / "chunks"
    rows = pq.read_metadata(chunks / "contents.parquet").num_rows
    lucene: dict[str, list[float]] = {name: [] for name in ANALYSES}
    for number, analysis in enumerate(ANALYSES * ROUNDS):
        rules = settings_of(analysis, folder).index.lexical
        target = folder / f"lucene-{number}"
        lucene[analysis].append(
            seconds_of(lambda: write_shard(target, lexical_documents(chunks, 0, rows), rules))  # noqa: B023
        )
    alone = [statistics.median(lucene[name]) for name in ANALYSES]
    tell(f"indexing {RECORDS} records", plain, words)
    tell("  Lucene alone", *alone)
    assert words <= MOST * plain


def test_searching_takes_a_tenth_longer_at_most(
    indexing_s: Mapping[str, Sequence[float]], folder: Path, data_root: Path
) -> None:
    """RET-22: of whole searches, query by query; by words alone is told beside it."""
    assert indexing_s
    with gzip.open(data_root / "nfcorpus" / "queries.jsonl.gz", "rt") as lines:
        texts = [json.loads(line)["text"] for line in itertools.islice(lines, QUERIES)]
    queries = [Query(query_id=QueryId(f"q{number}"), text=text) for number, text in enumerate(texts)]
    with ExitStack() as stack:
        searchers = {name: stack.enter_context(opened(settings_of(name, folder / name))) for name in ANALYSES}
        whole = _per_query(searchers, lambda searcher, query: searcher.search(query), queries)
        alone = _per_query(
            searchers,
            lambda searcher, query: searcher.snapshot.generation.lexical.search(query.text, 100),
            queries,
        )
    for what, (plain, words) in {"a search": whole, "  words alone": alone}.items():
        tell(what, plain, words)
    assert whole[1] <= MOST * whole[0]


def _per_query(
    searchers: Mapping[str, Searcher], ask: Callable[[Searcher, Query], object], queries: Sequence[Query]
) -> tuple[float, float]:
    """Median seconds of a query with each analysis, asked in turns, after one round that warms."""
    seconds: dict[str, list[float]] = {name: [] for name in ANALYSES}
    for turn in range(ROUNDS + 1):
        for query in queries:
            for name in ANALYSES[:: 1 if turn % 2 else -1]:
                elapsed = seconds_of(lambda: ask(searchers[name], query))  # noqa: B023
                if turn:
                    seconds[name].append(elapsed)
    plain, words = (statistics.mean(seconds[name]) for name in ANALYSES)
    return plain, words
