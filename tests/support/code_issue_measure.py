"""Measures weft on issues whose fix names the file, beside plain BM25 in the same run, and prints the table.

    python -m tests.support.code_issue_measure [NAME …] [--set KEY=VALUE …]

A tree is a folder of `tests/evaluation/realcode`; without names every tree is measured. nDCG@10 is binary and by file.
BM25 ranks windows of 40 lines, with identifiers split and the words of the path added. Code is kept below
`~/.cache/weft/code`, stores as for `code_search`, and what was returned for each question is written to
`<storage.root>/evaluation/code-issues/NAME.jsonl`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.support.code_issues import CodeTree, Part, code_terms, read_tree, trees, windows_of
from tests.support.code_search import indexed
from tests.support.plain_search import PassageBm25
from tests.support.real_measure import MEASURES, SHOWN, WIDTH, asked
from weft.app.collections import measuring
from weft.evaluation.measures.compare import HEADLINE, compare
from weft.evaluation.measures.metrics import measure
from weft.evaluation.measures.runs import order_of
from weft.runtime.storage.files import write_atomically
from weft.settings import Settings, load_settings

CODE = Path("~/.cache/weft/code").expanduser()
WEFT, BM25 = "weft", "BM25"
SYSTEMS = (WEFT, BM25)
ALL = "all"
Rows = Sequence[Mapping[str, Any]]


def measured(tree: CodeTree, settings: Settings) -> Iterable[dict[str, Any]]:
    """A row for every question of a tree."""
    collection = tree.collection
    weft, answers = asked(collection, indexed(collection.name, collection.root, settings))
    bm25 = PassageBm25(list(windows_of(collection.root)), code_terms)
    runs = {WEFT: weft, BM25: {each.question_id: bm25(each.text) for each in collection.questions}}
    values = {system: measure(run, collection.qrels) for system, run in runs.items()}
    for question in collection.questions:
        name = question.question_id
        yield {
            "tree": collection.name,
            "part": tree.part.value,
            "id": name,
            "kind": question.kind,
            "text": question.text,
            "judged": sorted(question.grades),
            "gap": answers[name].gap is not None,
            "values": {system: {key: of[key][name] for key in MEASURES} for system, of in values.items()},
            "pages": {system: order_of(run[name])[:SHOWN] for system, run in runs.items()},
        }


def table_of(rows: Rows, settings: Settings) -> Table:
    """By tree, tuned and held out, and over all: how both rank, and how they differ, paired by question."""
    table = Table("tree", "questions", "measure", *SYSTEMS, "weft − BM25", "better, worse", box=None)
    for name, part in _parts(rows).items():
        for at, (key, label) in enumerate(MEASURES.items()):
            by_system = {system: {row["id"]: row["values"][system][key] for row in part} for system in SYSTEMS}
            difference = compare(by_system[BM25], by_system[WEFT], settings.evaluation)
            change = difference.change
            table.add_row(
                *((name, str(len(part))) if at == 0 else ("", "")),
                label,
                *(f"{sum(by_system[system].values()) / len(part):.3f}" for system in SYSTEMS),
                f"{change.mean:+.3f} ({change.low:+.3f} … {change.high:+.3f})",
                f"{difference.better}, {difference.worse}" if key == HEADLINE else "",
            )
    return table


def _parts(rows: Rows) -> dict[str, Rows]:
    """Rows by what the table has lines for."""
    parts = {row["tree"]: [each for each in rows if each["tree"] == row["tree"]] for row in rows}
    parts |= {part.value: [row for row in rows if row["part"] == part.value] for part in Part}
    return {name: part for name, part in {**parts, ALL: rows}.items() if part}


def folder_of(settings: Settings) -> Path:
    """Where rows are written."""
    return Path(settings.storage.root) / "evaluation" / "code-issues"


def main() -> None:
    """Run on arguments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    given = parser.parse_args()
    if unknown := set(given.names) - set(trees()):
        parser.error(f"expected names among {', '.join(trees())}, found {', '.join(sorted(unknown))}")
    settings = measuring(load_settings(assignments=given.set))
    rows: list[dict[str, Any]] = []
    for name, folder in trees().items():
        if not given.names or name in given.names:
            own = list(measured(read_tree(folder, CODE), settings))
            lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in own)
            write_atomically(folder_of(settings) / f"{name}.jsonl", lines.encode())
            rows += own
    Console(width=WIDTH).print(table_of(rows, settings))


if __name__ == "__main__":
    main()
