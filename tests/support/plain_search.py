"""Plain baselines over a folder of pages: BM25 over heading sections, MiniLM over windows, and their fusion by rank.

Independent of weft's own ways: they read Markdown and reStructuredText as text, know no metadata, and take a page by
its best section or window. Lucene's English analysis, Porter's stemmer among it, comes from Anserini.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

import numpy as np

from weft.embedding.models import locate
from weft.embedding.settings import EmbeddingSettings
from weft.evaluation.measures.runs import Ranked
from weft.indexes.text.jvm import java_class

PAGES = frozenset({".md", ".rst", ".txt"})
K1, B = 0.9, 0.4  # Anserini's
RANK_CONSTANT, DEPTH = 60, 100  # of reciprocal rank fusion (Cormack et al., SIGIR 2009)
WINDOW, STEP = 160, 120  # words: 256 word pieces are what the encoder reads

_ATX = re.compile(r"^(#{1,6})\s+(.+?)\s*#*\s*$")
_FENCE = re.compile(r"^\s{0,3}(```|~~~)")
_ADORNMENT = re.compile(r"^([=\-~^\"'`#*+.:_<>])\1{2,}\s*$")
_LABEL = re.compile(r"\s*$|\.\. (_[^:]+:|(index|setting|module|currentmodule|contents)::)|\([\w/-]+\)=\s*$|<a name")
_ATTRIBUTES = re.compile(r"\s*\{[^{}]*\}\s*$")  # anchors behind headings of Markdown


@dataclass(frozen=True)
class Section:
    """A heading and the text up to the next one.

    Attributes:
        first, last: Its lines, from 1; the last one without what stands under deeper headings.
        end: The last line of it with everything under deeper headings.
        said: The line after its heading.
    """

    page: str
    heading: str
    level: int
    first: int
    last: int
    end: int
    said: int
    text: str


def pages_of(root: Path, documentation: Path) -> dict[str, str]:
    """Text of every page below a folder, by its path from `root`."""
    files = [path for path in sorted(documentation.rglob("*")) if path.suffix in PAGES and path.is_file()]
    return {path.relative_to(root).as_posix(): path.read_text("utf-8", errors="replace") for path in files}


def sections_of(page: str, text: str) -> list[Section]:
    """The sections of a page in order; what stands before the first heading has an empty one.

    Examples:
        >>> [(s.heading, s.first, s.last, s.end) for s in sections_of("a.md", "# A\\none\\n## B\\ntwo\\n# C")]
        [('A', 1, 2, 4), ('B', 3, 4, 4), ('C', 5, 5, 5)]
        >>> [s.heading for s in sections_of("a.rst", "====\\nTop\\n====\\n\\ntext\\n\\nNext\\n----\\n")]
        ['Top', 'Next']
    """
    lines = text.splitlines()
    heads = _markdown_heads(lines) if page.endswith(".md") else _restructured_heads(lines)
    if not heads or heads[0][0] > 1:
        heads = [(1, 0, ""), *heads]
    underlined = 0 if page.endswith(".md") else 1
    ends = [*(first - 1 for first, _, _ in heads[1:]), len(lines)]
    sections = []
    for at, (first, level, heading) in enumerate(heads):
        later = (start for start, other, _ in heads[at + 1 :] if other <= level and level > 0)
        end = next(later, len(lines) + 1) - 1 if level else ends[at]
        text_of = "\n".join(lines[first - 1 : ends[at]])
        overlined = underlined and unmarked(lines[first - 1].strip()) != heading
        said = first + 1 + underlined + overlined
        sections.append(Section(page, heading, level, first, ends[at], end, said, text_of))
    return sections


def first_said(lines: Sequence[str], sections: Sequence[Section], line: int) -> int:
    """The first line from `line` on that says something: no blank line, label or heading.

    Examples:
        >>> text = ".. _top:\\n\\nTop\\n===\\n\\nNext\\n----\\n\\nwords"
        >>> first_said(text.splitlines(), sections_of("a.rst", text), 1)
        9
    """
    heads = {number for each in sections if each.heading for number in range(each.first, each.said)}
    unsaid = takewhile(lambda number: number in heads or _LABEL.match(lines[number - 1]), range(line, len(lines)))
    return line + sum(1 for _ in unsaid)


def unmarked(heading: str) -> str:
    """A heading without the marks of code: who judges writes it as it is read."""
    return heading.replace("`", "")


def _markdown_heads(lines: Sequence[str]) -> list[tuple[int, int, str]]:
    heads, fence = [], ""
    for number, line in enumerate(lines, start=1):
        if marked := _FENCE.match(line):
            fence = "" if fence == marked[1] else fence or marked[1]
        elif not fence and (head := _ATX.match(line)):
            heads.append((number, len(head[1]), unmarked(_ATTRIBUTES.sub("", head[2]))))
    return heads


def _restructured_heads(lines: Sequence[str]) -> list[tuple[int, int, str]]:
    heads: list[tuple[int, int, str]] = []
    styles: list[str] = []
    for at in range(1, len(lines)):
        title, under = lines[at - 1].rstrip(), lines[at].rstrip()
        if not title or title[0].isspace() or not _ADORNMENT.match(under) or _ADORNMENT.match(title):
            continue
        above = lines[at - 2].rstrip() if at > 1 else ""
        over = above == under
        if not over and (len(under) < len(title) or above):
            continue
        style = under[0] * (2 if over else 1)
        if style not in styles:
            styles.append(style)
        heads.append((at - over, styles.index(style) + 1, unmarked(title.strip())))
    return heads


def english_terms(text: str) -> list[str]:
    """The terms of a text as Lucene's English analysis has them."""
    analyzer = java_class("io.anserini.analysis.DefaultEnglishAnalyzer").newDefaultInstance()
    return [str(term) for term in java_class("io.anserini.analysis.AnalyzerUtils").analyze(analyzer, text).toArray()]


class PassageBm25:
    """BM25 over passages; a page has the score of its best one."""

    def __init__(
        self, passages: Sequence[tuple[str, str]], analysed: Callable[[str], Sequence[str]] = english_terms
    ) -> None:
        """Take passages, each with the page that it is of, and how a text becomes terms."""
        self._pages = [page for page, _ in passages]
        self._analysed = analysed
        terms = [analysed(text) for _, text in passages]
        self._length = np.array([len(some) for some in terms], dtype=np.float64)
        self._average = float(self._length.mean())
        self._postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for row, some in enumerate(terms):
            for term, count in Counter(some).items():
                self._postings[term].append((row, count))

    def __call__(self, question: str) -> Ranked:
        scores = np.zeros(len(self._pages))
        for term in self._analysed(question):
            held = self._postings.get(term, [])
            idf = math.log(1.0 + (len(self._pages) - len(held) + 0.5) / (len(held) + 0.5))
            for row, count in held:
                norm = K1 * (1.0 - B + B * self._length[row] / self._average)
                scores[row] += idf * count / (count + norm)
        return _best_of_pages(self._pages, scores)


class PlainBm25(PassageBm25):
    """BM25 over sections; a page has the score of its best one."""

    def __init__(self, pages: Mapping[str, str]) -> None:
        super().__init__([(page, each.text) for page, text in pages.items() for each in sections_of(page, text)])


class PlainDense:
    """MiniLM over windows of words; a page has the cosine of its best one."""

    def __init__(self, pages: Mapping[str, str], settings: EmbeddingSettings, cache: Path) -> None:
        from sentence_transformers import SentenceTransformer  # takes seconds to import

        self._model = SentenceTransformer(str(locate(settings)), device="cpu")
        self._pages, texts = [], []
        for page, text in pages.items():
            words = text.split()
            for start in range(0, max(1, len(words) - WINDOW + STEP), STEP):
                self._pages.append(page)
                texts.append(" ".join(words[start : start + WINDOW]))
        self._vectors = self._kept(texts, cache)

    def __call__(self, question: str) -> Ranked:
        return _best_of_pages(self._pages, self._vectors @ self._encoded([question])[0], least=-1.0)

    def _kept(self, texts: Sequence[str], cache: Path) -> np.ndarray:
        key = hashlib.sha256("\0".join(texts).encode("utf-8", "replace")).hexdigest()[:16]
        path = cache / f"windows-{key}.npy"
        if not path.is_file():
            cache.mkdir(parents=True, exist_ok=True)
            np.save(path, self._encoded(texts))
        return np.asarray(np.load(path))

    def _encoded(self, texts: Sequence[str]) -> np.ndarray:
        return np.asarray(self._model.encode(list(texts), normalize_embeddings=True, show_progress_bar=False))


def fused(rankings: Sequence[Ranked]) -> Ranked:
    """Reciprocal rank fusion of rankings of pages."""
    scores: dict[str, float] = defaultdict(float)
    for ranked in rankings:
        for rank, page in enumerate(list(ranked)[:DEPTH], start=1):
            scores[page] += 1.0 / (RANK_CONSTANT + rank)
    return dict(sorted(scores.items(), key=lambda item: (-item[1], item[0])))


def _best_of_pages(pages: Sequence[str], scores: np.ndarray, least: float = 0.0) -> Ranked:
    best: dict[str, float] = {}
    for row in np.argsort(-scores, kind="stable"):
        if scores[row] <= least or len(best) == DEPTH:
            break
        best.setdefault(pages[row], float(scores[row]))
    return best
