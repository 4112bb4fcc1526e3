"""ING-21: what each precision costs on the processor at hand, beside single precision, in one run.

`make bench-ingest`, or by itself: `python -m pytest -m slow -s tests/bench/test_precisions.py`.
"""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from weft.embedding.encoders.encoder import Encoder, load_encoder
from weft.embedding.encoders.precision import resolve_precision
from weft.embedding.models import locate
from weft.settings import load_settings

SETTINGS = load_settings(environment={}).embedding
DOCS = Path(__file__).resolve().parents[2] / "docs"
PRECISIONS = ("fp32", "bf16", "int8")
TEXTS, CHARACTERS, COMPARED, ROUNDS = 128, 900, 256, 3

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def texts(number: int) -> list[str]:
    """Pieces of this repository's documents, evenly spread."""
    whole = re.sub(r"\s+", " ", "\n".join(path.read_text() for path in sorted(DOCS.glob("*.md"))))
    step = (len(whole) - CHARACTERS) // number
    return [whole[at * step : at * step + CHARACTERS] for at in range(number)]


@pytest.mark.parametrize("threads", [1, 2])
def test_auto_takes_what_this_processor_does_best(threads: int) -> None:
    """ING-21: as fast as any precision to a tenth, and its vectors stay within a cosine of .998 on average."""
    chosen = SETTINGS.model_copy(update={"threads": threads})
    encoders = {name: load_encoder(chosen.model_copy(update={"precision": name})) for name in PRECISIONS}
    costs = dict.fromkeys(PRECISIONS, np.inf)
    for _ in range(ROUNDS):
        costs = {name: min(costs[name], cost_of(encoder)) for name, encoder in encoders.items()}
    exact = encoders["fp32"].encode(texts(COMPARED))
    auto = resolve_precision("auto", locate(SETTINGS))
    sys.stderr.write(f"\n{threads} threads; auto is {auto} here\n")
    for name, encoder in encoders.items():
        cosines = (encoder.encode(texts(COMPARED)) * exact).sum(axis=1)
        sys.stderr.write(
            f"{name}: {TEXTS / costs[name]:.1f} texts per second of a core, {costs['fp32'] / costs[name]:.2f} of fp32, "
            f"cosine {cosines.mean():.5f}, least {cosines.min():.5f}\n"
        )
        if name == auto:
            assert cosines.mean() >= 0.998
    assert costs[auto] <= 1.1 * min(costs.values())


def cost_of(encoder: Encoder) -> float:
    """Processor seconds that the texts take."""
    began = time.process_time()
    encoder.encode(texts(TEXTS))
    return time.process_time() - began
