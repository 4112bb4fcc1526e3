"""CON-2: static vectors distilled from the encoder in use."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from tests.support.near_duplicates import denied, noisy, noticed, reordered
from weft.embedding import static_vectors as module
from weft.embedding.models import locate
from weft.embedding.static_vectors import StaticVectors, distilled, static_vectors
from weft.settings import load_settings

EMBEDDING = load_settings(environment={}).embedding
TEXTS = [
    "The scheduler retries a failed task three times before it gives up. Workers that were started by hand are listed "
    "in the console, with the machine that they run on and the time since their last sign of life.",
    "Whoever publishes a package signs it with a key of their own. Clients refuse packages whose signature they cannot "
    "check, and say which key was expected and where it can be had.",
    "Proteins of the membrane were isolated from the cells of forty patients. Their concentration rose with the age of "
    "the patient and fell during the treatment, as had been reported of smaller cohorts.",
]


class Letters:
    """An encoder whose vectors are counts of letters."""

    name, dimension, max_tokens = "letters", 26, 100

    def encode(self, texts: list[str]) -> np.ndarray:
        return np.array([[text.count(chr(97 + at)) for at in range(26)] for text in texts], np.float32)


@pytest.fixture(scope="module")
def vectors() -> StaticVectors:
    """The bundled encoder's, from its tokenizer and an encoder of letters: no forward pass."""
    folder = locate(EMBEDDING)
    return StaticVectors(distilled(Letters(), folder), folder)  # type: ignore[arg-type]


def test_order_says_nothing_and_length_is_one(vectors: StaticVectors) -> None:
    """CON-2: a mean over tokens; the same sentences in another order have the same vector."""
    again = [str(reordered(text, random.Random(1))) for text in TEXTS]
    rows = vectors([*TEXTS, *again, ""])
    assert np.allclose(rows[:3], rows[3:6], atol=1e-6)
    assert np.allclose(np.linalg.norm(rows[:6], axis=1), 1.0, atol=1e-6)
    assert not rows[6].any()


def test_a_table_is_distilled_once_and_read_back_to_the_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CON-2: by the fingerprint of the model; what is no table is made anew."""
    here = EMBEDDING.model_copy(update={"model_folder": str(tmp_path)})
    loaded = []
    monkeypatch.setattr(module, "load_encoder", lambda _settings: loaded.append(1) or Letters())
    first = static_vectors(here)(TEXTS)
    assert np.array_equal(static_vectors(here)(TEXTS), first)
    assert len(loaded) == 1
    (kept,) = tmp_path.glob("static-*.npy")
    kept.write_bytes(b"damaged")
    assert np.array_equal(static_vectors(here)(TEXTS), first)
    assert len(loaded) == 2


def test_frequent_tokens_count_less() -> None:
    """CON-2: a / (a + p), with p the share of the texts at hand: what all texts have hardly tells them apart."""
    folder = locate(EMBEDDING)
    table = np.eye(30_522, 256, dtype=np.float32)[np.arange(30_522) % 256][:, ::-1].copy()
    read = StaticVectors(table, folder)
    few = read(["shared alpha", "shared beta"])
    many = read(["shared alpha", "shared beta", *["shared"] * 30_000])
    assert many[0] @ many[1] < few[0] @ few[1]


@pytest.mark.slow
def test_near_duplicates_lie_above_the_threshold_and_other_texts_below() -> None:
    """CON-2: changed texts lie near the text, other texts do not, and its opposite lies nearest of all."""
    rng, words = random.Random(3), " ".join(TEXTS).split()
    changed = [change(text) for text in TEXTS for change in (lambda text: noisy(text, 0.05, words, rng), noticed)]
    rows = static_vectors(EMBEDDING)([*TEXTS, *changed, *(str(denied(text, rng)) for text in TEXTS[:1])])
    cosines = rows[:3] @ rows.T
    near, others = cosines[[0, 0, 1, 1, 2, 2], np.arange(3, 9)].min(), np.triu(cosines[:, :3], 1).max()
    assert near > 0.85
    assert others < near - 0.05
    assert cosines[0, 9] > 0.95  # no cosine tells a text from its opposite
