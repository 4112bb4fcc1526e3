"""RET-22: what words as people write and type them cost, as ratios within one run, over a collection."""

from __future__ import annotations

import gzip
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from jobs import reindex
from jobs.evaluate import measuring
from pipelines.domain.ids import QueryId
from pipelines.domain.ranking import Query
from pipelines.evaluation.measures.beir import read_dataset
from pipelines.retrieval.searcher import Searcher
from pipelines.runtime.ray.stages import HERE
from pipelines.serving.searching.engines import opened
from pipelines.settings import Settings, load_settings
from tests.support.search_bench import Line

pytestmark = [pytest.mark.slow, pytest.mark.data, pytest.mark.timeout(7200)]

ANALYSES = ("english", "words-1")
TEXTS, QUERIES, TURNS = 1_000, 100, 5


def test_words_cost_a_tenth_at_most(data_root: Path, tmp_path: Path, line: Line) -> None:
    """RET-22: of the processor time of indexing texts from nothing, and of searches of all channels."""
    collection = data_root / "nfcorpus"
    if not collection.is_dir():
        pytest.skip(f"no collection nfcorpus in {data_root}")
    texts = tmp_path / "texts.jsonl"
    texts.write_text("".join(first_lines(read_dataset(collection, "dev").corpus, TEXTS)))
    warm = of_store(tmp_path / "warm", "english")
    seconds_of_indexing(warm, texts)  # models, the JVM and compiled code are there from now on
    indexing = {each: seconds_of_indexing(of_store(tmp_path / each, each), texts) for each in ANALYSES}
    queries = [judged.text for judged in read_dataset(collection, "dev").queries[:QUERIES]]
    searching = dict.fromkeys(ANALYSES, 0.0)
    with (
        opened(of_store(tmp_path / "english", "english")) as english,
        opened(of_store(tmp_path / "words-1", "words-1")) as words,
    ):
        searchers = dict(zip(ANALYSES, (english, words), strict=True))
        for turn in range(TURNS + 1):  # the first warms up
            for name, searcher in searchers.items():
                searching[name] += seconds_of_searching(searcher, queries) if turn else 0.0
                assert turn or not any(searcher.search(asked(text)).failed_channels for text in queries[:3])
    for what, seconds in (("indexing", indexing), ("searching", searching)):
        ratio = seconds["words-1"] / seconds["english"]
        line(
            what,
            f"{seconds['english']:.1f} s by the analyser alone, now {seconds['words-1']:.1f} s: {ratio:.3f}",
            "<= 1.10",
        )
        assert ratio <= 1.10


def first_lines(path: Path, most: int) -> Sequence[str]:
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        return [line for line, _ in zip(lines, range(most), strict=False)]


def of_store(store: Path, analysis: str) -> Settings:
    assignments = [f"storage.root={store}", f"index.lexical.analysis={analysis}"]
    return measuring(load_settings([], assignments, environment={}))


def seconds_of_indexing(settings: Settings, source: Path) -> float:
    """Processor time, of all threads and of the JVM; nothing is cached in a store of its own."""
    began = time.process_time()
    assert reindex.run(reindex.plan_of(settings, [source]), watch=lambda _: None, executor=HERE).published
    return time.process_time() - began


def asked(text: str) -> Query:
    return Query(text=text, query_id=QueryId("q"), k=10)


def seconds_of_searching(searcher: Searcher, queries: Sequence[str]) -> float:
    began = time.process_time()
    for text in queries:
        searcher.search(asked(text))
    return time.process_time() - began
