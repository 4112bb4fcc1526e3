"""SCL-8: shards that are opened alone score as one index of all, by what stock Lucene is opened and asked with."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pytest

from weft.indexes.settings import LexicalSettings
from weft.indexes.text.build import LexicalDocument, write_shard
from weft.indexes.text.jvm import JAVA, java_cast, java_class
from weft.indexes.text.lexical import LexicalIndex
from weft.indexes.text.opened import directory
from weft.indexes.text.statistics import FieldStatistics, boosts, parameters
from weft.settings import load_settings

FIELD = "contents"
BOUNDS = (0, 60, 400, 1_100, 2_400)  # four shards, uneven
QUERIES = 60
DEPTH = 50
_SEARCH, _INDEX = "org.apache.lucene.search.", "org.apache.lucene.index."

Hits = list[tuple[int, float]]


def rules() -> LexicalSettings:
    return load_settings(environment={}).index.lexical.model_copy(update={"analysis": "english"})


def titles(data: Path) -> list[str]:
    """Those of NFCorpus, the long ones first, so that shards differ in length."""
    with gzip.open(data / "nfcorpus" / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        found = [str(json.loads(line)["title"]) for line in islice(lines, BOUNDS[-1])]
    return sorted(found, key=lambda title: -len(title.split()))


def written(folder: Path, texts: Sequence[str], first: int = 0) -> Path:
    write_shard(folder, ((first + row, LexicalDocument(text, "", "")) for row, text in enumerate(texts)), rules())
    return folder


def searched(folder: Path, terms: Counter[str], weights: dict[str, float], k1: float, b: float) -> Hits:
    """What stock Lucene finds in one index by BM25 of weighted terms: documents and scores."""
    with JAVA, closing(java_class(_INDEX + "DirectoryReader").open(directory(folder))) as reader:
        searcher = java_class(_SEARCH + "IndexSearcher")(java_cast(_INDEX + "IndexReader", reader))
        searcher.setSimilarity(java_class(_SEARCH + "similarities.BM25Similarity")(k1, b))
        builder = java_class(_SEARCH + "BooleanQuery$Builder")()
        for term, times in terms.items():
            query: Any = java_class(_SEARCH + "TermQuery")(java_class(_INDEX + "Term")(FIELD, term))
            weighted = java_class(_SEARCH + "BoostQuery")(query, times * weights.get(term, 1.0))
            builder.add(weighted, java_class(_SEARCH + "BooleanClause$Occur").SHOULD)
        found = searcher.search(builder.build(), DEPTH).scoreDocs
        return [(hit.doc, hit.score) for hit in found]


def statistics(index: LexicalIndex, terms: Sequence[str]) -> FieldStatistics:
    return FieldStatistics(
        *index.field_counts(FIELD), {term: index.document_frequency(FIELD, term) for term in set(terms)}
    )


def test_four_uneven_shards_score_as_one_index(tmp_path: Path, data_root: Path) -> None:
    """SCL-8: the same titles in the same order for each of 300 queries, scores within 1e-6; without it, for few."""
    texts, own = titles(data_root), rules()
    ranges = list(pairwise(BOUNDS))
    whole = written(tmp_path / "whole", texts)
    folders = [written(tmp_path / str(first), texts[first:stop]) for first, stop in ranges]
    indexes = [LexicalIndex([one], own, rows=stop - first) for one, (first, stop) in zip(folders, ranges, strict=True)]
    lengths = [index.field_counts(FIELD)[1] / index.field_counts(FIELD)[0] for index in indexes]
    assert max(lengths) > 2 * min(lengths)
    alone = 0
    for text in texts[:: len(texts) // QUERIES][:QUERIES]:
        terms = Counter(indexes[0].terms(text))
        shards = [statistics(index, list(terms)) for index in indexes]
        corpus = FieldStatistics.of_all(shards)
        expected = searched(whole, terms, {}, own.k1, own.b)
        together, apart = list[tuple[int, float]](), list[tuple[int, float]]()
        for folder, shard, (first, _) in zip(folders, shards, ranges, strict=True):
            k1, b = parameters(shard, corpus, k1=own.k1, b=own.b)
            together += [(first + row, score) for row, score in searched(folder, terms, boosts(shard, corpus), k1, b)]
            apart += [(first + row, score) for row, score in searched(folder, terms, {}, own.k1, own.b)]
        told, untold = (sorted(hits, key=lambda hit: (-hit[1], hit[0]))[:DEPTH] for hits in (together, apart))
        assert [score for _, score in told] == pytest.approx([score for _, score in expected], rel=1e-6)
        assert _apart(told) == _apart(expected)
        alone += _apart(untold) == _apart(expected)
    assert alone < QUERIES // 10
    for index in indexes:
        index.close()


def _apart(hits: Hits) -> list[list[int]]:
    """Documents in their order; those whose scores single precision hardly tells apart, and the last such, as sets."""
    groups: list[list[int]] = []
    last = 0.0
    for row, score in hits:
        if not groups or abs(score - last) > 1e-6 * last:
            groups.append([])
        groups[-1].append(row)
        last = score
    return [sorted(group) for group in groups[:-1]]
