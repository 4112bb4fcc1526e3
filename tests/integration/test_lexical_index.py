from __future__ import annotations

import csv
import gzip
import json
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice, pairwise
from math import log, log2
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.small_disk import small_disk
from weft.domain.errors import CorruptionError
from weft.domain.ranking import QUERY_TERMS
from weft.indexes.rows import RowSet
from weft.indexes.settings import FieldWeights, LexicalSettings
from weft.indexes.text.build import LexicalDocument, merge_shards, write_shard
from weft.indexes.text.lexical import LexicalIndex, open_lexical
from weft.settings import load_settings

WORDS = [f"term{letter}" for letter in "abcdefghijklmnopqrst"]


def settings(**changes: object) -> LexicalSettings:
    return load_settings(environment={}).index.lexical.model_copy(update=changes)


def texts(count: int) -> list[str]:
    rng = np.random.default_rng(3)
    return [" ".join(rng.choice(WORDS, size=rng.integers(3, 30))) for _ in range(count)]


def built(folder: Path, contents: list[str], shards: int = 1, *, rules: LexicalSettings | None = None) -> LexicalIndex:
    rules = rules or settings()
    bounds = [len(contents) * shard // shards for shard in range(shards + 1)]
    parts = []
    for shard, (first, stop) in enumerate(pairwise(bounds)):
        documents = ((row, LexicalDocument(contents[row], "", "")) for row in range(first, stop))
        parts.append(folder / str(shard))
        assert write_shard(parts[-1], documents, rules) == stop - first
    merge_shards(parts, folder / "merged", rules)
    return open_lexical([folder / "merged"], rules, rows=len(contents))


def pairs(hits: tuple[np.ndarray, np.ndarray]) -> list[tuple[int, float]]:
    rows, scores = hits
    return list(zip(rows.tolist(), scores.tolist(), strict=True))


@pytest.fixture(scope="module")
def contents() -> list[str]:
    return texts(400)


@pytest.fixture(scope="module")
def index(contents: list[str], tmp_path_factory: pytest.TempPathFactory) -> LexicalIndex:
    return built(tmp_path_factory.mktemp("one"), contents)


@pytest.mark.parametrize(("analysis", "share"), [("english", 1.0), ("words-1", 1.0 + settings().words.exact)])
def test_scores_are_bm25(contents: list[str], tmp_path: Path, analysis: str, share: float) -> None:
    """ING-23: idf · tf / (tf + k1 (1 − b + b · length / average)), Robertson & Zaragoza (2009), as Lucene states it.

    Lucene keeps lengths below 40 exactly, which all of these are. Where words are also indexed as they are typed, which
    these words are anyway, that score is added with its weight; a word counts once there (RET-22).
    """
    index = built(tmp_path, contents, rules=settings(analysis=analysis))
    k1, b = settings().k1, settings().b
    bags = [Counter(text.split()) for text in contents]
    average = sum(bag.total() for bag in bags) / len(bags)

    def score(bag: Counter[str], word: str) -> float:
        holding = sum(word in other for other in bags)
        idf = log(1 + (len(bags) - holding + 0.5) / (holding + 0.5))
        return idf * bag[word] / (bag[word] + k1 * (1 - b + b * bag.total() / average))

    query = ["terma", "termc", "termb", "termd", "termf"]
    expected = {row: share * sum(score(bag, word) for word in query) for row, bag in enumerate(bags)}
    found = index.search(" ".join(query), len(contents))
    assert {row for row, _ in found} == {row for row, total in expected.items() if total > 0}
    assert [total for _, total in found] == pytest.approx([expected[row] for row, _ in found], rel=1e-5)


@pytest.mark.parametrize("shards", [2, 3, 8])
def test_rows_and_scores_do_not_depend_on_shards(
    contents: list[str], index: LexicalIndex, tmp_path: Path, shards: int
) -> None:
    """ING-24: BM25 statistics are the whole corpus's and ties go by row, from 1 to 8 shards."""
    other = built(tmp_path, contents, shards)
    for query in ("terma", "terma termc", "termx terme termf", " ".join(WORDS)):
        assert other.search(query, 50) == index.search(query, 50)


def test_ties_go_by_row(tmp_path: Path) -> None:
    """ARC-9: equal texts score equally and stand in row order, across shards."""
    rows = [row for row, _ in built(tmp_path, ["same words"] * 9, shards=4).search("words", 5)]
    assert rows == [0, 1, 2, 3, 4]


def test_many_queries_on_threads_are_the_single_ones(index: LexicalIndex) -> None:
    """RET-20: batch search gives what single searches give, in their order."""
    queries = [f"{one} {two}" for one in WORDS[:6] for two in WORDS[6:12]]
    expected = [index.search(query, 10) for query in queries]
    assert [pairs(hits) for hits in index.search_many(queries, 10)] == expected
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda query: index.search(query, 10), queries)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n",
        "contents:*",
        "*:*",
        "terma AND NOT ( [ {",
        '"terma',
        "terma~2^9",
        "\x00\x1bterma",
        "a\ud800 terma",
        "\\",
    ],
)
def test_operators_mean_nothing(index: LexicalIndex, text: str) -> None:
    """RET-21: operator soup, control characters and lone surrogates are words or nothing; nothing raises."""
    alone, beside = (index.search(each, 400) for each in ("terma", "terma nowhere"))  # a word alone weighs more
    assert index.search(text, 400) in ((alone, beside) if "terma" in text else ([],))


def test_a_query_of_a_megabyte_is_cut(index: LexicalIndex) -> None:
    """RET-21: terms beyond the limits are left out instead of failing."""
    flood = "terma " + " ".join(f"w{n}" for n in range(200_000))
    assert index.search(flood, 10) == index.search("terma nowhere", 10)
    assert len(index.terms(flood)) == QUERY_TERMS


def test_how_much_of_the_corpus_holds_a_word(contents: list[str], index: LexicalIndex) -> None:
    """RET-17: contents that hold it, in whatever form, of all; what no search would use tells nothing apart."""
    holding = sum("terma" in content.split() for content in contents)
    assert index.share_of("TermA") == holding / len(contents)
    assert (index.share_of("unheard"), index.share_of("the"), index.share_of("")) == (0.0, 1.0, 1.0)


def test_title_and_symbols_count_by_their_weights(tmp_path: Path) -> None:
    """ING-23: fields are apart, and weigh what the configuration says."""
    document = LexicalDocument(contents="body", title="heading", symbols="Store.open store open")
    write_shard(tmp_path, [(0, document)], settings())
    plain = open_lexical([tmp_path], settings(), rows=1)
    weighted = open_lexical([tmp_path], settings(weights=FieldWeights(contents=1.0, title=2.0, symbols=1.0)), rows=1)
    assert (plain.search("heading", 1), len(weighted.search("heading", 1))) == ([], 1)
    assert len(weighted.search("open", 1)) == 1


def test_an_index_of_other_contents_is_refused(contents: list[str], index: LexicalIndex, tmp_path: Path) -> None:
    """ARC-2: an index whose documents are not the contents' rows is corruption, and so is none at all."""
    built(tmp_path, contents)
    with pytest.raises(CorruptionError, match="expected 401 documents"):
        open_lexical([tmp_path / "merged"], settings(), rows=401)
    write_shard(tmp_path / "shifted", [(5, LexicalDocument("a", "", ""))], settings())
    with pytest.raises(CorruptionError, match="row 0"):
        open_lexical([tmp_path / "shifted"], settings(), rows=1)
    with pytest.raises(CorruptionError, match="expected a Lucene index"):
        open_lexical([tmp_path / "nowhere"], settings(), rows=1)


FIRST_SEARCHES = """
import sys
from pathlib import Path
from weft.indexes.text.jvm import java_class
from weft.indexes.text.lexical import LexicalIndex, open_lexical
from weft.settings import load_settings

def loaded():
    classes = java_class("java.lang.management.ManagementFactory").getClassLoadingMXBean()
    return classes.getTotalLoadedClassCount()

loaded()
index = open_lexical([Path(sys.argv[1])], load_settings(environment={}).index.lexical, rows=400)
for text in ("terma termb termc", "termd terme", "termf", "unknown", ""):
    before = loaded()
    index.search(text, 10)
    print(loaded() - before)
"""


def test_the_first_search_of_a_process_loads_nothing_more_than_the_next(contents: list[str], tmp_path: Path) -> None:
    """RET-7: loading Java's classes, some 400, is part of opening, so that it does not spend a search's time budget."""
    built(tmp_path, contents)
    done = subprocess.run(
        [sys.executable, "-c", FIRST_SEARCHES, str(tmp_path / "merged")],
        check=True, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    loaded = [int(line) for line in done.stdout.split()]
    assert len(loaded) == 5
    assert max(loaded) < 40


@pytest.mark.parametrize("held", [[], [""], ["the of and"]])
def test_an_index_without_words_opens(held: list[str], tmp_path: Path) -> None:
    """ING-23: there is nothing to search for then."""
    assert built(tmp_path, held).search("terma", 3) == []


@pytest.mark.data
def test_bm25_on_scifact_is_the_published_baseline(data_root: Path, tmp_path: Path) -> None:
    """ING-23: nDCG@10 of 0.679 on SciFact test with title and text in one field (Anserini's regression figure)."""
    folder = data_root / "scifact"
    documents = sorted(_lines(folder / "corpus.jsonl.gz"), key=lambda document: document["_id"])
    texts = [f"{document['title']} {document['text']}" for document in documents]
    index = built(tmp_path, texts, rules=settings(analysis="english"))
    relevant: defaultdict[str, set[str]] = defaultdict(set)
    with (folder / "qrels" / "test.tsv").open() as file:
        for judgement in csv.DictReader(file, delimiter="\t"):
            if int(judgement["score"]) > 0:
                relevant[judgement["query-id"]].add(judgement["corpus-id"])
    queries = [query for query in _lines(folder / "queries.jsonl.gz") if query["_id"] in relevant]
    found = index.search_many([query["text"] for query in queries], 10)
    gains = [
        _ndcg([documents[row]["_id"] in relevant[query["_id"]] for row, _ in pairs(hits)], len(relevant[query["_id"]]))
        for query, hits in zip(queries, found, strict=True)
    ]
    assert len(gains) == 300
    assert np.mean(gains) == pytest.approx(0.679, abs=0.002)


def _ndcg(hits: list[bool], relevant: int) -> float:
    discount = [1 / log2(rank + 1) for rank in range(1, 11)]
    return sum(gain for gain, hit in zip(discount, hits, strict=False) if hit) / sum(discount[:relevant])


def _lines(path: Path) -> Iterator[Any]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 1.0])
def test_search_among_some_rows_is_what_is_left_of_all_hits(
    contents: list[str], index: LexicalIndex, share: float
) -> None:
    """RET-4: Lucene's own filter: the same scores and ties as a search among all, cut after the filter."""
    among = RowSet(np.random.default_rng(4).random(len(contents)) < share)
    for text in ("terma termb", "termc", "nothing"):
        hits = [hit for hit in index.search(text, len(contents)) if among.mask[hit[0]]]
        assert index.search(text, 7, among) == hits[:7]
    first, second = map(pairs, index.search_many(["terma", "terma"], 5, [among, None]))
    assert first == index.search("terma", 5, among)
    assert second == index.search("terma", 5)


def test_a_full_disk_under_a_shard_is_named(tmp_path: Path) -> None:
    """OPS-15: as the system's error with the path, and no traceback of Java's."""
    words = (f"{number:x}" for number in range(10**9))
    texts_of_words = (" ".join(islice(words, 2_000)) for _ in range(99))
    documents = ((row, LexicalDocument(text, "", "")) for row, text in enumerate(texts_of_words))
    full = pytest.raises(OSError, match=r"No space left on device: '.*disk/shard'")
    with small_disk(tmp_path / "disk", mib=1) as disk, full:
        write_shard(disk.path / "shard", documents, settings())
