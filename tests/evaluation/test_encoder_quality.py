"""What fast arithmetic costs and token embeddings bring, by the dense channel alone; run by `make eval`."""

from __future__ import annotations

import gzip
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from weft.embedding.encoders.encoder import load_encoder
from weft.embedding.late_interaction import compressed, max_similarities
from weft.embedding.projection import stored_projection
from weft.embedding.tokens import load_token_counter
from weft.evaluation.measures.beir import Dataset, read_dataset
from weft.evaluation.measures.metrics import measure
from weft.settings import load_settings

pytestmark = [pytest.mark.slow, pytest.mark.data, pytest.mark.timeout(3600)]

SETTINGS = load_settings(environment={}).embedding.model_copy(update={"threads": os.cpu_count() or 1})
RERANKED = 100
BLEND = 0.5
PUBLISHED = 0.645  # of MiniLM-L6 by exact search


def test_eight_bits_cost_no_ranking(data_root: Path) -> None:
    """ING-21, EVA-5: nDCG@10 on SciFact's test split is the published one in fp32, and within .005 of it in int8."""
    judged = read_dataset(data_root / "scifact", "test")
    ids, texts = corpus(judged)
    found = {}
    for precision in ("fp32", "int8"):
        encoder = load_encoder(SETTINGS.model_copy(update={"precision": precision}))
        vectors = encoder.encode(texts).astype(np.float16).astype(np.float32)
        found[precision] = ndcg(judged, ids, asked(encoder.encode([query.text for query in judged.queries]), vectors))
    sys.stderr.write(f"SciFact, dense alone, nDCG@10: {found}\n")
    assert found["fp32"] == pytest.approx(PUBLISHED, abs=0.001)
    assert abs(found["int8"] - found["fp32"]) <= 0.005


@pytest.mark.parametrize(("name", "split"), [("scifact", "test"), ("nfcorpus", "dev")])
def test_stored_tokens_rank_better_than_vectors(data_root: Path, tmp_path: Path, name: str, split: str) -> None:
    """ING-19, RET-10: the first 100 by cosine, ranked again by stored token embeddings at equal weight."""
    judged = read_dataset(data_root / name, split)
    ids, texts = corpus(judged)
    encoder = load_encoder(SETTINGS)
    words = load_token_counter(SETTINGS).words()
    projection = stored_projection(tmp_path / "projection.npy", encoder, lambda: words, SETTINGS.tokens)
    vectors, stored = encoder.encode_tokens(
        texts, lambda states: compressed(states, projection, SETTINGS.tokens.pooling)
    )
    queries, states = encoder.encode_tokens([query.text for query in judged.queries], lambda found: found @ projection)
    cosines = asked(queries, vectors)
    again = np.full_like(cosines, -1.0)
    for row, query in enumerate(states):
        first = np.argsort(-cosines[row], kind="stable")[:RERANKED]
        compared = [stored[at] for at in first]
        matched = max_similarities(query, np.concatenate(compared), np.array([len(tokens) for tokens in compared]))
        again[row, first] = (1 - BLEND) * ranged(cosines[row, first]) + BLEND * ranged(matched)
    before, after = ndcg(judged, ids, cosines), ndcg(judged, ids, again)
    size = np.mean([one.nbytes for one in stored])
    sys.stderr.write(f"{name} {split}: nDCG@10 {before:.4f} → {after:.4f}, {size:.0f} bytes of tokens a text\n")
    assert after > before


def corpus(judged: Dataset) -> tuple[list[str], list[str]]:
    with gzip.open(judged.corpus, "rt", encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    return [one["_id"] for one in records], [f"{one.get('title', '')}\n\n{one['text']}".strip() for one in records]


def asked(queries: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    return np.asarray(queries @ vectors.T)


def ranged(scores: np.ndarray) -> np.ndarray:
    return np.asarray((scores - scores.min()) / max(float(scores.max() - scores.min()), 1e-9))


def ndcg(judged: Dataset, ids: Sequence[str], scores: np.ndarray) -> float:
    run = {}
    for query, row in zip(judged.queries, scores, strict=True):
        best = np.argsort(-row, kind="stable")[:RERANKED]
        run[query.query_id] = {ids[at]: float(len(best) - rank) for rank, at in enumerate(best)}
    measured = measure(run, judged.qrels)["ndcg_at_10"]
    return float(np.mean(list(measured.values())))
