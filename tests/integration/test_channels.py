"""Several encoders and token embeddings, from sources to an opened generation."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from tests.support.ingestion import FORBIDDEN, a_plan, a_tree
from tests.support.parts import embed
from weft.catalog.catalog import Catalog
from weft.embedding.encoders.encoder import load_encoder
from weft.embedding.late_interaction import compressed, max_similarities, unit_rows
from weft.embedding.projection import stored_projection
from weft.indexes.generation import Generation
from weft.ingestion.pipeline import ingest
from weft.ingestion.plan import IndexPlan
from weft.ingestion.report import IndexOutcome
from weft.runtime.stages import HERE
from weft.settings import load_settings

TOKENS = "embedding.tokens={enabled: true, dimension: 8, pooling: 2}"
SHORT = "embedding.further=[{dimension: 8}]"
TURNED = "tests.support.ingestion:TurnedEncoder"


def run(plan: IndexPlan) -> IndexOutcome:
    return ingest(plan, Catalog(plan.store), HERE, lambda _: None, clock=time.monotonic)


def live(store: Path) -> Generation:
    return Catalog(store).open_live()


def files(store: Path, encoder: str = "model") -> dict[str, bytes]:
    folder = store / "generations" / str(Catalog(store).pointer().generation) / "vectors" / encoder
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return a_tree(tmp_path, files=6)


def test_each_encoder_is_a_dense_channel_of_its_own(source: Path, tmp_path: Path) -> None:
    """ING-19: several encoders at once give a generation several sets of vectors over the same rows."""
    plan = a_plan(source, tmp_path / "store", SHORT)
    outcome = run(plan)
    generation = live(plan.store)
    assert generation.encoders == ["model", "model-8d"]
    assert outcome.embedded == 2 * len(generation.contents)
    rows = range(len(generation.contents))
    texts = [content.text for content in generation.chunks.contents(rows)]
    whole = np.array([embed(text) for text in texts])
    assert np.allclose(generation.dense("model").vectors(rows), whole, atol=2e-3)
    assert np.allclose(generation.dense("model-8d").vectors(rows), unit_rows(whole[:, :8]), atol=2e-3)
    generation.close()
    assert run(a_plan(source, tmp_path / "store", SHORT, encoder=FORBIDDEN)).embedded == 0


def test_an_encoder_taken_out_is_gone(source: Path, tmp_path: Path) -> None:
    """ING-19, ING-25: the next run serves the encoders that are configured, whatever the one before had."""
    run(a_plan(source, tmp_path / "store", SHORT))
    run(a_plan(source, tmp_path / "store"))
    generation = live(tmp_path / "store")
    assert generation.encoders == ["model"]
    generation.close()


def test_vectors_made_otherwise_are_never_mixed(source: Path, tmp_path: Path) -> None:
    """ING-20, ARC-9: after a change of arithmetic every vector is the new one, as in a store that never had another."""
    for store, ways in ((tmp_path / "store", ("256", "128")), (tmp_path / "fresh" / "store", ("128",))):
        store.parent.mkdir(exist_ok=True)
        for tokens in ways:
            run(a_plan(source, store, f"embedding.max_tokens={tokens}", encoder=TURNED))
    assert files(tmp_path / "store") == files(tmp_path / "fresh" / "store")


def test_token_embeddings_lie_in_row_order_under_one_projection(source: Path, tmp_path: Path) -> None:
    """ING-19, RET-10: what is stored of a text is its own tokens, compressed; and a query can be matched to it."""
    plan = a_plan(source, tmp_path / "store", TOKENS)
    run(plan)
    generation = live(plan.store)
    store = generation.tokens("model")
    assert store is not None
    assert len(store) == len(generation.contents)
    rows = range(len(store))
    texts = [content.text for content in generation.chunks.contents(rows)]
    states = [np.array([embed(word) for word in text.split()]) for text in texts]
    stored = store.tokens(rows)
    for found, of_text in zip(stored, states, strict=True):
        assert np.array_equal(found, compressed(of_text, store.projection, 2))
    tokens, counts = store.gathered(rows)
    assert np.array_equal(tokens, np.concatenate(stored))
    scores = max_similarities(states[3] @ store.projection, tokens, counts)
    assert int(np.argmax(scores)) == 3
    assert store.bytes_per_content == generation.manifest.dense["model"].token_bytes > 0
    generation.close()


def test_tokens_of_unchanged_documents_are_taken_over(source: Path, tmp_path: Path) -> None:
    """ING-25: after a change of one document the token store is the one that a run over everything makes."""
    run(a_plan(source, tmp_path / "store", TOKENS))
    (source / "module_01.py").write_text('def fresh(value):\n    """Return a fresh value."""\n    return value\n')
    outcome = run(a_plan(source, tmp_path / "store", TOKENS))
    assert 0 < outcome.embedded < 5
    (tmp_path / "fresh").mkdir()
    run(a_plan(source, tmp_path / "fresh" / "store", TOKENS))
    assert files(tmp_path / "store") == files(tmp_path / "fresh" / "store")


def test_without_tokens_none_are_stored_even_after_a_run_with_them(source: Path, tmp_path: Path) -> None:
    """ING-19: token embeddings are off by configuration, and turning them off takes them away."""
    run(a_plan(source, tmp_path / "store", TOKENS))
    run(a_plan(source, tmp_path / "store"))
    generation = live(tmp_path / "store")
    assert generation.tokens("model") is None
    generation.close()


@pytest.mark.parametrize("precision", ["int8", "fp32"])
def test_one_forward_pass_gives_both(precision: str, tmp_path: Path) -> None:
    """ING-19: keeping tokens changes no vector; there is one state per token of the text, and they match in meaning."""
    settings = load_settings(environment={}).embedding.model_copy(update={"precision": precision})
    encoder = load_encoder(settings)
    texts = [
        "A checkpoint is written in one transaction.",
        "",
        "Queues hold what consumers have not read.",
        "word " * 999,
    ]
    vectors, states = encoder.encode_tokens(texts, lambda found: found)
    assert np.array_equal(vectors, encoder.encode(texts))
    assert [len(one) for one in states] == [min(encoder.count_tokens(text), encoder.max_tokens) for text in texts]
    words = ["lock", "queue", "index", "token", "thread", "socket", "parser", "cache"]
    projection = stored_projection(tmp_path / "p.npy", encoder, lambda: words, settings.tokens)
    assert np.array_equal(
        stored_projection(tmp_path / "p.npy", encoder, lambda: ["other"], settings.tokens), projection
    )
    assert projection.shape == (encoder.dimension, settings.tokens.dimension)
    _, [query] = encoder.encode_tokens(["how is a checkpoint stored?"], lambda found: found)
    kept = [compressed(one, projection, settings.tokens.pooling) for one in states]
    counts = np.array([len(tokens) for tokens in kept])
    assert int(np.argmax(max_similarities(query @ projection, np.concatenate(kept), counts))) == 0
