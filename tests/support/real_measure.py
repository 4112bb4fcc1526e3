"""Measures weft on questions that people really asked, beside plain baselines in the same run, and prints the tables.

    python -m tests.support.real_measure [NAME …] [--no-entities] [--set KEY=VALUE …] [--kept] [--against FOLDER]

Without names every collection is measured. What was asked, judged, returned and shown for each question is written to
`<storage.root>/evaluation/real-questions/NAME.jsonl`, for who looks into losses; `--kept` prints the tables of what is
there and measures nothing. `--against` compares weft with a copy of such files, made before a change. Documentation is
kept below `~/.cache/weft/documentation`.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.support.plain_search import PlainBm25, PlainDense, first_said, fused, pages_of, sections_of
from tests.support.real_questions import RealCollection, RealQuestion, folders, read_collection
from weft.app.collections import measuring
from weft.app.indexing import plan_of
from weft.app.indexing import run as index
from weft.app.searching.engines import opened
from weft.cli.reports.indexing import headline
from weft.domain.ids import QueryId
from weft.domain.ranking import Answer, Channel, Query, RankedResult
from weft.evaluation.measures.compare import compare
from weft.evaluation.measures.metrics import measure
from weft.evaluation.measures.runs import Run, as_ranked, order_of
from weft.evaluation.measures.significance import Half, half_of
from weft.retrieval.settings import FusionMode
from weft.runtime.ray.cluster import connect
from weft.runtime.ray.stages import ON_CLUSTER
from weft.runtime.storage.files import write_atomically
from weft.settings import Settings, load_settings

DOCUMENTATION = Path("~/.cache/weft/documentation").expanduser()
SHOWN = 10
"""Pages that a reader looks at."""
PLAIN = ("BM25", "MiniLM", "plain RRF")
WEFT, OWN_RRF = "weft", "weft RRF"
SYSTEMS = (*PLAIN, OWN_RRF, WEFT)
MOST_CHANGED = 5
WIDTH = 170
Rows = Sequence[Mapping[str, Any]]
"""A row for every question of some collections."""
MEASURES = {"ndcg_at_10": "nDCG@10", "hit_rate_at_1": "hit@1", "mrr_at_10": "MRR@10"}


@dataclass(frozen=True)
class Passage:
    """What was shown of a page: its first line, and whether a heading that answers stands above it (None: unjudged)."""

    page: str
    line: int
    heading_path: tuple[str, ...]
    right: bool | None


@dataclass(frozen=True)
class Measured:
    """Every system on one collection.

    Attributes:
        runs: Pages returned, by system.
        passages: What weft showed of its first pages, by question.
        gaps: Questions whose answer says that nothing found is likely to answer.
    """

    collection: RealCollection
    runs: Mapping[str, Run]
    passages: Mapping[str, Sequence[Passage]]
    gaps: frozenset[str]


def measured(collection: RealCollection, settings: Settings) -> Measured:
    """Index a documentation, unless that was done before, and ask every system every question."""
    stored = indexed(collection, settings)
    weft, answers = asked(collection, stored)
    own = {"channels": (Channel.DENSE, Channel.LEXICAL), "fusion": FusionMode.RRF}
    own_rrf, _ = asked(collection, stored.model_copy(update={"retrieval": settings.retrieval.model_copy(update=own)}))
    runs = {**plain_runs(collection), OWN_RRF: own_rrf, WEFT: weft}
    passages = {
        question.question_id: passages_of(collection, question, answers[question.question_id])
        for question in collection.questions
    }
    gaps = frozenset(name for name, answer in answers.items() if answer.gap is not None)
    return Measured(collection, runs, passages, gaps)


def indexed(collection: RealCollection, settings: Settings) -> Settings:
    """The settings with a store that holds the documentation as the code at hand cuts and indexes it."""
    root = folder_of(settings) / collection.name
    stored = settings.model_copy(update={"storage": settings.storage.model_copy(update={"root": str(root)})})
    connect(settings.cluster)
    sys.stderr.write(
        f"{collection.name}: {headline(index(plan_of(stored, [collection.documentation]), executor=ON_CLUSTER))}\n"
    )
    return stored


def asked(collection: RealCollection, settings: Settings) -> tuple[Run, dict[str, Answer]]:
    """Pages that weft returns for every question, and its answers."""
    answers = {}
    with opened(settings) as searcher:
        for question in collection.questions:
            name = question.question_id
            query = Query(text=question.text, query_id=QueryId(name), k=settings.evaluation.depth)
            answers[name] = searcher.search(query)
    run = {
        name: as_ranked(answer.results, settings.evaluation.depth, document_id=lambda uri: page_of(collection, uri))
        for name, answer in answers.items()
    }
    return run, answers


def page_of(collection: RealCollection, uri: str) -> str:
    """The page that a document of the documentation is."""
    return (collection.documentation.parent / uri).relative_to(collection.root).as_posix()


def plain_runs(collection: RealCollection) -> dict[str, Run]:
    """Pages that the plain baselines return for every question."""
    pages = pages_of(collection.root, collection.documentation)
    # The baseline is MiniLM, whatever weft is measured with.
    bm25, dense = PlainBm25(pages), PlainDense(pages, load_settings(environment={}).embedding, DOCUMENTATION)
    runs: dict[str, dict[str, Mapping[str, float]]] = {name: {} for name in PLAIN}
    for question in collection.questions:
        both = bm25(question.text), dense(question.text)
        for name, ranked in zip(PLAIN, (*both, fused(both)), strict=True):
            runs[name][question.question_id] = ranked
    return dict(runs)


def passages_of(collection: RealCollection, question: RealQuestion, answer: Answer) -> list[Passage]:
    """What was shown of the first pages, and whether it starts in a section that answers."""
    shown: dict[str, RankedResult] = {}
    for result in answer.results:
        for uri in result.uris:
            shown.setdefault(page_of(collection, uri), result)
    return [
        Passage(page, result.start_line, result.heading_path, _right(collection, question, page, result.start_line))
        for page, result in list(shown.items())[:SHOWN]
    ]


def _right(collection: RealCollection, question: RealQuestion, page: str, line: int) -> bool | None:
    headings = question.headings.get(page, ())
    if not headings:
        return None
    text = (collection.root / page).read_text("utf-8")
    sections = sections_of(page, text)
    begin = first_said(text.splitlines(), sections, line)
    return any(each.heading in headings and each.first <= begin <= each.end for each in sections)


def rows_of(result: Measured, settings: Settings) -> Iterable[dict[str, Any]]:
    """A row for every question, with all that is needed to look into it."""
    values = {system: measure(run, result.collection.qrels) for system, run in result.runs.items()}
    for question in result.collection.questions:
        name = question.question_id
        yield {
            "collection": result.collection.name,
            "id": name,
            "half": half_of(name, settings.evaluation.seed).value,
            "text": question.text,
            "kind": question.kind,
            "judged": {page: [grade, *question.headings[page]] for page, grade in question.grades.items()},
            "gap": name in result.gaps,
            "values": {
                system: {measure_name: by_measure[measure_name][name] for measure_name in MEASURES}
                for system, by_measure in values.items()
                if question.answerable
            },
            "pages": {system: order_of(run[name])[:SHOWN] for system, run in result.runs.items()},
            "passages": [dataclasses.asdict(passage) for passage in result.passages[name]],
        }


def tables(rows: Rows, settings: Settings) -> list[Table]:
    """By collection and half: how systems rank, and what weft's answers show and say."""
    parts = _parts(rows)
    return [_ranking(parts, settings), _answers(parts)]


def _ranking(parts: Mapping[str, Rows], settings: Settings) -> Table:
    table = Table("documentation", "questions", "measure", *SYSTEMS, "weft − best plain", box=None)
    for name, rows in parts.items():
        judged = [row for row in rows if row["values"]]
        if not judged:
            continue
        for at, (key, label) in enumerate(MEASURES.items()):
            by_system = {system: {row["id"]: row["values"][system][key] for row in judged} for system in SYSTEMS}
            means = {system: sum(values.values()) / len(judged) for system, values in by_system.items()}
            best = max(PLAIN, key=lambda system: means[system])
            change = compare(by_system[best], by_system[WEFT], settings.evaluation).change
            table.add_row(
                *((name, str(len(judged))) if at == 0 else ("", "")),
                label,
                *(f"{means[system]:.3f}" for system in SYSTEMS),
                f"{change.mean:+.3f} ({change.low:+.3f} … {change.high:+.3f}) {best}",
            )
    return table


def _answers(parts: Mapping[str, Rows]) -> Table:
    headings = ("right passage, page among ten", "page first", "marked: unanswerable", "answerable")
    table = Table("documentation", *headings, box=None)
    for name, rows in parts.items():
        among = [p["right"] for row in rows for p in row["passages"] if p["right"] is not None]
        first = [p["right"] for row in rows for p in row["passages"][:1] if p["right"] is not None]
        without = [row["gap"] for row in rows if not row["values"]]
        answered = [row["gap"] for row in rows if row["values"]]
        table.add_row(name, *(_share(some) for some in (among, first, without, answered)))
    return table


def _share(values: Sequence[bool]) -> str:
    return f"{sum(values)} of {len(values)}"


def changes(before: Rows, after: Rows, settings: Settings) -> Table:
    """What changed for weft since other rows were written, paired by question, and which questions changed most."""
    table = Table("documentation", "questions", "before", "after", "change of nDCG@10", "most changed", box=None)
    old = {row["id"]: _own(row) for row in before if row["values"]}
    for name, rows in _parts([row for row in after if row["id"] in old]).items():
        new = {row["id"]: _own(row) for row in rows if row["values"]}
        if not new:
            continue
        then = {query: old[query] for query in new}
        change = compare(then, new, settings.evaluation).change
        by_size = sorted(new, key=lambda query: -abs(new[query] - then[query]))[:MOST_CHANGED]
        most = ", ".join(f"{query} {new[query] - then[query]:+.2f}" for query in by_size if new[query] != then[query])
        means = (f"{sum(values.values()) / len(new):.3f}" for values in (then, new))
        shown = f"{change.mean:+.3f} ({change.low:+.3f} … {change.high:+.3f})"
        table.add_row(name, str(len(new)), *means, shown, most)
    return table


def _own(row: Mapping[str, Any]) -> float:
    return float(row["values"][WEFT]["ndcg_at_10"])


def _parts(rows: Rows) -> dict[str, list[Mapping[str, Any]]]:
    """Rows by what a table has a line for: every documentation, both halves, and all."""
    parts: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        parts.setdefault(row["collection"], []).append(row)
    for half in Half:
        parts[f"all, {half.value}"] = [row for row in rows if row["half"] == half.value]
    return {**parts, "all": list(rows)}


def folder_of(settings: Settings) -> Path:
    """Where rows are written, and the stores they were measured on."""
    return Path(settings.storage.root) / "evaluation" / "real-questions"


def kept(folder: Path, names: Sequence[str]) -> list[dict[str, Any]]:
    """Rows that were written to a folder."""
    paths = [path for path in sorted(folder.glob("*.jsonl")) if not names or path.stem in names]
    return [json.loads(line) for path in paths for line in path.read_text("utf-8").splitlines()]


def report(names: Sequence[str], settings: Settings, data_root: Path) -> list[dict[str, Any]]:
    """Measure collections, write a file of each with a row per question, and print the tables."""
    rows = []
    for name, folder in folders(data_root).items():
        if not names or name in names:
            result = list(rows_of(measured(read_collection(folder, DOCUMENTATION), settings), settings))
            path = folder_of(settings) / f"{name}.jsonl"
            write_atomically(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in result).encode())
            rows += result
    show(tables(rows, settings))
    return rows


def show(printed: Sequence[Table]) -> None:
    """Print tables, wide enough for their rows."""
    for table in printed:
        Console(width=WIDTH).print(table)


def main() -> None:
    """Run on arguments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--no-entities", action="store_true", help="index without entities, several times as fast")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--kept", action="store_true", help="measure nothing, print what is there")
    parser.add_argument("--against", type=Path, metavar="FOLDER", help="a copy of the rows from before a change")
    given = parser.parse_args()
    settings = measuring(loaded := load_settings(assignments=given.set))
    if not given.no_entities:
        settings = settings.model_copy(update={"extraction": loaded.extraction})
    if given.kept:
        show(tables(rows := kept(folder_of(settings), given.names), settings))
    else:
        rows = report(given.names, settings, Path(os.environ["WEFT_DATA"]))
    if given.against:
        show([changes(kept(given.against, given.names), rows, settings)])


if __name__ == "__main__":
    main()
