"""RET-7, RET-22: learned weights of terms, from a real sparse encoder into Lucene's impact index and out again."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transformers import AutoModelForMaskedLM, AutoTokenizer

from tests.support.sparse_model import QUESTION, TEXTS, splade_tiny
from weft.app.searching.engines import opened
from weft.cli.commands import reindex
from weft.cli.reports.evaluate import measuring
from weft.domain.arrays import TermWeights
from weft.domain.errors import ModelUnavailableError, StoreError
from weft.domain.ids import QueryId
from weft.domain.ranking import Channel, Query, Signal
from weft.embedding.encoders.sparse import load_sparse_encoder
from weft.embedding.ports import TermEncoder
from weft.embedding.settings import EmbeddingSettings
from weft.evaluation.replay.masking import MaskedImpacts, Masks
from weft.indexes import schemas
from weft.indexes.generation import Generation
from weft.indexes.manifest import WEIGHTS_FILE
from weft.indexes.rows import RowSet
from weft.indexes.text.impact import ImpactIndex, write_impacts
from weft.retrieval.channels.run import ChannelRequest, Channels, run_channels
from weft.retrieval.channels.sparse import SparseChannel
from weft.retrieval.searcher import Searcher
from weft.runtime.stages import HERE
from weft.settings import Settings, load_settings

pytestmark = pytest.mark.integration


weighted = st.dictionaries(st.integers(0, 30), st.integers(1, 400), max_size=12)


def named(**changes: object) -> EmbeddingSettings:
    stated = load_settings(environment={}).embedding
    sparse = stated.sparse.model_copy(update={"model": str(splade_tiny()), **changes})
    return stated.model_copy(update={"sparse": sparse, "device": "cpu"})


@pytest.fixture(scope="module")
def encoder() -> TermEncoder:
    return load_sparse_encoder(named())


@given(contents=st.lists(weighted, min_size=1, max_size=30), query=weighted, k=st.integers(1, 40), data=st.data())
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_scores_are_dot_products(
    tmp_path_factory: pytest.TempPathFactory,
    contents: list[dict[int, int]],
    query: dict[int, int],
    k: int,
    data: st.DataObject,
) -> None:
    """RET-7: what Lucene scores is Σ weight in the query · weight in the content, to the last digit; ties by row."""
    folder = tmp_path_factory.mktemp("impacts")
    write_impacts(folder, map(TermWeights.of, contents))
    index = ImpactIndex([folder], rows=len(contents))
    allowed = data.draw(st.sets(st.integers(0, len(contents) - 1)))
    mask = np.zeros(len(contents), dtype=bool)
    mask[list(allowed)] = True
    try:
        for among in (None, RowSet(mask)):
            rows, scores = index.search(TermWeights.of(query), k, among)
            products = [
                (-sum(weight * content.get(term, 0) for term, weight in query.items()), row)
                for row, content in enumerate(contents)
                if among is None or row in allowed
            ]
            assert (
                list(zip(rows.tolist(), scores.tolist(), strict=True))
                == [(row, float(-product)) for product, row in sorted(products) if product][:k]
            )
    finally:
        index.close()


def test_weights_are_those_of_the_model(encoder: TermEncoder) -> None:
    """RET-7: round(100 · max over tokens of log(1 + relu(logit))), SPLADE's equation; the heaviest terms of each."""
    tokenizer = AutoTokenizer.from_pretrained(str(splade_tiny()))
    model = AutoModelForMaskedLM.from_pretrained(str(splade_tiny())).eval()
    texts = [QUESTION, *TEXTS.values(), ""]
    for text, weights in zip(texts, encoder.weigh(texts), strict=True):
        with torch.inference_mode():
            logits = model(**tokenizer(text, return_tensors="pt")).logits[0]
        expected = torch.log1p(torch.relu(logits)).max(dim=0).values.numpy() * 100
        heaviest = np.sort(np.rint(expected))[::-1][: named().sparse.most_terms]
        assert np.sort(weights.weights)[::-1] == pytest.approx(heaviest[heaviest > 0], abs=1)
        assert weights.weights == pytest.approx(expected[weights.terms], abs=1)


def test_a_text_has_its_weights_in_any_company(encoder: TermEncoder) -> None:
    """RET-7, ARC-9: a text's weights do not depend on its batch; a long one is cut, and terms beyond the limit go."""
    texts = [*TEXTS.values(), "word " * 900]
    for text, weights in zip(texts, encoder.weigh(texts), strict=True):
        (alone,) = encoder.weigh([text])
        assert np.array_equal(alone, weights)
    few = load_sparse_encoder(named(most_terms=3, most_query_terms=2))
    assert [len(few.weigh([QUESTION])[0].terms), len(few.weigh_queries([QUESTION])[0].terms)] == [3, 2]


def test_what_is_no_sparse_encoder_is_refused(tmp_path: Path) -> None:
    """RET-7: a folder without a model, or without anything, is named with its setting."""
    with pytest.raises(ModelUnavailableError, match=r"embedding\.sparse\.model"):
        load_sparse_encoder(named(model=str(tmp_path)))
    with pytest.raises(ModelUnavailableError, match=r"embedding\.sparse\.model"):
        load_sparse_encoder(named(model=str(tmp_path / "none")))


class Failing:
    name = "failing"

    def weigh(self, texts: Sequence[str]) -> list[TermWeights]:
        raise NotImplementedError

    def weigh_queries(self, texts: Sequence[str]) -> list[TermWeights]:
        raise ModelUnavailableError("expected weights, found a broken model")


class Hanging(Failing):
    def __init__(self) -> None:
        self.over = threading.Event()

    def weigh_queries(self, texts: Sequence[str]) -> list[TermWeights]:
        self.over.wait()
        return []


def test_one_that_fails_or_hangs_is_left_out_and_named() -> None:
    """RET-7: as every channel."""
    hanging, nothing = Hanging(), Any
    request = ChannelRequest(QUESTION, [Channel.SPARSE], 10)
    try:
        with ThreadPoolExecutor(2) as threads:
            for encoder, why in ((Failing(), "found a broken model"), (hanging, "no answer within 0.05 s")):
                channels = Channels({Channel.SPARSE: SparseChannel(encoder, nothing)})  # type: ignore[arg-type]
                found = run_channels(channels, [request], budget_ms={Channel.SPARSE: 50.0}, threads=threads)
                assert not found.rankings
                assert why in found.failed[0]["sparse"]
            hanging.over.set()
    finally:
        hanging.over.set()


def of_store(store: Path, *changes: str, model: str | None = None) -> Settings:
    own = [f"storage.root={store}", f"embedding.sparse.model='{splade_tiny() if model is None else model}'"]
    channels = "retrieval.channels=[dense, lexical, sparse]"
    return measuring(load_settings([], [*own, channels, *changes], environment={}))


def indexed(store: Path, source: Path, *changes: str) -> reindex.IndexOutcome:
    plan = reindex.plan_of(of_store(store, *changes), [source])
    return reindex.run(plan, watch=lambda _: None, executor=HERE)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source")
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture(scope="module")
def store(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    indexed(folder, source)
    return folder


@pytest.fixture(scope="module")
def searcher(store: Path) -> Iterator[Searcher]:
    with opened(of_store(store)) as searching:
        yield searching


def asked(text: str = QUESTION) -> Query:
    return Query(text=text, query_id=QueryId("q"), k=10)


def generation_of(searcher: Searcher) -> Generation:
    generation = searcher.snapshot.generation
    assert isinstance(generation, Generation)
    return generation


def test_a_tree_is_found_by_its_weights(searcher: Searcher, encoder: TermEncoder) -> None:
    """RET-7, RET-18: the channel's scores are dot products of what is stored; results say that it found them."""
    generation = generation_of(searcher)
    table = pq.read_table(generation.folder / WEIGHTS_FILE)
    assert table["content_hash"].to_pylist() == list(generation.contents)
    stored, (query,) = schemas.table_to_weights(table), encoder.weigh_queries([QUESTION])
    answer = searcher.search(asked())
    assert not answer.failed_channels
    expected = {name: query.dot(weights) for name, weights in zip(generation.contents, stored, strict=True)}
    assert dict(answer.heads[Channel.SPARSE]) == {name: score for name, score in expected.items() if score}
    best = answer.results[0]
    assert best.uris[0].endswith("offsets.md")
    assert best.signals[Signal.SPARSE] == 1.0
    assert Channel.SPARSE in best.channels
    (part,) = (part for part in best.contributions if part.name == "sparse")
    assert part.amount == pytest.approx(part.weight * part.value)
    assert part.amount > 0.0
    assert generation.manifest.models["sparse"].startswith("model@")


@pytest.mark.slow
def test_unchanged_contents_keep_their_weights(store: Path, source: Path, tmp_path: Path) -> None:
    """RET-7, ING-20: only the changed document is weighed again, and the generation is what a new store makes of it."""
    own = tmp_path / "source"
    own.mkdir()
    for name in TEXTS:
        (own / name).write_bytes((source / name).read_bytes())
    first = indexed(tmp_path / "store", own)
    assert first.published
    assert not indexed(tmp_path / "store", own).published
    (tmp_path / "store" / "cache" / "embeddings.sqlite").unlink()  # so that they can only come from the generation
    (own / "locks.md").write_text("# Locks\n\nWhoever waits for a lock gets it in the end.\n")
    counted: list[int] = []
    plan = reindex.plan_of(of_store(tmp_path / "store"), [own])
    second = reindex.run(plan, watch=lambda progress: counted.append(progress.counts.get("weighed", 0)), executor=HERE)
    assert second.published
    assert counted[-1] == 1
    anew = indexed(tmp_path / "anew", own)
    tables = [
        pq.read_table(tmp_path / name / "generations" / outcome.generation / WEIGHTS_FILE)
        for name, outcome in (("store", second), ("anew", anew))
    ]
    assert tables[0].equals(tables[1])
    assert second.content_hash == anew.content_hash != first.content_hash


def test_a_channel_that_cannot_be_had_is_named(store: Path) -> None:
    """RET-7: without a model, or with another one than the generation's, the others answer and the reason is told."""
    with opened(of_store(store, model="")) as searching:
        answer = searching.search(asked())
    assert answer.results
    assert "embedding.sparse.model" in answer.failed_channels["sparse"]


def test_another_encoder_has_no_weights(searcher: Searcher) -> None:
    """RET-7: weights are compared with those of the same encoder alone."""
    with pytest.raises(StoreError, match="expected term weights of another, found model"):
        generation_of(searcher).impacts("another")


def test_masked_contents_have_their_own_weights(searcher: Searcher, encoder: TermEncoder) -> None:
    """RET-7, RET-15: contents without what they are asked with are found by what is left of them."""
    generation, rest = generation_of(searcher), "Bananas are ripe."
    (query,), (left,) = encoder.weigh_queries([QUESTION]), encoder.weigh([rest])
    index = generation.impacts(encoder.name)
    ((rows, scores),) = index.search_many([query], 10, [None])
    best = int(rows[0])
    masks = Masks.of(generation.chunks, {generation.contents[best]: rest})
    ((others, masked),) = MaskedImpacts(index, masks, [left]).search_many([query], 10, [None])
    expected = {row: score for row, score in zip(rows.tolist(), scores.tolist(), strict=True) if row != best}
    if query.dot(left):
        expected[best] = float(query.dot(left))
    assert dict(zip(others.tolist(), masked.tolist(), strict=True)) == expected
