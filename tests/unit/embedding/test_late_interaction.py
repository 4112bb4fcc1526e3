from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from weft.embedding.late_interaction import (
    compressed,
    max_similarities,
    quantised,
    trained_projection,
    unit_rows,
    ward_pooled,
)


def drawn(rows: int, width: int, seed: int) -> np.ndarray:
    return unit_rows(np.random.default_rng(seed).normal(size=(rows, width)).astype(np.float32))


@given(st.lists(st.integers(0, 9), min_size=1, max_size=8), st.integers(1, 6), st.integers(0, 2**31 - 1))
@settings(max_examples=examples(60))
def test_max_similarity_is_the_mean_of_each_query_tokens_best_cosine(lengths: list[int], asked: int, seed: int) -> None:
    """RET-10: the definition of Khattab and Zaharia, token by token, averaged over the query."""
    query = drawn(asked, 12, seed)
    stored = [quantised(drawn(length, 12, seed + at)) for at, length in enumerate(lengths)]
    counts = np.array([len(tokens) for tokens in stored])
    for score, tokens in zip(max_similarities(query, np.concatenate(stored), counts), stored, strict=True):
        best = [max((cosine(one, other) for other in tokens), default=0.0) for one in query]
        assert abs(score - np.mean(best)) < 1e-5


@given(st.integers(1, 40), st.integers(2, 64), st.integers(0, 2**31 - 1))
@settings(max_examples=examples(40))
def test_eight_bits_keep_directions(rows: int, width: int, seed: int) -> None:
    """ING-19: the cosine between a token and what is stored of it stays above .999."""
    tokens = drawn(rows, width, seed)
    assert all(cosine(one, kept) > 0.999 for one, kept in zip(tokens, quantised(tokens), strict=True))


@given(st.integers(1, 30), st.integers(1, 6), st.integers(0, 2**31 - 1))
@settings(max_examples=examples(40))
def test_pooling_leaves_one_vector_for_so_many_tokens(rows: int, pooling: int, seed: int) -> None:
    """ING-19: the number stored is the number of tokens over the factor, rounded up; factor 1 keeps all."""
    tokens = drawn(rows, 8, seed)
    pooled = ward_pooled(tokens, pooling)
    assert len(pooled) <= -(-rows // pooling)
    assert np.allclose(np.linalg.norm(pooled, axis=1), 1.0, atol=1e-5)
    if pooling == 1:
        assert np.array_equal(pooled, tokens)


def test_the_projection_keeps_most_of_the_inner_products() -> None:
    """ING-19: no other orthonormal basis of its size keeps more of the sampled tokens, by the singular values."""
    noise = np.random.default_rng(3)
    sample = noise.normal(size=(400, 20)) * np.linspace(3.0, 0.1, 20)
    projection = trained_projection(sample, 6)
    assert np.allclose(projection.T @ projection, np.eye(6), atol=1e-5)
    singular = np.linalg.svd(unit_rows(sample), compute_uv=False)
    kept = float(np.square(unit_rows(sample) @ projection).sum())
    assert abs(kept - float(np.square(singular[:6]).sum())) < 1e-3
    assert np.array_equal(projection, trained_projection(sample, 6))


def test_what_is_stored_of_a_text() -> None:
    """ING-19: projected, pooled and in 8 bits: bytes = ceil(tokens / pooling) times the dimension at most."""
    states = drawn(30, 20, 1)
    stored = compressed(states, trained_projection(states, 5), 4)
    assert stored.dtype == np.int8
    assert stored.shape == (8, 5)
    assert compressed(states[:0], trained_projection(states, 5), 4).shape == (0, 5)


def cosine(one: np.ndarray, other: np.ndarray) -> float:
    one, other = one.astype(np.float64), other.astype(np.float64)
    return float(one @ other / (np.linalg.norm(one) * np.linalg.norm(other)))
