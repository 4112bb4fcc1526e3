"""Vectors of real text: short windows of what installed packages say, read by the bundled encoder."""

from __future__ import annotations

import hashlib
import os
import site
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from weft.embedding.encoders.encoder import load_encoder
from weft.settings import load_settings

KINDS = (".py", ".pyi", ".md", ".rst", ".txt")
WORDS, CHARACTERS, LEAST = 12, 110, 40
BLOCK = 4_096


def real_vectors(count: int, kept: Path | None = None) -> np.ndarray:
    """float16 (count, 384); `kept` names a file that holds them already, or will."""
    if kept is not None and kept.exists():
        return np.load(kept, mmap_mode="r")[:count]
    changes = {"threads": os.cpu_count() or 1, "max_tokens": 32}
    encoder = load_encoder(load_settings(environment={}).embedding.model_copy(update=changes))
    texts = real_texts(count)
    vectors = np.zeros((len(texts), encoder.dimension), dtype=np.float16)
    for start in range(0, len(texts), BLOCK):
        vectors[start : start + BLOCK] = encoder.encode(texts[start : start + BLOCK])
    if kept is not None:
        np.save(kept, vectors)
    return vectors


def real_texts(count: int) -> list[str]:
    """Distinct windows in an order that says nothing about where they come from."""
    found: dict[bytes, str] = {}
    for path in _files():
        try:
            words = path.read_text(encoding="utf-8").split()
        except (OSError, UnicodeDecodeError):
            continue
        for start in range(0, min(len(words), 2_000), WORDS):
            text = " ".join(words[start : start + WORDS])[:CHARACTERS]
            if len(text) >= LEAST:
                found.setdefault(hashlib.sha256(text.encode()).digest(), text)
        if len(found) > 2 * count:
            break
    return [found[key] for key in sorted(found)][:count]


def _files() -> Iterator[Path]:
    paths = [path for folder in site.getsitepackages() for path in Path(folder).rglob("*") if path.suffix in KINDS]
    return iter(sorted(paths, key=lambda path: hashlib.sha256(str(path).encode()).digest()))
