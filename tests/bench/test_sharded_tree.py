"""SCL-6, SCL-9: a code tree of 100,000 chunks, cut into 1, 2, 4 and 8 shards.

`WEFT_TREE` names its packages, `WEFT_TREE_CHUNKS` how many chunks of them, `WEFT_TREE_SHARDS` the numbers of shards.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from contextlib import closing
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.ingestion import WORDS, WordEncoder, a_plan
from weft.embedding.tokens import load_token_counter
from weft.indexes.builder import GenerationBuilder
from weft.indexes.generation import Generation, open_generation
from weft.indexes.rows import RowSet
from weft.ingestion.plan import IndexPlan, items_of, units_of
from weft.ingestion.sizing import prior_sizes
from weft.ingestion.stages.models import Embed
from weft.ingestion.stages.read_and_chunk import ReadAndChunk, ReadRules
from weft.ingestion.units import Unit, write_part, written_parts

PACKAGES = (os.environ.get("WEFT_TREE") or "transformers torch sympy pandas sklearn scipy").split()
LEAST = int(os.environ.get("WEFT_TREE_CHUNKS") or 100_000)
SHARDS = [int(shards) for shards in (os.environ.get("WEFT_TREE_SHARDS") or "1 2 4 8").split()]


@pytest.mark.slow
@pytest.mark.timeout(4 * 3600)
def test_a_tree_of_code_says_the_same_from_any_number_of_shards(tmp_path: Path) -> None:
    """SCL-6, SCL-7, SCL-8, SCL-9: names, words, vectors and the graph of installed packages, bit for bit."""
    found = [spec for name in PACKAGES if (spec := importlib.util.find_spec(name)) is not None]
    folders = [Path(folder) for spec in found for folder in spec.submodule_search_locations or ()]
    plan = replace(a_plan(tmp_path, tmp_path / "store", "index.rows_per_shard=20000"), sources=folders)
    (tmp_path / "parts").mkdir()
    units = written(plan, tmp_path / "parts")
    parts = written_parts(tmp_path / "parts", [unit for unit, _ in units])
    chunks = sum(count for _, count in units)
    if chunks < LEAST:
        pytest.skip(f"expected packages of {LEAST} chunks, found {chunks} in {[spec.name for spec in found]}")
    told = []
    for shards in SHARDS:
        own = plan.index.model_copy(update={"shard_contents": -(-chunks // shards)})
        (staging := tmp_path / f"shards-{shards}").mkdir()
        builder = GenerationBuilder(staging, own)
        manifest = builder.build(parts, {"created_at": 1e9, "models": {"encoder": "words"}})
        assert len(manifest.shards) == shards
        sys.stderr.write(f"\n{shards} shards: {dict(manifest.counts)}")
        with closing(open_generation(staging, verify=False)) as generation:
            told.append(told_by(generation, plan))
    for other in told[1:]:
        for one, same in zip(told[0], other, strict=True):
            assert one == same


def written(plan: IndexPlan, folder: Path) -> list[tuple[Unit, int]]:
    """The parts of as many units as hold enough chunks, and how many each has."""
    sizes = prior_sizes(plan.chunking, plan.priors, limit=load_token_counter(plan.embedding).limit)
    reader = ReadAndChunk(ReadRules(plan.ingest, sizes, plan.embedding, plan.domain))
    encoder = Embed(plan.embedding, "words", "words-1", plan.vectors, WORDS)
    units: list[tuple[Unit, int]] = []
    for unit in units_of(plan, items_of(plan)):
        done = encoder.work(reader.work(unit))
        write_part(folder, done)
        units.append((unit, done.tables["chunks"].num_rows))
        if sum(count for _, count in units) >= 1.02 * LEAST:
            break
    return units


def told_by(generation: Generation, plan: IndexPlan) -> tuple[Any, ...]:
    """Hits of words, names and vectors of a hundred contents, and the whole graph."""
    chunks, rows = generation.chunks, len(generation.contents)
    asked = [content.text[:200] for content in chunks.contents(range(0, rows, rows // 100))]
    some = RowSet(np.arange(rows) % 5 == 0)
    lexical = [generation.lexical.search(text, 50, among) for text in asked for among in (None, some)]
    vectors = WordEncoder(plan.embedding).encode(asked)
    dense = [array.tolist() for among in (None, some) for array in generation.dense("words").search(vectors, 50, among)]
    names = list(chain.from_iterable(chunks.defining(name, most=1_000) for name in ("fit", "forward", "__init__")))
    graph = [generation.graph.table(name) for name in ("nodes", "edges")]
    ranks = [] if generation.graph.analytics is None else generation.graph.analytics["pagerank"].to_pylist()
    return list(generation.contents), lexical, dense, names, graph, ranks
