"""What benchmarks of searches share: a store of many chunks, questions about them, and how they are asked."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.conftest import ROOT
from tests.support.search_corpus import Question
from weft.domain.ids import QueryId
from weft.domain.ranking import Answer, Query
from weft.embedding.encoders.encoder import load_encoder
from weft.retrieval.searcher import Searcher
from weft.settings import Settings

CORES = os.cpu_count() or 1
QUERIES, WARM, ROUNDS, DEPTH = 200, 40, 4, 10
"""Queries of one measurement, and to warm with; how often all are asked for that; results of each."""
COMPARED = 1000
"""Queries of one comparison of two versions; half of those from which on processes are started for it."""
P95_MS = 60.0

RIVALS = ROOT / "tests" / "support" / "rivals"
RIVAL_PYTHON = ROOT / ".venv-bench" / "bin" / "python"
"""What others are run by; `make bench-search` and `make bench-serve` make it."""

Line = Callable[[str, str, str], None]
"""Adds a line to the table: what was measured, what it came to, and what it should be."""


@dataclass(frozen=True)
class Corpus:
    """A store, and questions about what it holds."""

    settings: Settings
    questions: Sequence[Question]
    others: Sequence[Question]

    @property
    def queries(self) -> list[Query]:
        return asking(self.questions)

    def drawn(self, number: int) -> list[Query]:
        """Other queries, by the number of their draw."""
        drawn = np.random.default_rng(5).permutation(len(self.others))
        return asking([self.others[at] for at in np.roll(drawn, -number * COMPARED)[:COMPARED]])


def asking(questions: Sequence[Question]) -> list[Query]:
    return [Query(text=asked.text, query_id=QueryId(f"q{number}"), k=DEPTH) for number, asked in enumerate(questions)]


def asked_one_by_one(searcher: Searcher, queries: Sequence[Query]) -> tuple[list[Answer], np.ndarray, float]:
    """Answers, milliseconds of each, and seconds of processor time of all."""
    answers, elapsed = [], []
    spent = time.process_time()
    for query in queries:
        started = time.perf_counter()
        answers.append(searcher.search(query))
        elapsed.append((time.perf_counter() - started) * 1e3)
    return answers, np.array(elapsed), time.process_time() - spent


def found_rate(answers: Sequence[Answer], questions: Sequence[Question]) -> float:
    """Share of questions whose module stands among the results."""
    hits = [asked.uri in _uris(answer) for answer, asked in zip(answers, questions, strict=True)]
    return sum(hits) / len(hits)


def _uris(answer: Answer) -> set[str]:
    return {uri.partition("/")[2] for result in answer.results for uri in result.uris}


def handed_over(corpus: Corpus, searcher: Searcher, folder: Path) -> None:
    """The same texts, vectors and questions for others to index."""
    generation = searcher.snapshot.generation
    rows = range(len(generation.contents))
    contents = generation.chunks.contents(rows)
    with (folder / "corpus.jsonl").open("w", encoding="utf-8") as file:
        for content in contents:
            text = content.text.encode("utf-8", "replace").decode()
            file.write(json.dumps({"id": str(content.row), "contents": text}) + "\n")
    uris = [content.occurrences[0].uri.partition("/")[2] for content in contents]
    (folder / "uris.json").write_text(json.dumps(uris))
    encoder = load_encoder(corpus.settings.embedding)
    np.save(folder / "vectors.npy", generation.dense(encoder.name).vectors(rows))
    (folder / "questions.json").write_text(json.dumps([asked.text for asked in corpus.questions]))
