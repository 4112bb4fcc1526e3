"""SCL-8: shards that are opened alone score as one index of all, by what stock Lucene is opened and asked with."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from contextlib import closing
from itertools import islice, pairwise
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.support.sharded import groups
from weft.indexes.text.build import LexicalDocument, write_shard
from weft.indexes.text.lexical import LexicalIndex, open_lexical, similarity, text_part
from weft.indexes.text.opened import OpenedTexts
from weft.indexes.text.statistics import FieldCounts, filling
from weft.settings import load_settings

BOUNDS = (0, 60, 400, 1_100, 2_400)  # four shards, uneven
QUERIES = 60
DEPTH = 50
RULES = load_settings(environment={}).index.lexical


def titles(data: Path) -> list[str]:
    """Those of NFCorpus, the long ones first, so that shards differ in length."""
    with gzip.open(data / "nfcorpus" / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        found = [str(json.loads(line)["title"]) for line in islice(lines, BOUNDS[-1])]
    return sorted(found, key=lambda title: -len(title.split()))


def written(folder: Path, texts: Sequence[str]) -> Path:
    """An index whose four fields differ in length, each in its own way."""
    documents = (LexicalDocument(text, " ".join(text.split()[::3]), text.split()[-1]) for text in texts)
    write_shard(folder, enumerate(documents), RULES)
    return folder


def test_four_uneven_shards_score_as_one_index(tmp_path: Path, data_root: Path) -> None:
    """SCL-8: the same titles in the same order for each of 300 queries, scores within 1e-6; without it, for few."""
    texts, ranges = titles(data_root), list(pairwise(BOUNDS))
    folders = [written(tmp_path / str(first), texts[first:stop]) for first, stop in ranges]
    opened = [
        OpenedTexts([folder], similarity(RULES), rows=stop - first)
        for folder, (first, stop) in zip(folders, ranges, strict=True)
    ]
    counts = [each.counts() for each in opened]
    lengths = [each["contents"].terms / each["contents"].contents for each in counts]
    assert max(lengths) > 2 * min(lengths)
    parts = [text_part(each, range(*own), str(own)) for each, own in zip(opened, ranges, strict=True)]
    alone = 0
    with (
        closing(open_lexical([written(tmp_path / "whole", texts)], RULES, rows=len(texts))) as whole,
        closing(LexicalIndex(parts, RULES)) as together,
    ):
        own = [
            LexicalIndex([text_part(each, range(stop - first))], RULES)
            for each, (first, stop) in zip(opened, ranges, strict=True)
        ]
        for number, text in enumerate(texts[:: len(texts) // QUERIES][:QUERIES]):
            query = f'"{text}"' if number % 5 == 0 else text
            apart = [
                (first + row, score)
                for index, (first, _) in zip(own, ranges, strict=True)
                for row, score in index.search(query, DEPTH)
            ]
            expected, told = whole.search(query, DEPTH), together.search(query, DEPTH)
            assert [score for _, score in told] == pytest.approx([score for _, score in expected], rel=1e-6)
            assert groups(told) == groups(expected)
            alone += groups(sorted(apart, key=lambda hit: (-hit[1], hit[0]))[:DEPTH]) == groups(expected)
    assert alone < QUERIES // 10


@given(st.lists(st.integers(1, 300), min_size=1, max_size=400), st.lists(st.integers(1, 300), max_size=400))
def test_what_fills_a_shard_up_has_it_as_long_as_the_corpus_on_average(shard: list[int], others: list[int]) -> None:
    """SCL-8: to within what single precision tells apart, with texts of at least one term, no more than the others."""
    assume(others)
    part, corpus = (FieldCounts(len(lengths), sum(lengths)) for lengths in (shard, [*shard, *others]))
    texts, terms = filling(part, corpus)
    assert texts <= terms
    assert texts <= len(others)
    average = (part.terms + terms) / (part.contents + texts)
    assert average == pytest.approx(corpus.terms / corpus.contents, rel=2e-7)
