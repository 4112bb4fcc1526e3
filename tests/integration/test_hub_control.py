"""GRA-4: no item is in most of the results, however much is linked to it."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.support.ingestion import a_plan
from tests.support.retrieval_fakes import a_query
from tests.support.small_store import DirectionEncoder
from weft.catalog.catalog import Catalog
from weft.domain.ranking import Channel
from weft.ingestion.pipeline import ingest
from weft.retrieval.searcher import Searcher
from weft.retrieval.snapshot.live import CatalogSource
from weft.runtime.stages import HERE
from weft.settings import load_settings

pytestmark = pytest.mark.integration

TOPICS, PAGES, MOST = 12, 15, 0.6


def test_a_page_that_everything_refers_to_is_in_no_more_than_six_of_ten_results(tmp_path: Path) -> None:
    """GRA-4, RET-7: every page references a hub, supports it and is derived from it; questions ask for other words."""
    tree, rng = tmp_path / "tree", np.random.default_rng(5)
    tree.mkdir()
    words = [[f"w{topic}x{word}" for word in range(30)] for topic in range(TOPICS)]
    for topic in range(TOPICS):
        for page in range(PAGES):
            body = " ".join(rng.choice(words[topic], 40))
            facts = "---\nrelations: [{kind: supports, target: hub.md}, {kind: derived_from, target: hub.md}]\n---\n"
            (tree / f"t{topic}-{page}.md").write_text(f"{facts}# Page {page}\n\n{body}\n\nSee [the hub](hub.md).\n")
    (tree / "hub.md").write_text("# Hub\n\nEverything begins here.\n")
    store = tmp_path / "store"
    settings = load_settings([], [f"storage.root={store}"], environment={})
    ingest(a_plan(tree, store), Catalog(store), HERE, lambda _: None, clock=time.monotonic)
    source = CatalogSource(Catalog(store), settings.priors, clock=time.time)
    queries = [
        a_query(" ".join(rng.choice(of_topic, 3)), query_id=f"q{topic}-{number}")
        for topic, of_topic in enumerate(words)
        for number in range(3)
    ]
    encoder = DirectionEncoder()
    encoder.name = "model"  # as the plan's is called
    with Searcher(source, encoder, settings.retrieval, clock=time.time) as searcher:
        answers = searcher.search_many(queries)
        hub = searcher.snapshot.generation.chunks.chunks_of_document("tree/hub.md")[0].content_hash
    reached = [hub in dict(answer.heads[Channel.GRAPH][:10]) for answer in answers]
    assert np.mean(reached) > MOST  # were the graph's own first ten shown, it would be in most of them
    shown = Counter(result.content_hash for answer in answers for result in answer.results)
    assert max(shown.values()) <= MOST * len(answers)
