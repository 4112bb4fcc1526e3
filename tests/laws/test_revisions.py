"""ARC-4, LRN-18: which text took the place of which, beside comparing every pair by hand."""

from __future__ import annotations

import re
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.parts import a_document
from weft.domain.chunks import Chunk
from weft.domain.ids import content_hash
from weft.indexes import schemas
from weft.indexes.builder import REVISIONS, RevisionTask, write_revisions
from weft.indexes.former_places import FormerPlaces
from weft.indexes.settings import RevisionSettings
from weft.runtime.clock import SECONDS_PER_DAY
from weft.settings import load_settings

INDEX = load_settings(environment={}).index
RULES = RevisionSettings(least_overlap=0.5, days=365)
MADE_AT = 1e9

_WORD = st.sampled_from(["lock", "queue", "Cache", "token", "index", "thread", "socket", "page"])
_SENTENCE = st.lists(_WORD, min_size=1, max_size=9).map(" ".join)
_TEXT = st.lists(_SENTENCE, min_size=1, max_size=4).map(". ".join)
_CORPUS = st.lists(_TEXT, max_size=6, unique=True)
Rows = Mapping[tuple[str, str], float]


class Generations:
    """Texts of one generation after the other, and what each says became of those before."""

    def __init__(self, folder: Path, rules: RevisionSettings = RULES) -> None:
        self._folder, self._rules = folder, rules
        self._earlier: Path | None = None
        self._count = 0

    def then(self, texts: Sequence[str], *, made_at: float = MADE_AT) -> Rows:
        """The revisions that a generation of these texts notes, by their texts' hashes."""
        staging, self._count = self._folder / str(self._count), self._count + 1
        documents = [a_document(f"{number}.txt", text) for number, text in enumerate(texts)]
        written(staging, [chunk for _, own in documents for chunk in own])
        task = RevisionTask(staging, self._earlier, made_at, staging / "work", self._rules, INDEX.merge)
        write_revisions(task)
        self._earlier = staging
        table = pq.read_table(staging / "chunks" / "revisions.parquet")
        assert table.schema.equals(REVISIONS)
        rows = {(row["content_hash"], row["revision"]): row["overlap"] for row in table.to_pylist()}
        assert list(rows) == sorted(rows), "in order, each pair once"
        return rows


def written(staging: Path, chunks: Sequence[Chunk]) -> None:
    """The chunks of a generation to be, as its tables keep them."""
    for each in (staging / "chunks", staging / "work"):
        each.mkdir(parents=True)
    in_order = sorted(chunks, key=lambda chunk: chunk.content_hash)
    pq.write_table(schemas.chunks_to_table(in_order), staging / "chunks" / "chunks.parquet")


def runs_of(text: str) -> frozenset[tuple[str | None, ...]]:
    words = [each.lower() for each in re.findall(r"[^\W_]+", text)]
    padded = [*words, *[None] * (3 - len(words))]
    return frozenset(tuple(padded[at : at + 3]) for at in range(len(padded) - 2))


def by_hand(before: Sequence[str], after: Sequence[str], least: float = RULES.least_overlap) -> Rows:
    """Every pair of a text that went and one that came: its overlap, where no other has more in common with either."""
    gone, new = ({text: runs_of(text) for text in one if text not in other} for one, other in _both_ways(before, after))
    shared = {(a, b): len(gone[a] & new[b]) for a in gone for b in new if gone[a] & new[b]}
    likeness = {(a, b): count / len(gone[a] | new[b]) for (a, b), count in shared.items()}
    overlap = {(a, b): count / min(len(gone[a]), len(new[b])) for (a, b), count in shared.items()}
    close = [pair for pair in shared if overlap[pair] >= least]
    best_of_old = {a: max(likeness[pair] for pair in close if pair[0] == a) for a, _ in close}
    best_of_new = {b: max(likeness[pair] for pair in close if pair[1] == b) for _, b in close}
    return {
        (content_hash(a), content_hash(b)): overlap[a, b]
        for a, b in close
        if likeness[a, b] in {best_of_old[a], best_of_new[b]}
    }


def _both_ways(one: Sequence[str], other: Sequence[str]) -> tuple[tuple[Sequence[str], ...], ...]:
    return (one, other), (other, one)


@settings(max_examples=examples(30))
@given(before=_CORPUS, after=_CORPUS, data=st.data())
def test_what_became_of_texts_is_what_comparing_all_of_them_says(
    before: list[str], after: list[str], data: st.DataObject
) -> None:
    """ARC-4: of texts that came and went, whatever order they are in; nothing of those that stayed."""
    with tempfile.TemporaryDirectory() as folder:
        generations = Generations(Path(folder))
        assert generations.then(before) == {}
        found = generations.then(data.draw(st.permutations(after)))
    assert found == pytest.approx(by_hand(before, after))


@settings(max_examples=examples(10))
@given(corpora=st.lists(_CORPUS, min_size=2, max_size=4))
def test_overlaps_multiply_from_generation_to_generation(corpora: list[list[str]]) -> None:
    """ARC-4: what a text became, step by step; nothing of a text that is there, nor below the bound."""
    expected: Rows = {}
    with tempfile.TemporaryDirectory() as folder:
        generations = Generations(Path(folder))
        before: list[str] = []
        for texts in corpora:
            direct, here = by_hand(before, texts), {content_hash(text) for text in texts}
            rows = defaultdict[tuple[str, str], float](float, direct)
            for (old, middle), overlap in expected.items():
                onwards = {new: share for (was, new), share in direct.items() if was == middle}
                for new, share in {**onwards, **({middle: 1.0} if middle in here else {})}.items():
                    rows[old, new] = max(rows[old, new], overlap * share)
            expected = {
                pair: share for pair, share in rows.items() if pair[0] not in here and share >= RULES.least_overlap
            }
            assert generations.then(texts) == pytest.approx(expected)
            before = texts


_PLACE = st.tuples(st.sampled_from(["a.md", "b.md"]), st.sampled_from(["", "Locks", "Queues"]))
_PAGES = st.dictionaries(_PLACE, _TEXT, max_size=5)
DAYS = 2


@settings(max_examples=examples(10))
@given(generations=st.lists(_PAGES, min_size=2, max_size=5))
def test_places_that_are_gone_keep_what_stood_there_last(generations: list[dict[tuple[str, str], str]]) -> None:
    """LRN-23, ARC-4: of every generation that is recent enough, until the place is back."""
    rules = RevisionSettings(least_overlap=0.5, days=DAYS)
    expected: dict[tuple[str, str], tuple[str, float]] = {}
    before: dict[tuple[str, str], str] = {}
    earlier: Path | None = None
    with tempfile.TemporaryDirectory() as root:
        for number, pages in enumerate(generations):
            made_at = number * SECONDS_PER_DAY  # of the generation before
            expected |= {place: (content_hash(text), made_at) for place, text in before.items()}
            expected = {
                place: noted
                for place, noted in expected.items()
                if place not in pages and noted[1] >= made_at - DAYS * SECONDS_PER_DAY
            }
            staging = Path(root) / str(number)
            written(staging, [chunk_at(*place, text) for place, text in pages.items()])
            write_revisions(RevisionTask(staging, earlier, made_at, staging / "work", rules, INDEX.merge))
            former = FormerPlaces(staging / "chunks")
            found = {(uri, each.heading): each.content_hash for uri in ("a.md", "b.md") for each in former.of(uri)}
            assert found == {place: name for place, (name, _) in expected.items()}
            before, earlier = pages, staging


def chunk_at(uri: str, heading: str, text: str) -> Chunk:
    (chunk,) = a_document(uri, text)[1]
    return replace(chunk, heading_path=(heading,) if heading else ())


PASSAGE = (
    "Locks are released when the transaction ends. Whoever waits is told within a second. "
    "A queue holds the names of all who wait, in the order in which they came. It is kept in memory."
)
HALVES = PASSAGE.split(" A queue holds")


@pytest.mark.parametrize(
    ("after", "became"),
    [
        ([PASSAGE.replace("a second", "one second")], [0]),
        ([PASSAGE.replace("It is kept in memory.", "It lies on disk, in one file that no other process opens.")], [0]),
        (["Guide > Locks\n" + PASSAGE], [0]),
        ([f"Something else was put above. {HALVES[0]}", f"A queue holds{HALVES[1]}"], [0, 1]),
        ([PASSAGE + " Threads are not told of that. They poll, and so nobody needs to tell them anything."], [0]),
        (["Locks are never released. Whoever waits has to look for itself. There is no queue."], []),
        (["锁在事务结束时释放。等待者会在一秒内收到通知。"], []),
    ],
    ids=["a-word", "a-sentence", "moved", "cut-in-two", "added-to", "written-anew", "translated"],
)
def test_an_edited_passage_is_found_again(after: list[str], became: list[int], tmp_path: Path) -> None:
    """ARC-4, LRN-18: edited, cut otherwise or moved; a text that says something else took nothing's place."""
    generations = Generations(tmp_path)
    generations.then(["Tokens expire after an hour, and are renewed by who holds them.", PASSAGE])
    rows = generations.then(["Tokens expire after an hour, and are renewed by who holds them.", *after])
    assert set(rows) == {(content_hash(PASSAGE), content_hash(after[each])) for each in became}


def test_scripts_without_blanks_are_compared_by_characters(tmp_path: Path) -> None:
    """ARC-4: a sentence of Chinese is no single word."""
    before = "锁在事务结束时释放。等待者会在一秒内收到通知。队列保存所有等待者的名字。"
    after = before.replace("一秒", "两秒")
    generations = Generations(tmp_path)
    generations.then([before])
    assert set(generations.then([after])) == {(content_hash(before), content_hash(after))}


def test_what_stands_everywhere_tells_nothing(tmp_path: Path) -> None:
    """ARC-4: a licence above every file makes none of them another's successor, nor the comparison quadratic."""
    head = "Licensed to nobody in particular, without warranty of any kind, either express or implied."
    generations = Generations(tmp_path)
    own = "holds number {0} and nothing but {0}, as the {0} before it did in part {0}"
    generations.then([f"{head} Old {own.format(number)}" for number in range(99)])
    assert generations.then([f"{head} New {own.format(number + 1000)}" for number in range(99)]) == {}


def test_what_became_of_a_text_is_forgotten_at_last(tmp_path: Path) -> None:
    """ARC-4: after the days that settings say, counted by when generations were made, so that the table has an end."""
    generations = Generations(tmp_path, replace_days(30))
    edited = PASSAGE.replace("a second", "one second")
    generations.then([PASSAGE])
    assert set(generations.then([edited])) == {(content_hash(PASSAGE), content_hash(edited))}
    for days, remembered in ((30, True), (31, False)):
        rows = generations.then([edited, f"page {days}"], made_at=MADE_AT + days * SECONDS_PER_DAY)
        assert bool(rows) is remembered


def replace_days(days: int) -> RevisionSettings:
    return RULES.model_copy(update={"days": days})
