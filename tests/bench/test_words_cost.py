"""RET-22: what words as people write and type them cost, as shares of indexing and of searching, within one run."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from tests.support.search_bench import Line
from weft.app.searching.engines import opened
from weft.cli.commands import reindex
from weft.cli.reports.evaluate import measuring
from weft.domain.documents import ContentType
from weft.domain.ids import QueryId
from weft.domain.ranking import Query
from weft.evaluation.measures.beir import read_dataset
from weft.indexes.text.build import lexical_document, write_shard
from weft.indexes.text.lexical import open_lexical
from weft.runtime.stages import HERE
from weft.settings import load_settings

pytestmark = [pytest.mark.slow, pytest.mark.data, pytest.mark.timeout(7200)]

TEXTS, QUERIES, TURNS = 1_000, 100, 5


def test_words_cost_a_tenth_at_most(data_root: Path, tmp_path: Path, line: Line) -> None:
    """RET-22: of the processor time of indexing texts from nothing, and of searches of all channels.

    What the parts cost that know of words is set beside the whole, the quickest of several turns of each: the rest is
    the same, and what else the machine does weighs more than the difference.
    """
    collection = data_root / "nfcorpus"
    if not collection.is_dir():
        pytest.skip(f"no collection nfcorpus in {data_root}")
    dataset = read_dataset(collection, "dev")
    source, queries = tmp_path / "texts.jsonl", [judged.text for judged in dataset.queries[:QUERIES]]
    lines = first_lines(dataset.corpus, TEXTS)
    source.write_text("".join(lines))
    texts = [json.loads(each)["text"] for each in lines]
    settings = measuring(load_settings([], [f"storage.root={tmp_path / 'store'}"], environment={}))
    whole = seconds(lambda: reindex.run(reindex.plan_of(settings, [source]), watch=lambda _: None, executor=HERE))
    with opened(settings) as searcher:
        asking = min(seconds(lambda: [searcher.search(asked(text)) for text in queries]) for _ in range(TURNS))
    english, words = (parts(tmp_path / each, each, texts, queries) for each in ("english", "words-1"))
    for what, total, less, more in zip(("indexing", "searching"), (whole, asking), english, words, strict=True):
        others = total - more + less
        line(what, f"{more - less:.2f} s beside {others:.1f} s, {(more - less) / others:.3f}", "<= .10")
        assert more - less <= 0.1 * others


def parts(folder: Path, analysis: str, texts: Sequence[str], queries: Sequence[str]) -> tuple[float, float]:
    """Seconds that it takes to write texts to Lucene, and to search them by words."""
    settings = load_settings([], [f"index.lexical.analysis={analysis}"], environment={}).index.lexical
    facts = {"title": None, "content_type": ContentType.TEXT, "triggers": ()}
    chunks = [{"text": text, "sequence": 0, "uri": "text", "defines": (), "parent_id": None} for text in texts]

    def write(turn: int) -> None:
        documents = ((row, lexical_document(chunk, facts)) for row, chunk in enumerate(chunks))
        write_shard(folder / str(turn), documents, settings)

    writing = min(seconds(partial(write, turn)) for turn in range(TURNS))
    with closing(open_lexical([folder / "0"], settings, rows=len(texts))) as index:
        return writing, min(seconds(lambda: [index.search(text, 100) for text in queries]) for _ in range(TURNS))


def first_lines(path: Path, most: int) -> Sequence[str]:
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        return [line for line, _ in zip(lines, range(most), strict=False)]


def asked(text: str) -> Query:
    return Query(text=text, query_id=QueryId("q"), k=10)


def seconds(action: Callable[[], object]) -> float:
    """Processor time that it takes, of all threads and of the JVM."""
    began = time.process_time()
    action()
    return time.process_time() - began
