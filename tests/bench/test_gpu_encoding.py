"""ING-21: what a GPU encodes through weft, beside the bare loop of sentence-transformers, in one run.

`python -m pytest -m slow -s tests/bench/test_gpu_encoding.py` on a machine with one.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from tests.bench.test_precisions import texts
from weft.embedding.encoders.encoder import load_encoder
from weft.embedding.models import locate
from weft.settings import load_settings

TEXTS, BARE_BATCHES = 20_000, (32, 256, 1024)
SETTINGS = load_settings(environment={}).embedding.model_copy(update={"device": "cuda"})

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch finds no GPU here"),
]


def test_a_gpu_encodes_as_fast_as_it_can() -> None:
    """ING-21: at least .9 of the texts per second of the best bare loop in the same precision, and alike vectors."""
    some = texts(TEXTS)
    encoder = load_encoder(SETTINGS)
    vectors, own = timed(encoder.encode, some)
    bare = SentenceTransformer(str(locate(SETTINGS)), device="cuda")
    speeds = {}
    for batch in BARE_BATCHES:
        with torch.autocast("cuda", torch.bfloat16):
            plain, speeds[batch] = timed(bare.encode, some, batch_size=batch, normalize_embeddings=True)
        sys.stderr.write(f"\nbare, {batch} texts a batch: {speeds[batch]:.0f} texts per second")
    sys.stderr.write(f"\nweft: {own:.0f} texts per second\n")
    assert (vectors * plain).sum(axis=1).min() >= 0.999
    assert own >= 0.9 * max(speeds.values())


def timed(encode: Callable[..., Any], some: list[str], **options: int | bool) -> tuple[np.ndarray, float]:
    """Vectors of texts, and texts per second, after a first run over some that loads what is needed."""
    encode(some[:2_000], **options)
    began = time.perf_counter()
    vectors = encode(some, **options)
    return np.asarray(vectors), len(some) / (time.perf_counter() - began)
