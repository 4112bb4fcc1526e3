"""ING-19: pooling by Ward's clusters against scikit-learn's agglomerative clustering."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import AgglomerativeClustering

from weft.embedding.late_interaction import unit_rows, ward_pooled


@pytest.mark.parametrize(("rows", "pooling"), [(12, 3), (50, 4), (191, 4), (40, 7)])
def test_pooled_tokens_are_the_means_of_wards_clusters(rows: int, pooling: int) -> None:
    """ING-19: the same clusters as scikit-learn finds, each as its mean of length 1."""
    tokens = unit_rows(np.random.default_rng(rows).normal(size=(rows, 16)))
    labels = AgglomerativeClustering(n_clusters=-(-rows // pooling), linkage="ward").fit_predict(tokens)
    expected = np.array([tokens[labels == label].mean(axis=0) for label in dict.fromkeys(labels)])
    assert np.allclose(ward_pooled(tokens, pooling), unit_rows(expected), atol=1e-6)
