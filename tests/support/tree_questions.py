"""Indexes trees and asks for what their own headings and docstrings say; prints pieces, nDCG@10 and time, by tree.

    python -m tests.support.tree_questions STORES FOLDER … [--set KEY=VALUE …]

A question is a heading of at least two words with the title of its page, or the first sentence of what documents a
function, where it stands once in the tree. It is answered by a result that has a line under that heading, or of what
documents and defines the function; of notebooks and of HTML by any result of the page, whose lines are not those of the
file. nDCG@10 is of the first such result. At most so many questions are drawn evenly of a tree. A reader keeps a piece
that has at least twelve words, no line over 500 characters, letters and blanks for half of its characters, and a text
that no other piece has. Time is the processor's.
"""

from __future__ import annotations

import argparse
import ast
import json
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from rich.console import Console
from rich.table import Table

from weft.app.indexing import plan_of, run
from weft.app.searching.engines import opened
from weft.catalog.catalog import Catalog
from weft.domain.ids import QueryId
from weft.domain.ranking import Query, RankedResult
from weft.runtime.stages import HERE
from weft.settings import load_settings

QUESTIONS, PIECES, SHOWN = 120, 200, 10  # of a tree; results of a question
WHOLE = {".html", ".ipynb"}
UNDERLINE = re.compile(r"([=~^\-*\"'`#+])\1{3,}$")
TAGGED = re.compile(r"<h([1-3])\b[^>]*>(.*?)</h\1>", re.DOTALL | re.IGNORECASE)
COMMENT = re.compile(r"\s*(?://+|\*|/\*\*)\s?(.*)")
DEFINES = re.compile(r"\s*(?:export\s+|public\s+|static\s+|default\s+)*(?:func|function)\s|\s*public\s.*\(.*\{\s*$")


@dataclass(frozen=True)
class Asked:
    """A question, and the lines of a file that answer it; None of one all of whose lines do."""

    text: str
    uri: str
    lines: range | None

    def is_answered(self, hit: RankedResult) -> bool:
        """Whether a result shows any of them."""
        inside = self.lines is None or (hit.start_line < self.lines.stop and hit.end_line >= self.lines.start)
        return hit.uris[0] == self.uri and inside


def of_notebook(text: str) -> Iterator[tuple[int, str]]:
    for cell in json.loads(text).get("cells", []):
        source = "".join(cell["source"]).splitlines() if cell["cell_type"] == "markdown" else []
        yield from ((1, line.lstrip("# ")) for line in source if line.startswith("#"))


def of_html(text: str) -> Iterator[tuple[int, str]]:
    for match in TAGGED.finditer(text):
        yield 1, re.sub(r"<[^>]+>|¶|&[#\w]+;", "", match[2]).strip()


def of_rst(text: str) -> Iterator[tuple[int, str]]:
    for at, (line, under) in enumerate(pairwise(text.splitlines()), start=1):
        if UNDERLINE.match(under) and line.strip() and len(under) >= len(line.rstrip()):
            yield at, line.strip()


def of_markdown(text: str) -> Iterator[tuple[int, str]]:
    fenced = False
    for at, line in enumerate(text.splitlines(), start=1):
        fenced ^= line.lstrip().startswith(("```", "~~~"))
        if not fenced and re.match(r"#{1,4} \S", line):
            yield at, re.sub(r"\{#.*?\}|[`*]|\[(.*?)\]\(.*?\)", r"\1", line.lstrip("# ")).strip()


def of_manual(text: str) -> Iterator[tuple[int, str]]:
    for at, line in enumerate(text.splitlines(), start=1):
        if heading := re.match(r"\.S[HS] \"?(.*?)\"?$", line):
            yield at, heading[1].replace("\\", "").lower()


HEADINGS: Mapping[str, Callable[[str], Iterator[tuple[int, str]]]] = {
    ".ipynb": of_notebook,
    ".html": of_html,
    ".rst": of_rst,
    ".md": of_markdown,
    **{f".{section}": of_manual for section in range(1, 9)},
}
"""By suffix what gives the headings of a text, with their lines from 1; of notebooks and HTML 1."""


def documented(path: Path, text: str) -> Iterator[tuple[range, str]]:
    """What documents functions, with its lines and those that define them, from 1."""
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and (said := ast.get_docstring(node)):
                yield range(node.lineno, node.body[0].lineno + 1), said
    elif path.suffix in {".go", ".ts", ".java"}:
        lines, above = text.splitlines(), list[str]()
        for at, line in enumerate(lines, start=1):
            if comment := COMMENT.match(line):
                above.append(comment[1])
                continue
            if DEFINES.match(line) and above:
                yield range(at - len(above), at + 1), " ".join(above)
            above = above if line.lstrip().startswith("@") else []


def questions_of(folder: Path) -> list[Asked]:
    """The questions of a tree, evenly drawn."""
    asked = []
    for path in sorted(each for each in folder.rglob("*") if each.is_file()):
        try:
            text = path.read_text("utf-8")
            heads = HEADINGS.get(path.suffix)
            titled, defined = [] if heads is None else list(heads(text)), list(documented(path, text))
        except (UnicodeDecodeError, SyntaxError, ValueError):
            continue
        uri, end = f"{folder.name}/{path.relative_to(folder)}", text.count("\n") + 2
        ends = [line for line, _ in titled[1:]] + [end]
        for (line, heading), after in zip(titled, ends, strict=False):
            if len(heading.split()) > 1 or HEADINGS.get(path.suffix) is of_manual:
                title = path.stem if HEADINGS.get(path.suffix) is of_manual else titled[0][1]
                title = "" if heading == title else f"{title} "
                lines = None if path.suffix in WHOLE else range(line, after)
                asked.append(Asked(f"{title}{heading}"[:200], uri, lines))
        for span, said in defined:
            sentence = re.split(r"(?<=[.!?])\s|\n\s*\n", said.strip())[0]
            if len(sentence.split()) > 3:
                asked.append(Asked(" ".join(sentence.split())[:200], uri, span))
    times = Counter(each.text.casefold() for each in asked)
    once = [each for each in asked if times[each.text.casefold()] == 1]
    return [once[at * len(once) // QUESTIONS] for at in range(QUESTIONS)] if len(once) > QUESTIONS else once


def is_kept(text: str, times: Counter[str]) -> bool:
    """Whether a reader keeps a piece."""
    letters = sum(each.isalpha() or each.isspace() for each in text)
    longest = max(map(len, text.splitlines()), default=0)
    return len(text.split()) >= 12 and longest <= 500 and 2 * letters >= len(text) and times[text] == 1


def main() -> None:
    """Run on arguments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stores", type=Path, metavar="STORES", help="folder of the stores that are made")
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    given = parser.parse_args()
    table = Table("tree", "MB", "chunks", "chunks/MB", "kept", "questions", "nDCG@10", "s of processor", box=None)
    for folder in given.folders:
        store = given.stores / folder.name
        settings = load_settings(assignments=[*given.set, f"storage.root={store}"], environment={})
        begun = sum(os.times()[:4])
        run(plan_of(settings, [folder]), executor=HERE)
        took = sum(os.times()[:4]) - begun
        size = sum(each.stat().st_size for each in folder.rglob("*") if each.is_file()) / 1e6
        generation = Catalog(store).open_live()
        texts = [each.text for each in generation.chunks.contents(range(len(generation.contents)))]
        times = Counter(texts)
        some = [texts[at * len(texts) // PIECES] for at in range(PIECES)] if len(texts) > PIECES else texts
        gains, asked = list[float](), questions_of(folder)
        with opened(settings) as searcher:
            for number, each in enumerate(asked):
                answer = searcher.search(Query(text=each.text, query_id=QueryId(f"q{number}"), k=SHOWN))
                ranks = (rank for rank, hit in enumerate(answer.results, start=1) if each.is_answered(hit))
                gains.append(1 / math.log2(1 + first) if (first := next(ranks, 0)) else 0.0)
        kept = sum(is_kept(text, times) for text in some) / max(1, len(some))
        figures = f"{size:.2f}", str(len(texts)), f"{len(texts) / size:.0f}", f"{kept:.2f}", str(len(asked))
        table.add_row(folder.name, *figures, f"{sum(gains) / max(1, len(gains)):.3f}", f"{took:.0f}")
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
