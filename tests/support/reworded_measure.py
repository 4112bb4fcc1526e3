"""Measures what praise does for freely reworded questions, and for look-alikes, and prints the table (LRN-19).

    python -m tests.support.reworded_measure          WEFT__EMBEDDING__MODEL says by which encoder

Each documentation has questions with the heading that answers them, each said again in quite other words, and beside
each one that shares its words and asks for something else. Three people praise the right passage of every question at
once. Documentation is fetched as for `real_measure`, and indexed below `<storage.root>/evaluation/reworded`.
"""

from __future__ import annotations

import csv
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from tests.support.real_measure import DOCUMENTATION
from tests.support.real_questions import fetched
from tests.support.words_spoken import a_word
from weft.app.collections import measuring
from weft.app.indexing import plan_of
from weft.app.indexing import run as index
from weft.app.searching.engines import load_engines, searching, source_of
from weft.cli.reports.indexing import headline
from weft.domain.ids import QueryId
from weft.domain.ranking import Query, RankedResult
from weft.learning.beliefs import read_beliefs
from weft.learning.evidence import Evidence, day_of
from weft.retrieval.searcher import Searcher
from weft.retrieval.settings import ResultUnit
from weft.retrieval.snapshot.snapshot import OneSnapshot
from weft.runtime.ray.cluster import connect
from weft.runtime.ray.stages import ON_CLUSTER
from weft.settings import Settings, load_settings

COMMITTED = Path(__file__).resolve().parents[1] / "evaluation" / "reworded"
PEOPLE = ("ada", "bob", "cleo")
DEPTH = 50


class Reworded(NamedTuple):
    """A question, the heading that answers it, the same in other words, and a look-alike with its own heading."""

    question: str
    heading: str
    reworded: str
    look_alike: str
    other_heading: str


class Passage(NamedTuple):
    """What answers a question: a content, and the page that it stands on."""

    content: str
    page: str


class Standing(NamedTuple):
    """How many questions have the right passage first, or its page; of look-alikes what is praised, or their own."""

    asked_again: int
    reworded: int
    reworded_page: int
    praised_for_look_alikes: int
    own_for_look_alikes: int


class Measured(NamedTuple):
    """Of so many questions, before and after praise."""

    questions: int
    before: Standing
    after: Standing


def measured(folder: Path, settings: Settings) -> Measured:
    """What praise does for the questions of a folder.

    Raises:
        UnreachableError: Its documentation is not at hand and cannot be fetched.
    """
    pinned = json.loads((folder / "source.json").read_text("utf-8"))
    root = Path(settings.storage.root) / "evaluation" / "reworded" / folder.name
    stored = settings.model_copy(update={"storage": settings.storage.model_copy(update={"root": str(root)})})
    passages = stored.model_copy(update={"retrieval": stored.retrieval.model_copy(update={"unit": ResultUnit.CHUNK})})
    connect(settings.cluster)
    documentation = fetched(pinned, DOCUMENTATION) / pinned["docs"]
    sys.stderr.write(f"{folder.name}: {headline(index(plan_of(stored, [documentation]), executor=ON_CLUSTER))}\n")
    with (folder / "questions.tsv").open(encoding="utf-8", newline="") as file:
        rows = [Reworded(*row) for row in list(csv.reader(file, delimiter="\t"))[1:]]
    engines = load_engines(stored)
    snapshot, now = source_of(stored, precisions=engines.precisions).take(None), time.time()
    with searching(passages, engines, OneSnapshot(snapshot)) as searcher:
        right = [_right_passage(searcher, row) for row in rows]
    with searching(stored, engines, OneSnapshot(snapshot)) as searcher:
        before = standing(searcher, rows, right)
    praise = Evidence.sum(
        a_word(passage.content, row.question, who, day=day_of(now) - 1 - at % 4, ms=at)
        for at, (row, passage) in enumerate(zip(rows, right, strict=True))
        for who in PEOPLE
    )
    praised = replace(snapshot, beliefs=read_beliefs(settings.priors, praise, now=now))
    with searching(stored, engines, OneSnapshot(praised)) as searcher:
        return Measured(len(rows), before, standing(searcher, rows, right))


def standing(searcher: Searcher, rows: Sequence[Reworded], right: Sequence[Passage]) -> Standing:
    """What stands first for every question."""
    firsts = {
        name: [ranked(searcher, text(row))[0] for row in rows]
        for name, text in {
            "again": lambda row: row.question,
            "reworded": lambda row: row.reworded,
            "look_alike": lambda row: row.look_alike,
        }.items()
    }

    def count(name: str, is_right: Callable[[int, RankedResult], bool]) -> int:
        return sum(is_right(at, first) for at, first in enumerate(firsts[name]))

    return Standing(
        asked_again=count("again", lambda at, first: first.content_hash == right[at].content),
        reworded=count("reworded", lambda at, first: first.content_hash == right[at].content),
        reworded_page=count("reworded", lambda at, first: first.uris[0] == right[at].page),
        praised_for_look_alikes=count("look_alike", lambda at, first: first.content_hash == right[at].content),
        own_for_look_alikes=count("look_alike", lambda at, first: rows[at].other_heading in first.heading_path),
    )


def ranked(searcher: Searcher, text: str) -> Sequence[RankedResult]:
    """Passages for a question that somebody asks who said nothing of it."""
    return searcher.search(Query(text=text, query_id=QueryId("reworded"), k=DEPTH, principal="zoe")).results


def _right_passage(searcher: Searcher, row: Reworded) -> Passage:
    """The first one below the heading that answers: of what the question finds, or else the heading itself."""
    results = chain.from_iterable(ranked(searcher, text) for text in (row.question, row.heading))
    return next(Passage(each.content_hash, each.uris[0]) for each in results if row.heading in each.heading_path)


def table(measures: Mapping[str, Measured]) -> Table:
    """A row for each documentation."""
    shown = Table("first", "questions", "asked again", "in other words", "their page", "look-alikes: praised", "own")
    for name, each in measures.items():
        changes = (f"{before} → {after}" for before, after in zip(each.before, each.after, strict=True))
        shown.add_row(name, str(each.questions), *changes)
    return shown


def main() -> dict[str, Measured]:
    """Measure every documentation, and print."""
    settings = measuring(load_settings())
    measures = {folder.name: measured(folder, settings) for folder in sorted(COMMITTED.iterdir()) if folder.is_dir()}
    Console(width=120).print(table(measures))
    return measures


if __name__ == "__main__":
    main()
