"""What people said of a store's answers, for other tools: judgements in BEIR's layout, and clicks by rank (OPS-5b)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from weft.app.log_evaluation import Logged
from weft.catalog.catalog import Catalog
from weft.domain.errors import SourceError
from weft.domain.ids import ContentHash
from weft.evaluation.log.questions import judged
from weft.evaluation.queries.reader import LoggedQuery

SPLIT = "log"
"""The name of the split that is written."""

CLICKS = "clicks.tsv"
_COLUMNS = ("rank", "shown", "selected", "right", "wrong")


def clicks_by_rank(queries: Iterable[LoggedQuery]) -> list[dict[str, int]]:
    """Of every rank, how often something stood there, and how often it was opened, called right, and called wrong.

    One answer counts once, whatever many people did. That is what click models are fitted on.
    """
    counts: dict[str, Counter[int]] = {name: Counter() for name in _COLUMNS}
    for query in queries:
        done = {
            "selected": {each.content_hash for each in query.outcomes if each.kind == "selection"},
            "right": {each.content_hash for each in query.outcomes if each.kind == "explicit" and each.value > 0.0},
            "wrong": {each.content_hash for each in query.outcomes if each.kind == "explicit" and each.value < 0.0},
        }
        for result in query.results:
            counts["shown"][result.rank] += 1
            for name, contents in done.items():
                counts[name][result.rank] += result.content_hash in contents
    return [{"rank": rank, **{name: counts[name][rank] for name in _COLUMNS[1:]}} for rank in sorted(counts["shown"])]


def export(logged: Logged, folder: Path) -> dict[str, Any]:
    """Write the log's questions, its judgements, the contents that these name, and clicks by rank; how many of each.

    Judgements of contents that are not live any more are left out, and counted.

    Raises:
        SourceError: No logged question has a judgement.
        NothingPublishedError: The store has no generation.
    """
    qrels = judged(logged.queries, logged.grades)
    if not qrels:
        raise SourceError(
            f"{logged.root}: expected judgements of logged queries, found none: `weft queries collect` reads feedback"
        )
    named = sorted({content for grades in qrels.values() for content in grades})
    with closing(Catalog(logged.root).open_live()) as generation:
        chunks = generation.chunks
        rows = {content: chunks.row_of(ContentHash(content)) for content in named}
        live = {content: row for content, row in rows.items() if row is not None}
        corpus = [
            {"_id": each.content_hash, "title": each.occurrences[0].title or "", "text": each.text}
            for each in chunks.contents(list(live.values()))
        ]
    grades_by_query = {
        query: {content: grade for content, grade in each.items() if content in live} for query, each in qrels.items()
    }
    texts = {query.query_id: query.text for query in logged.queries if grades_by_query.get(query.query_id)}
    clicks = clicks_by_rank(logged.queries)
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    _write_lines(folder / "corpus.jsonl", map(json.dumps, corpus))
    _write_lines(folder / "queries.jsonl", (json.dumps({"_id": name, "text": text}) for name, text in texts.items()))
    judgements = [
        (query, content, grade) for query in texts for content, grade in sorted(grades_by_query[query].items())
    ]
    _write_table(folder / "qrels" / f"{SPLIT}.tsv", ("query-id", "corpus-id", "score"), judgements)
    _write_table(folder / CLICKS, _COLUMNS, (tuple(each.values()) for each in clicks))
    gone = sum(len(each) for each in qrels.values()) - len(judgements)
    return {
        "queries": len(texts),
        "judgements": len(judgements),
        "gone": gone,
        "contents": len(corpus),
        "clicks": clicks,
    }


def _write_table(path: Path, columns: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    _write_lines(path, ["\t".join(columns), *("\t".join(map(str, row)) for row in rows)])


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
