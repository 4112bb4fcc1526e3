from __future__ import annotations

from pathlib import Path

import numpy as np

from weft.embedding.cache import Embedded, EmbeddedCache, vector_key


def test_the_key_tells_model_strategy_and_text_apart() -> None:
    """ING-20: a vector is found again only for the same model, strategy and text."""
    keys = {vector_key("m", "s", "t"), vector_key("n", "s", "t"), vector_key("m", "r", "t"), vector_key("m", "s", "u")}
    assert len(keys) == 4


def test_a_kept_vector_is_the_one_first_put(tmp_path: Path) -> None:
    """ARC-9: whoever asks later gets the same bits, even when another worker computed it again."""
    cache = EmbeddedCache(tmp_path / "cache" / "embeddings.sqlite", None)
    first = np.array([0.25, -0.5], dtype=np.float32)
    cache.put({"k": Embedded(first)})
    cache.put({"k": Embedded(first * 2)})
    assert cache.get(["k"])["k"].vector.astype(np.float32).tolist() == [0.25, -0.5]
