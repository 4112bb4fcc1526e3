"""Token embeddings made small, and matching by them: projected, pooled and 8-bit, compared by MaxSim (ING-19, RET-10).

Khattab and Zaharia, ColBERT (SIGIR 2020), score a text by each query token's best match in it; Clavié, Chaffin and
Adams, Reducing the Footprint of Multi-Vector Retrieval with Token Pooling (2024), pool a text's tokens by Ward's
clusters. Pure functions: nothing here knows a model or a file.
"""

from __future__ import annotations

import numpy as np

_LARGEST = 127  # of a stored component; −128 is left out, so that both signs reach as far


def trained_projection(sample: np.ndarray, dimension: int) -> np.ndarray:
    """The projection, (width, dimension), that keeps most of what cosines between sampled tokens are made of.

    The leading right singular vectors of the unit rows, not centred: inner products are to be kept, not variance.
    """
    rows = unit_rows(np.asarray(sample, dtype=np.float64))
    _, vectors = np.linalg.eigh(rows.T @ rows)
    leading = vectors[:, ::-1][:, :dimension]
    signs = np.sign(leading[np.abs(leading).argmax(axis=0), np.arange(leading.shape[1])])
    return np.asarray(leading * signs, dtype=np.float32)


def compressed(states: np.ndarray, projection: np.ndarray, pooling: int) -> np.ndarray:
    """One text's tokens as they are stored: int8 (ceil(tokens / pooling), dimension), directions of any length."""
    return quantised(ward_pooled(unit_rows(_product(states, projection)), pooling))


def ward_pooled(tokens: np.ndarray, pooling: int) -> np.ndarray:
    """Means of Ward clusters of unit rows, `pooling` rows in a cluster on average, in order of first appearance."""
    wanted = -(-len(tokens) // pooling)
    if wanted == len(tokens):
        return tokens
    # A search pools nothing, and has no time for these.
    from scipy import cluster, spatial  # noqa: PLC0415

    # Ward needs distances of points: of unit rows they follow from cosines, which may be a rounding above 1.
    cosines = spatial.distance.squareform(_product(tokens, tokens.T).astype(np.float64), checks=False)
    apart = np.sqrt(np.maximum(0.0, 2.0 - 2.0 * cosines))
    merges = cluster.hierarchy.linkage(apart, "ward")[: len(tokens) - wanted, :2]
    member = np.zeros((wanted, len(tokens)), dtype=tokens.dtype)
    member[_clusters(merges.astype(np.int64), len(tokens)), np.arange(len(tokens))] = 1.0
    return unit_rows(_product(member, tokens))


def _product(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """By PyTorch, on the threads that the encoder gave it: NumPy's would wake more, which wait for one another."""
    import torch  # noqa: PLC0415  who reads what is stored does without

    product: np.ndarray = torch.mm(torch.from_numpy(one), torch.from_numpy(other)).numpy()
    return product


def _clusters(merges: np.ndarray, count: int) -> list[int]:
    """For each of `count` rows its cluster, numbered by first appearance, after merges as `linkage` numbers them.

    Examples:
        >>> _clusters(np.array([[1, 2], [0, 4]]), 4)
        [0, 0, 0, 1]
    """
    root = list(range(count + len(merges)))
    # From the last merge to the first: what was merged last stands for all that it was made of.
    for at, (one, other) in reversed(list(enumerate(merges.tolist(), start=count))):
        root[one] = root[other] = root[at]
    numbers: dict[int, int] = {}
    return [numbers.setdefault(cluster, len(numbers)) for cluster in root[:count]]


def quantised(tokens: np.ndarray) -> np.ndarray:
    """Directions in 8 bits: each row scaled so that its largest component is ±127, int8."""
    largest = np.abs(tokens).max(axis=1, keepdims=True, initial=0.0)
    return np.rint(tokens * (_LARGEST / np.where(largest > 0.0, largest, 1.0))).astype(np.int8)


def max_similarities(query: np.ndarray, tokens: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Mean over a query's tokens of the best cosine to a token of each text: float32 (texts,), 0 without any.

    The texts' tokens stand one after the other, int8 (tokens, dimension), `counts` of each.
    """
    scores = np.zeros(len(counts), dtype=np.float32)
    filled = np.flatnonzero(counts)
    if not len(filled):
        return scores
    directions = tokens.astype(np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->i", directions, directions))
    cosines = directions @ unit_rows(query.astype(np.float32)).T
    cosines /= np.where(lengths > 0.0, lengths, np.float32(1.0))[:, None]
    # `reduceat` takes the next text's first token for one without any: so only texts with tokens are given to it.
    starts = (np.cumsum(counts) - counts)[filled]
    scores[filled] = np.maximum.reduceat(cosines, starts, axis=0).mean(axis=1)
    return scores


def unit_rows(rows: np.ndarray) -> np.ndarray:
    """Rows of length 1; a row of zeros stays one."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0.0, lengths, 1.0), dtype=rows.dtype)
