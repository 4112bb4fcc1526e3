"""CON-3: how often what is linked as similar is, and what edges of use are worth to questions nobody asked before."""

from __future__ import annotations

import random
import sys
from collections import defaultdict
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from tests.support.duplicate_bench import collection
from weft.app.collections import document_id, indexed, measuring
from weft.app.searching.replay import StoreReplay
from weft.catalog.catalog import Catalog
from weft.consolidation.steps.duplicates import GenerationContents
from weft.consolidation.steps.links import ExistingEdges, find_links
from weft.domain.ids import ContentHash, content_hash
from weft.embedding.encoders.encoder import load_encoder
from weft.evaluation.measures.beir import Dataset, read_dataset
from weft.evaluation.measures.compare import compare
from weft.evaluation.measures.measuring import as_query
from weft.evaluation.measures.metrics import measure
from weft.evaluation.measures.runs import as_ranked
from weft.learning.edges import NO_EDGES, LearnedEdges
from weft.learning.evidence import MICRO, Evidence
from weft.learning.parts import LearnedVersion, parts_of
from weft.learning.uses import UsageKey
from weft.settings import Settings, load_settings

SETTINGS = load_settings(environment={})
TEXTS, PLANTED = 600, 200
PRECISION = 0.95


class ContentReader:
    """Texts, each in a document of its own."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._text_of = {content_hash(text): text for text in texts}
        self.contents: Sequence[ContentHash] = sorted(self._text_of)

    def texts(self, rows: Sequence[int]) -> Sequence[str]:
        return [self._text_of[self.contents[row]] for row in rows]

    def since(self) -> Sequence[float]:
        return [0.0] * len(self.contents)

    def in_distinct_documents(self, pairs: np.ndarray) -> np.ndarray:
        return np.ones(len(pairs), dtype=bool)


def retold(text: str, rng: random.Random) -> str:
    """The same sentences in another order, without every fifth word: less than a near-duplicate has in common."""
    sentences = [part for part in text.split(". ") if part]
    rng.shuffle(sentences)
    words = ". ".join(sentences).split()
    return " ".join(word for at, word in enumerate(words) if at % 5 != 2)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["scifact", "cacm"])
def test_what_is_linked_as_similar_is(name: str, data_root: Path) -> None:
    """CON-3: of the links among 600 texts and 200 retold ones, 95 % at least join a text and its own."""
    rng = random.Random(3)
    texts = rng.sample(collection(name, data_root), TEXTS)
    again = [retold(text, rng) for text in texts[:PLANTED]]
    planted = {frozenset(map(content_hash, pair)) for pair in zip(texts, again, strict=False)}
    memory, encoder = ContentReader([*texts, *again]), load_encoder(SETTINGS.embedding)
    vectors = encoder.encode(memory.texts(range(len(memory.contents))))
    for least in (0.8, SETTINGS.consolidation.links.least_cosine, 0.9, 0.95):
        rules = SETTINGS.consolidation.links.model_copy(update={"least_cosine": least})
        none = ExistingEdges(np.zeros((0, 2), np.int64))
        edges = find_links(memory, lambda: vectors, none, Evidence(), rules, today=0).edges.edges
        right = sum(frozenset((each.content, each.target)) in planted for each in edges)
        precision, recall = right / max(1, len(edges)), right / PLANTED
        sys.stderr.write(f"\n{name} at {least}: {len(edges)} links, precision {precision:.3f}, recall {recall:.3f}")
        if least == SETTINGS.consolidation.links.least_cosine:
            assert precision >= PRECISION
            assert recall >= 0.9


def of_use(training: Dataset, settings: Settings) -> LearnedEdges:
    """What nights would link after one person found the judged documents of each training question good."""
    name_of, contents = document_id(training), defaultdict(list)
    with closing(Catalog(Path(settings.storage.root)).open_live()) as generation:
        for content in generation.chunks:
            for place in content.occurrences:
                contents[name_of(place.uri)].append(content.content_hash)
        usage = {
            UsageKey(20_000, content, "positive", "ada", question): MICRO
            for question, grades in training.qrels.items()
            for document, grade in grades.items()
            for content in contents.get(document, ())
            if grade > 0
        }
        rules = settings.consolidation.links.model_copy(update={"least_cosine": 2.0})
        memory, none = (
            GenerationContents(generation.contents, generation.chunks),
            ExistingEdges(np.zeros((0, 2), np.int64)),
        )
        vectors = lambda: np.zeros((0, 1), np.float32)  # noqa: E731
        return find_links(memory, vectors, none, Evidence(usage=usage), rules, today=20_000).edges


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(("name", "train", "test"), [("nfcorpus", "train", "dev"), ("scifact", "train", "test")])
def test_edges_of_use_do_no_harm(name: str, train: str, test: str, data_root: Path) -> None:
    """CON-3, RET-7: the edges alone, beliefs at their priors; nDCG@10 of other questions does not fall."""
    dataset = read_dataset(data_root / name, test)
    settings = indexed(dataset, measuring(load_settings()))
    edges = of_use(read_dataset(data_root / name, train), settings)
    queries = [as_query(query, settings.evaluation) for query in dataset.queries]
    with closing(StoreReplay(settings, times=0)) as replay:
        sides = replay.rankings(
            queries, [(settings, LearnedVersion(Evidence(), parts_of(each))) for each in (NO_EDGES, edges)]
        )
    without, with_edges = (
        measure(
            {
                str(query.query_id): as_ranked(each, settings.evaluation.depth, document_id=document_id(dataset))
                for query, each in zip(queries, rankings, strict=True)
            },
            dataset.qrels,
        )["ndcg_at_10"]
        for rankings in sides
    )
    change = compare(without, with_edges, settings.evaluation).change
    sys.stderr.write(
        f"\n{name} {test}: {len(edges)} edges, nDCG@10 {np.mean(list(without.values())):.4f}, "
        f"{change.mean:+.4f} ({change.low:+.4f} … {change.high:+.4f})\n"
    )
    assert change.high >= 0.0
