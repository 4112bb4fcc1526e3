"""Measures weft on a public benchmark of code search, and by the names that each tree defines; prints the tables.

    python -m tests.support.code_search [TREE …] [--names N] [--seed N] [--set KEY=VALUE …] [--typed]

A tree is a folder of `$WEFT_DATA/codesearch`: `docs` is indexed, `queries.jsonl` are questions, `qrels` the files that
answer them. nDCG@10 is binary and by file. The names are drawn among the functions and types that a tree defines once;
a name counts as found where the first result is the chunk that defines it. `--typed` asks as the command line does
without `-k`. What was returned for each question and name is written to `<storage.root>/evaluation/code-search/`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from weft.app.collections import measuring
from weft.app.indexing import plan_of
from weft.app.indexing import run as index
from weft.app.searching.engines import opened
from weft.cli.reports.indexing import headline
from weft.domain.documents import ContentType
from weft.domain.ids import QueryId
from weft.domain.ranking import MOST_RESULTS, Answer, Query, RankedResult, ResultUnit
from weft.evaluation.measures.metrics import measure
from weft.evaluation.measures.runs import as_ranked, order_of
from weft.indexes.chunk_store import ChunkStore
from weft.retrieval.searcher import Searcher
from weft.runtime.stages import HERE
from weft.runtime.storage.files import write_atomically
from weft.settings import Settings, load_settings

SHOWN = 10
NDCG = "ndcg_at_10"
ALL = "all"
SHORTEST = 4  # characters of a name that is drawn: shorter ones are letters of loops


def measured(name: str, root: Path, settings: Settings, names: int, seed: int, *, typed: bool) -> list[dict[str, Any]]:
    """A row for every question and name of a tree."""
    stored = indexed(name, root / "docs", settings)
    with opened(stored) as searcher:
        questions = list(asked(name, root, searcher, typed=typed))
    chunked = stored.retrieval.model_copy(update={"unit": ResultUnit.CHUNK})
    with opened(stored.model_copy(update={"retrieval": chunked})) as searcher:
        chunks = searcher.snapshot.generation.chunks
        return questions + [found(name, each, searcher, typed=typed) for each in drawn(chunks, names, seed)]


def indexed(name: str, root: Path, settings: Settings) -> Settings:
    """The settings with a store that holds the tree as the code at hand cuts and indexes it."""
    store = folder_of(settings) / name
    stored = settings.model_copy(update={"storage": settings.storage.model_copy(update={"root": str(store)})})
    sys.stderr.write(f"{name}: {headline(index(plan_of(stored, [root]), executor=HERE))}\n")
    return stored


def asked(tree: str, root: Path, searcher: Searcher, *, typed: bool) -> Iterable[dict[str, Any]]:
    """What is returned for each question of the benchmark."""
    qrels: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for line in (root / "qrels" / "test.tsv").read_text("utf-8").splitlines()[1:]:
        query, document, _ = line.split("\t")
        qrels[query][document] = 1
    for line in (root / "queries.jsonl").read_text("utf-8").splitlines():
        question = json.loads(line)
        answer = _answer(searcher, question["text"], question["_id"], typed=typed)
        run = as_ranked(answer.results, SHOWN, document_id=lambda uri: uri.partition("/")[2])
        value = measure({question["_id"]: run}, {question["_id"]: qrels[question["_id"]]})[NDCG][question["_id"]]
        yield {
            "tree": tree,
            "category": question["metadata"]["category"],
            "id": question["_id"],
            "text": question["text"],
            "judged": sorted(qrels[question["_id"]]),
            "pages": order_of(run)[:SHOWN],
            "gap": answer.gap is not None,
            "value": value,
        }


def drawn(chunks: ChunkStore, names: int, seed: int) -> list[tuple[str, str]]:
    """Names that the code of a tree defines in one place alone, and the id of the chunk that holds each definition."""
    code = {facts.uri for facts in chunks.documents() if facts.content_type is ContentType.CODE}
    table = chunks.table("chunks")
    columns = (table[name].to_pylist() for name in ("symbol", "uri", "sequence", "chunk_id", "defines"))
    places: defaultdict[str, list[tuple[bool, int, str, str, str]]] = defaultdict(list)
    for symbol, uri, sequence, chunk_id, defines in zip(*columns, strict=True):
        if symbol and uri in code:
            name = symbol.rpartition(".")[2]
            # Of a function in parts the one with its name, which may stand behind a long comment.
            places[name].append((name not in defines, sequence, symbol, uri, chunk_id))
    once = sorted(
        (name, min(own)[-1])
        for name, own in places.items()
        if len({(symbol, uri) for _, _, symbol, uri, _ in own}) == 1 and len(name) >= SHORTEST
    )
    return sorted(random.Random(seed).sample(once, min(names, len(once))))


def found(tree: str, drawn: tuple[str, str], searcher: Searcher, *, typed: bool) -> dict[str, Any]:
    """What comes first for a name."""
    name, wanted = drawn
    answer = _answer(searcher, name, f"{tree}-{name}", typed=typed)
    return {
        "tree": tree,
        "category": "name",
        "id": f"{tree}-{name}",
        "text": name,
        "pages": [_place(result) for result in answer.results[:3]],
        "gap": answer.gap is not None,
        "value": float(bool(answer.results) and answer.results[0].chunk_id == wanted),
    }


def _answer(searcher: Searcher, text: str, name: str, *, typed: bool) -> Answer:
    query = Query(text=text, query_id=QueryId(name), k=MOST_RESULTS if typed else 100, adaptive=typed)
    return searcher.search(query)


def _place(result: RankedResult) -> str:
    return f"{result.uris[0]}:{result.start_line} {result.kind} {result.symbol or ''}"


def tables(rows: Sequence[Mapping[str, Any]]) -> list[Table]:
    """nDCG@10 by tree and category, and for how many names their definition comes first."""
    questions, names = ([row for row in rows if (row["category"] == "name") is named] for named in (False, True))
    ranking, first = Table("tree", box=None), Table("tree", "definition first", "gaps", box=None)
    categories = sorted({row["category"] for row in questions})
    for column in ("questions", "nDCG@10", *categories):
        ranking.add_column(column)
    for tree in [*dict.fromkeys(row["tree"] for row in rows), ALL]:
        own = [row for row in questions if tree in {row["tree"], ALL}]
        of = [[row for row in own if row["category"] == category] for category in categories]
        ranking.add_row(
            tree, str(len(own)), *(f"{_mean(some):.3f} ({len(some)})" if some else "" for some in (own, *of))
        )
        theirs = [row for row in names if tree in {row["tree"], ALL}]
        gaps = Counter(row["gap"] for row in theirs)[True]
        first.add_row(tree, f"{sum(row['value'] for row in theirs):.0f} of {len(theirs)}", str(gaps))
    return [ranking, first]


def _mean(rows: Sequence[Mapping[str, Any]]) -> float:
    return sum(row["value"] for row in rows) / len(rows)


def folder_of(settings: Settings) -> Path:
    """Where rows are written, and the stores they were measured on."""
    return Path(settings.storage.root) / "evaluation" / "code-search"


def main() -> None:
    """Run on arguments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", nargs="*", metavar="TREE")
    parser.add_argument("--names", type=int, default=40, metavar="N", help="names drawn of each tree, at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--typed", action="store_true", help="ask as the command line does without -k")
    given = parser.parse_args()
    settings = measuring(load_settings(assignments=given.set))
    data = Path(os.environ["WEFT_DATA"]) / "codesearch"
    rows = []
    for tree in given.trees or sorted(path.name for path in data.iterdir() if path.is_dir()):
        own = measured(tree, data / tree, settings, given.names, given.seed, typed=given.typed)
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in own)
        write_atomically(folder_of(settings) / f"{tree}.jsonl", lines.encode())
        rows += own
    for table in tables(rows):
        Console(width=150).print(table)


if __name__ == "__main__":
    main()
