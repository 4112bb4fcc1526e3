"""RET-7: one model fills the dense and the sparse channel from one forward pass, as BGE-M3 does."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from huggingface_hub.utils import filter_repo_objects
from sentence_transformers.sentence_transformer.modules import Transformer
from torch.nn.modules.module import register_module_forward_hook
from transformers import AutoModel, AutoTokenizer

from tests.support.sparse_head_model import MAX_TOKENS, save_tiny_m3
from tests.support.sparse_model import QUESTION, TEXTS
from weft.app.searching.engines import opened
from weft.cli.commands import reindex
from weft.cli.reports.evaluate import measuring
from weft.domain.arrays import TermWeights
from weft.domain.errors import ModelUnavailableError
from weft.domain.ids import QueryId
from weft.domain.ranking import Channel, Query
from weft.embedding import models
from weft.embedding.cache import Embedded, EmbeddedCache
from weft.embedding.encoders.encoder import load_encoder
from weft.embedding.encoders.sparse import OnePassEncoder, SparseHead
from weft.indexes import schemas
from weft.indexes.manifest import WEIGHTS_FILE
from weft.runtime.stages import HERE
from weft.settings import Settings, load_settings

pytestmark = pytest.mark.integration

SCALE = 100


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_m3(tmp_path_factory.mktemp("models") / "tiny-m3", [QUESTION, *TEXTS.values()])


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source")
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    return folder


def of_store(store: Path, model: Path, *changes: str) -> Settings:
    own = [
        f"storage.root={store}",
        f"embedding.model='{model}'",
        f"embedding.max_tokens={MAX_TOKENS}",
        "embedding.precision=fp32",
        "embedding.device=cpu",
        "embedding.tokens.dimension=16",
        "embedding.sparse.model=same",
        "retrieval.channels=[dense, lexical, sparse]",
    ]
    return measuring(load_settings([], [*own, *changes], environment={}))


def indexed(store: Path, source: Path, model: Path, *changes: str) -> reindex.IndexOutcome:
    return reindex.run(reindex.plan_of(of_store(store, model, *changes), [source]), watch=lambda _: None, executor=HERE)


@contextmanager
def counted_passes() -> Iterator[list[int]]:
    """Rows of each forward pass of the transformer; the one that tells its width, of a single token, left out."""
    rows: list[int] = []

    def note(module: torch.nn.Module, _: object, output: Any) -> None:
        if isinstance(module, Transformer):
            texts, tokens, _ = output["token_embeddings"].shape
            rows.extend([texts] if tokens > 1 else [])

    hook = register_module_forward_hook(note)
    try:
        yield rows
    finally:
        hook.remove()


def one_pass(model: Path, *changes: str) -> OnePassEncoder:
    settings = of_store(Path("none"), model, *changes).embedding
    return OnePassEncoder(load_encoder(settings), SparseHead(settings))


def by_hand(model: Path, text: str) -> dict[int, float]:
    """Σ-free definition: of each term max over its tokens of relu(w · h + b), by transformers and plain torch."""
    tokenizer, transformer = AutoTokenizer.from_pretrained(str(model)), AutoModel.from_pretrained(str(model)).eval()
    head = torch.nn.Linear(transformer.config.hidden_size, 1)
    head.load_state_dict(torch.load(model / "sparse_linear.pt"))
    read = tokenizer(text, return_tensors="pt", truncation=True, max_length=MAX_TOKENS)
    with torch.inference_mode():
        weights = torch.relu(head(transformer(**read).last_hidden_state))[0, :, 0].tolist()
    heaviest: dict[int, float] = {}
    for term, weight in zip(read["input_ids"][0].tolist(), weights, strict=True):
        if term not in tokenizer.all_special_ids:
            heaviest[term] = max(weight, heaviest.get(term, 0.0))
    return heaviest


@pytest.mark.parametrize(("precision", "apart"), [("fp32", 1), ("int8", 3)])
def test_weights_are_those_of_the_head(model: Path, precision: str, apart: int) -> None:
    """RET-7: round(100 · max over its tokens of relu(w · h + b)), M3-Embedding's; ends and unknown have none."""
    texts = [QUESTION, *TEXTS.values(), "kafka 漢字 kafka </s> offsets", "", "offsets " * 90]
    encoder = one_pass(model, f"embedding.precision={precision}")
    unknown = AutoTokenizer.from_pretrained(str(model))(texts[4])["input_ids"]
    assert unknown.count(3) == 1
    for text, weights in zip(texts, encoder.weigh(texts), strict=True):
        expected = {term: weight * SCALE for term, weight in by_hand(model, text).items()}
        found = dict(zip(weights.terms.tolist(), weights.weights.tolist(), strict=True))
        assert found.keys() <= expected.keys()
        assert {term: found.get(term, 0) for term in expected} == pytest.approx(expected, abs=apart)
        assert bool(found) == bool(text)
        (alone,) = encoder.weigh([text])
        assert np.array_equal(alone, weights)
    few = one_pass(model, "embedding.sparse.most_terms=3", "embedding.sparse.most_query_terms=2")
    assert [len(few.weigh([QUESTION])[0].terms), len(few.weigh_queries([QUESTION])[0].terms)] == [3, 2]


@pytest.mark.slow
def test_indexing_passes_each_text_once(model: Path, source: Path, tmp_path: Path) -> None:
    """RET-7, ING-20: weights cost no forward pass; a text of which not all is cached is passed once more."""
    with counted_passes() as without:
        dense = indexed(tmp_path / "dense", source, model, "embedding.sparse.model=''")
    with counted_passes() as both:
        first = indexed(tmp_path / "both", source, model)
    assert sum(both) == sum(without) > len(TEXTS)  # what trains the projection of tokens is passed, too
    assert first.content_hash != dense.content_hash

    def passed(*changes: str) -> tuple[int, bool]:
        with counted_passes() as rows:
            outcome = indexed(tmp_path / "dense", source, model, *changes)
        return sum(rows), outcome.published

    assert passed() == (len(TEXTS), True)  # vectors were cached, weights were not
    assert passed() == (0, False)
    assert passed("embedding.threads=2", "embedding.sparse.max_tokens=32") == (0, False)  # the encoder's hold
    assert passed("embedding.sparse.scale=200") == (len(TEXTS), True)
    assert passed("embedding.sparse.model=''") == (0, True)
    assert passed() == (0, True)
    stored = [
        folder / "generations" / outcome.generation / WEIGHTS_FILE
        for folder, outcome in (
            (tmp_path / "both", first),
            (tmp_path / "dense", indexed(tmp_path / "dense", source, model)),
        )
    ]
    assert pq.read_table(stored[0]).equals(pq.read_table(stored[1]))


def test_a_text_is_known_by_all_that_is_kept_of_it(tmp_path: Path) -> None:
    """RET-7, ING-20: a vector without weights is not known where both are kept, nor are weights of another making."""
    path, vector, weights = tmp_path / "c.sqlite", np.ones(2, dtype=np.float16), TermWeights.of({3: 7})
    EmbeddedCache(path, None).put({"a": Embedded(vector), "b": Embedded(vector)})
    both = EmbeddedCache(path, None, "head")
    both.put({"b": Embedded(vector, None, weights)})
    both._weights.put({both._weights_key("c"): weights})  # type: ignore[union-attr]  # weights whose vector is lost
    known = both.get(["a", "b", "c"])
    assert known.keys() == {"b"}
    assert np.array_equal(known["b"].weights, weights)
    assert not EmbeddedCache(path, None, "another").get(["b"])
    assert EmbeddedCache(path, None).get(["a", "b"]).keys() == {"a", "b"}


def test_both_channels_answer_from_one_pass(model: Path, source: Path, tmp_path: Path) -> None:
    """RET-7, RET-18: scores are dot products with what is stored; the explanation names both channels."""
    outcome = indexed(tmp_path, source, model)
    table = pq.read_table(tmp_path / "generations" / outcome.generation / WEIGHTS_FILE)
    (query,) = one_pass(model).weigh_queries([QUESTION])
    products = {
        name: float(query.dot(weights))
        for name, weights in zip(table["content_hash"].to_pylist(), schemas.table_to_weights(table), strict=True)
    }
    with opened(of_store(tmp_path, model)) as searcher:
        assert searcher.snapshot.generation.manifest.models["sparse"].startswith("tiny-m3@")  # type: ignore[attr-defined]
        with counted_passes() as rows:
            answer = searcher.search(Query(text=QUESTION, query_id=QueryId("q"), k=10))
        assert rows == [1]
        with counted_passes() as rows:
            searcher.search_many([Query(text=text, query_id=QueryId(text), k=10) for text in ("ripe fruit", "a lock")])
        assert sum(rows) == 2
    assert not answer.failed_channels
    assert dict(answer.heads[Channel.SPARSE]) == {name: product for name, product in products.items() if product}
    for result in answer.results:
        assert {Channel.DENSE, Channel.SPARSE} <= set(result.channels) or not products[result.content_hash]
        assert {"vector", "sparse"} <= {part.name for part in result.contributions}
    assert any(Channel.SPARSE in result.channels for result in answer.results)


class Failing:
    name = "failing"

    def __init__(self) -> None:
        self.asked = 0

    def encode_tokens(self, texts, keep):  # type: ignore[no-untyped-def]
        self.asked += 1
        raise ModelUnavailableError("expected vectors, found a broken model")


def test_who_asks_for_the_same_text_waits_for_its_pass(model: Path) -> None:
    """RET-7: asked by many threads at once, a text is passed once for all of them; what fails is asked again."""
    encoder, texts = one_pass(model), [QUESTION, "ripe fruit", *TEXTS.values()]
    (*together,) = range(8)
    start, found = threading.Barrier(len(together)), {}

    def ask(number: int) -> None:
        start.wait()
        asked = texts[number % 4 :]
        found[number] = encoder.encode(asked) if number % 2 else encoder.weigh_queries(asked)

    with counted_passes() as rows:
        threads = [threading.Thread(target=ask, args=(number,)) for number in together]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sum(rows) == len(texts)
    alone = one_pass(model)
    for number, given in found.items():
        asked = texts[number % 4 :]
        expected = alone.encode(asked) if number % 2 else alone.weigh_queries(asked)
        assert all(map(np.array_equal, given, expected))
    with counted_passes() as rows:
        assert encoder.encode(["a"] * 300).shape == (300, 32)
    assert sum(rows) == 300  # so many are no query: nothing of them is held
    failing = Failing()
    broken = OnePassEncoder(failing, SparseHead(of_store(Path("none"), model).embedding))
    for _ in range(2):
        with pytest.raises(ModelUnavailableError, match="broken"):
            broken.weigh_queries([QUESTION])
    assert failing.asked == 2


def test_a_model_without_a_head_is_refused(model: Path, source: Path, tmp_path: Path) -> None:
    """RET-7: before anything is read, with the setting's name; a head of another model, or a damaged one, likewise."""
    plain = tmp_path / "plain"
    shutil.copytree(model, plain)
    head = plain / "sparse_linear.pt"
    head.unlink()
    with pytest.raises(ModelUnavailableError, match=r"embedding\.sparse\.model: .*sparse_linear\.pt.*found none"):
        indexed(tmp_path / "store", source, plain)
    assert not (tmp_path / "store" / "generations").exists()
    head.write_bytes(b"no weights")
    with pytest.raises(ModelUnavailableError, match=r"embedding\.sparse\.model.*sparse_linear\.pt, found"):
        one_pass(plain)
    torch.save(torch.nn.Linear(7, 1).state_dict(), head)
    with pytest.raises(ModelUnavailableError, match=r"embedding\.sparse\.model: .* 32 numbers, found one for 7"):
        one_pass(plain).weigh([QUESTION])


def test_the_hub_gives_the_head() -> None:
    """RET-7: what is left out of a snapshot is the same weights for other runtimes, and not the head."""
    files = ["pytorch_model.bin", "sparse_linear.pt", "onnx/model.onnx", "modules.json"]
    kept = filter_repo_objects(files, ignore_patterns=models._UNUSED)
    assert set(kept) == {"pytorch_model.bin", "sparse_linear.pt", "modules.json"}
