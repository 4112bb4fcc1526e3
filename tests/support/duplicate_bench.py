"""Near-duplicates planted in texts, and how many are found, by a process of its own: its time and memory are its own.

    python -m tests.support.duplicate_bench TEXTS FOUND     weft's search for near-duplicates
    python tests/support/rivals/semhash_duplicates.py …     SemHash's, with the same arguments and MODEL

TEXTS has a JSON string a line; FOUND says of each text which one stands for it, with seconds and peak memory.
"""

from __future__ import annotations

import gzip
import json
import random
import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tests.support.near_duplicates import opposites, plantings
from weft.consolidation.steps.duplicates import find_duplicates, word_lists
from weft.domain.ids import ContentHash, content_hash
from weft.embedding.static_vectors import static_vectors
from weft.learning.evidence import Evidence
from weft.settings import load_settings


@dataclass
class Planted:
    """Texts, each once.

    Attributes:
        pairs: Places of a text and of what was made of it, by how it was made.
    """

    texts: list[str]
    pairs: dict[str, list[tuple[int, int]]] = field(default_factory=dict)


def collection(name: str, data: Path) -> list[str]:
    """The texts of a collection, those of twenty words at least, each once."""
    with gzip.open(data / name / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        texts = [json.loads(line)["text"].strip() for line in lines]
    return [text for text in dict.fromkeys(texts) if len(text.split()) >= 20]


def mixed(texts: Sequence[str], count: int, rng: random.Random) -> list[str]:
    """So many different texts, each of five sentences drawn from all."""
    sentences = [part.strip(" .") for text in texts for part in text.split(". ") if len(part.split()) >= 5]
    return list(dict.fromkeys(". ".join(rng.sample(sentences, 5)) + "." for _ in range(count)))


def plant(texts: Sequence[str], each: int, *, seed: int = 0) -> Planted:
    """The texts, and near-duplicates and opposites of some, `each` of every kind, no text used twice."""
    rng = random.Random(seed)
    words = [word for text in rng.sample(list(texts), min(len(texts), 2000)) for word in text.split()]
    waiting = rng.sample(range(len(texts)), len(texts))
    planted = Planted(list(texts))
    known = set(texts)
    for kind, change in {**plantings(words, rng), **opposites(rng)}.items():
        pairs = planted.pairs.setdefault(kind, [])
        while waiting and len(pairs) < each:
            at = waiting.pop()
            made = change(texts[at])
            if made is not None and made not in known:
                known.add(made)
                pairs.append((at, len(planted.texts)))
                planted.texts.append(made)
    return planted


def found_shares(planted: Planted, standing: Sequence[int]) -> dict[str, float]:
    """Share of the planted pairs of which one text stands for both, by how they were made."""
    return {
        kind: float(np.mean([standing[one] == standing[other] for one, other in pairs]))
        for kind, pairs in planted.pairs.items()
        if pairs
    }


class PlainMemory:
    """Texts that are all of different documents."""

    def __init__(self, texts: Sequence[str]) -> None:
        named = sorted((content_hash(text), at) for at, text in enumerate(texts))
        self.contents: Sequence[ContentHash] = [name for name, _ in named]
        self.places = [at for _, at in named]
        self._texts = [texts[at] for at in self.places]

    def texts(self, rows: Sequence[int]) -> Sequence[str]:
        return [self._texts[row] for row in rows]

    def since(self) -> Sequence[float]:
        return [0.0] * len(self._texts)

    def in_distinct_documents(self, pairs: NDArray[np.int64]) -> NDArray[np.bool_]:
        return np.ones(len(pairs), dtype=bool)


def main(texts_file: str, found_file: str) -> None:
    """Find near-duplicates among the texts of a file and say what stands for each."""
    texts = [json.loads(line) for line in Path(texts_file).read_text(encoding="utf-8").splitlines()]
    settings = load_settings(environment={})
    static_vectors(settings.embedding)  # distilled before, once per model
    began, used = time.perf_counter(), time.process_time()
    memory = PlainMemory(texts)
    vectors = static_vectors(settings.embedding)
    found = find_duplicates(memory, vectors, Evidence(), word_lists(settings), settings.consolidation.duplicates)
    seconds, cpu = time.perf_counter() - began, time.process_time() - used
    place = dict(zip(memory.contents, memory.places, strict=True))
    standing = [place[found.aliases.of(content_hash(text))] for text in texts]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    result = {"seconds": seconds, "cpu_s": cpu, "peak_mib": peak, "candidates": found.candidates, "standing": standing}
    Path(found_file).write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
