"""SCL-12: how long a search takes whose shards are on Ray Serve: one of all contents, beside four of the same.

`WEFT_SERVED` says over how many contents (100,000). Texts and vectors are made cheaply, and no model encodes questions:
all that differs between the two is how often shards are asked, and what that costs.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.support.growth_bench import DIMENSION, write_parts
from tests.support.search_bench import Line
from tests.support.served import on_serve
from tests.support.sharded import NOW, SETTINGS, published
from weft.catalog.catalog import Catalog
from weft.domain.ids import QueryId
from weft.domain.ranking import Query
from weft.retrieval.searcher import Searcher
from weft.retrieval.snapshot.live import CatalogSource
from weft.retrieval.snapshot.ports import Fleet

CONTENTS = int(os.environ.get("WEFT_SERVED") or 100_000)
WARM, QUERIES = 150, 300


class DrawnEncoder:
    """Directions among those of the texts' vectors, by the length of the text."""

    name = "drawn"

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        vectors = [np.random.default_rng(len(text)).normal(size=DIMENSION) for text in texts]
        return np.array([each / np.linalg.norm(each) for each in vectors], dtype=np.float32)


def _asked(catalog: Catalog, fleet: Fleet | None) -> np.ndarray:
    """Milliseconds of each search, and none of them without a shard."""
    source = CatalogSource(catalog, SETTINGS.priors, clock=lambda: NOW, fleet=fleet)
    rng, took = np.random.default_rng(7), []
    with Searcher(source, DrawnEncoder(), SETTINGS.retrieval, clock=lambda: NOW) as searcher:
        for number in range(WARM + QUERIES):
            words = np.minimum(rng.zipf(1.3, size=8), 50_000) - 1
            text = " ".join(f"w{word:x}" for word in words.tolist())
            began = time.perf_counter()
            answer = searcher.search(Query(text=text, query_id=QueryId(f"q{number}")))
            took.append((time.perf_counter() - began) * 1e3)
            assert answer.results
            assert not answer.failed_shards
    return np.array(took[WARM:])


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_four_shards_beside_one(line: Line, cluster: None, tmp_path: Path) -> None:
    """SCL-12: p95 with four shards at most 1.3 times that with one, of the same contents."""
    parts, p95 = write_parts(tmp_path / "parts", CONTENTS), dict[int, float]()
    for shards in (1, 4):
        catalog = Catalog(tmp_path / f"store-{shards}")
        manifest = published(
            catalog, parts, SETTINGS.index.model_copy(update={"shard_contents": -(-CONTENTS // shards)})
        )
        assert len(manifest.shards) == shards
        with on_serve(catalog.root, shards=shards) as reach:
            for where, fleet in (("in one process", None), ("on Ray Serve", reach(10_000.0))):
                took = _asked(catalog, fleet)
                p95[shards] = float(np.percentile(took, 95))
                of = f"{CONTENTS:,} contents in {shards} shard{'s' * (shards > 1)} {where}"
                line(of, f"p50 {np.median(took):.1f} ms, p95 {p95[shards]:.1f} ms", "")
    line("p95 with four shards, of that with one", f"{p95[4] / p95[1]:.2f}", "1.3")
