"""Two releases of real documentations beside each other, with near-duplicates and contradictions planted in copies.

A collection of real questions with a `former.json` beside its `source.json` pins an older release, too. Its tree in the
corpus is named by the release, as who unpacks both would have it: `flask-2.0.3/docs/…` beside `flask-3.1.2/docs/…`.
Copies of some pages of the newer release stand in trees of their own, later than it: in `flask-handbook` with words of
noise or a notice, in `flask-notes` with statements that are denied or have another number. Documentation is never
committed.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path, PurePosixPath

from tests.support.near_duplicates import denied, harmless, noisy, noticed, renumbered
from tests.support.plain_search import pages_of
from tests.support.real_questions import RealCollection, RealQuestion, fetched, read_collection
from weft.domain.links import LinkKind
from weft.evaluation.measures.beir import Qrels

SHARE = 0.25
"""Of the pages with a judged answer, how many have a copy of each kind; and as many other pages again."""
NOISE = 0.04
LEAST_WORDS = 12
"""Paragraphs with fewer are copied as they are."""
LATER_DAYS = {"handbook": 30, "notes": 60}
_DAY_S = 86_400.0
_PARAGRAPH = re.compile(r"\n\s*\n")


class Standing(StrEnum):
    """What a page of the corpus is."""

    CURRENT = "current"
    OUTDATED = "outdated"
    COPY = "copy"
    OPPOSED = "opposed"


@dataclass(frozen=True)
class Page:
    """A page of the corpus.

    Attributes:
        name: Of the collection and its path in the release, which pages of all trees share.
    """

    standing: Standing
    name: str


@dataclass(frozen=True)
class WeekCorpus:
    """A folder to index, and what is known of it.

    Attributes:
        pages: By URI.
        successors: The page of the newer release for each of the older one that it has a page in the place of, by URI.
        planted: How many paragraphs were changed, by the kind of copy.
    """

    folder: Path
    pages: Mapping[str, Page]
    successors: Mapping[str, str]
    questions: Sequence[RealQuestion]
    qrels: Qrels
    planted: Mapping[str, int]

    def standing(self, uris: Sequence[str]) -> Standing:
        """What a result is: current where it stands in a page of the newer release, whatever else it stands in."""
        stands = {self.pages[uri].standing for uri in uris}
        return next(each for each in Standing if each in stands)

    def names(self, uris: Sequence[str]) -> list[str]:
        """Ids that judgements name a result by: of its current pages, else what tells that it is none."""
        pages = [self.pages[uri] for uri in uris]
        current = [page.name for page in pages if page.standing is Standing.CURRENT]
        return list(dict.fromkeys(current or [f"{page.standing}:{page.name}" for page in pages]))

    def answers(self, question: str, uris: Sequence[str]) -> bool:
        """Whether a reader who knows what is current is content: the page itself, or a copy that says the same."""
        right = self.qrels.get(question, {})
        fits = (Standing.CURRENT, Standing.COPY)
        return any(self.pages[uri].standing in fits and right.get(self.pages[uri].name, 0) > 0 for uri in uris)

    def holds(self, kind: LinkKind, one: Sequence[str], other: Sequence[str]) -> bool:
        """Whether what a night found between two contents is so, by the documents that they stand in."""
        if kind is LinkKind.SUPERSEDES:
            return all(self.successors.get(old) == new for old in other for new in one)
        opposed = [all(self.pages[uri].standing is Standing.OPPOSED for uri in uris) for uris in (one, other)]
        names = [{self.pages[uri].name for uri in uris} for uris in (one, other)]
        return opposed[0] != opposed[1] and bool(names[0] & names[1])


def make_corpus(
    folders: Sequence[Path], cache: Path, folder: Path, *, declare: bool = False, seed: int = 31
) -> WeekCorpus:
    """Write the corpus of some collections anew, and say what it holds.

    Args:
        folders: Of collections, each with both pins.
        declare: Whether every second page of a newer release has a sidecar that says what it supersedes.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    parts = [
        _written(read_collection(each, cache), each, cache, folder, declare=declare, seed=seed) for each in folders
    ]
    questions = [question for part in parts for question in part.questions if question.answerable]
    return WeekCorpus(
        folder,
        {uri: page for part in parts for uri, page in part.pages.items()},
        {old: new for part in parts for old, new in part.successors.items()},
        questions,
        {query: grades for part in parts for query, grades in part.qrels.items()},
        {kind: sum(part.planted[kind] for part in parts) for kind in LATER_DAYS},
    )


def _written(
    collection: RealCollection, source: Path, cache: Path, folder: Path, *, declare: bool, seed: int
) -> WeekCorpus:
    former = json.loads((source / "former.json").read_text("utf-8"))
    newer = json.loads((source / "source.json").read_text("utf-8"))
    at = {
        each: datetime.fromisoformat(former[each]).replace(tzinfo=UTC).timestamp() for each in ("released", "followed")
    }
    old_root = fetched(former, cache)
    old, new = pages_of(old_root, old_root / former["docs"]), pages_of(collection.root, collection.documentation)
    trees = [PurePosixPath(pinned["file"].removesuffix(".tar.gz").lower()).name for pinned in (former, newer)]
    pages: dict[str, Page] = {}

    def write(tree: str, path: str, text: str, when: float, standing: Standing) -> str:
        file = folder / tree / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        os.utime(file, (when, when))
        uri = f"{folder.name}/{tree}/{path}"
        pages[uri] = Page(standing, f"{collection.name}/{path}")
        return uri

    olds = {path: write(trees[0], path, text, at["released"], Standing.OUTDATED) for path, text in old.items()}
    news = {path: write(trees[1], path, text, at["followed"], Standing.CURRENT) for path, text in new.items()}
    both = sorted(olds.keys() & news.keys())
    if declare:
        for path in both[::2]:
            said = {"relations": [{"kind": "supersedes", "target": olds[path]}]}
            (folder / trees[1] / f"{path}.meta.json").write_text(json.dumps(said), encoding="utf-8")
    rng = random.Random(f"{seed}-{collection.name}")
    words = harmless([word for text in rng.sample(sorted(new.values()), min(len(new), 20)) for word in text.split()])
    words = [word for word in words if word.isalpha() and word.islower()]
    judged = sorted({page for question in collection.questions for page in question.grades} & new.keys())
    planted = dict.fromkeys(LATER_DAYS, 0)
    for kind, change, standing in (
        ("handbook", lambda text: noisy(text, NOISE, words, rng), Standing.COPY),
        ("notes", lambda text: opposite(text, rng), Standing.OPPOSED),
    ):
        some = rng.sample(judged, round(SHARE * len(judged)))
        others = sorted(new.keys() - set(judged))
        for path in sorted([*some, *rng.sample(others, min(len(some), len(others)))]):
            text, count = changed(new[path], change)
            if kind == "handbook" and rng.random() < 0.5:
                text = noticed("\n\n" + text)
            planted[kind] += count
            if count:
                when = at["followed"] + LATER_DAYS[kind] * _DAY_S
                write(f"{collection.name}-{kind}", path, text, when, standing)
    qrels = {
        query: {f"{collection.name}/{page}": grade for page, grade in grades.items()}
        for query, grades in collection.qrels.items()
    }
    return WeekCorpus(folder, pages, {olds[p]: news[p] for p in both}, collection.questions, qrels, planted)


def changed(text: str, change: Callable[[str], str | None]) -> tuple[str, int]:
    """A page with its paragraphs of prose changed where they can be, and how many were.

    Examples:
        >>> prose = "one two three four five six seven eight nine ten eleven twelve"
        >>> changed(f"Title\\n=====\\n\\n{prose}\\n\\n    code", str.title)[0].splitlines()[3:]
        ['One Two Three Four Five Six Seven Eight Nine Ten Eleven Twelve', '', '    code']
    """
    parts = _PARAGRAPH.split(text)
    count = 0
    for at, part in enumerate(parts):
        is_prose = part[:1].isalpha() and len(part.split()) >= LEAST_WORDS and "==" not in part and "--" not in part
        if is_prose and (made := change(part)) is not None and made != part:
            parts[at], count = made, count + 1
    return "\n\n".join(parts), count


def opposite(text: str, rng: random.Random) -> str | None:
    """A paragraph that says the opposite: a verb denied, or else another number."""
    made = denied(text, rng)
    return renumbered(text, rng) if made is None else made
