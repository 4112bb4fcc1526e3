"""FBK-7: how long after a user's word a search ranks by it: a real broker, updater, store and searcher."""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.support.parts import a_document
from tests.support.small_store import DirectionEncoder, published_store
from weft.cli.commands import update
from weft.domain.ids import QueryId
from weft.domain.ranking import Query
from weft.feedback.events.producer import FeedbackProducer
from weft.retrieval.searcher import Searcher
from weft.retrieval.snapshot.live import CatalogSource
from weft.runtime.clock import system_clock
from weft.runtime.kafka.broker import EmbeddedBroker
from weft.settings import Settings, load_settings

WORDS = 30


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[Settings]:
    with EmbeddedBroker() as broker:
        yield load_settings([], [f"kafka.bootstrap={broker.bootstrap}", f"storage.root={tmp_path}"], environment={})


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_search_ranks_by_what_was_just_said(settings: Settings, tmp_path: Path) -> None:
    """FBK-7: each verdict moves its content in a search; told beside the goal, p95 <= 2 s."""
    texts = [f"locks are released at once, case {number}" for number in range(WORDS)]
    catalog = published_store(tmp_path, [a_document("a.md", *texts)])
    source = CatalogSource(catalog, settings.priors, clock=system_clock)
    stop = threading.Event()
    updater = threading.Thread(
        target=update.run,
        args=(settings,),
        kwargs={"local": True, "until_caught_up": False, "stop": stop.is_set},
    )
    updater.start()
    try:
        with Searcher(source, DirectionEncoder(), settings.retrieval, clock=system_clock) as searcher:
            seconds = [effect_of_a_word(searcher, settings, number) for number in any_time(WORDS)]
    finally:
        stop.set()
        updater.join()
    p50, p95 = np.percentile(seconds[1:], [50, 95])  # the first one waits for the updater's start
    sys.stderr.write(f"event to effect in a search, {WORDS - 1} words: p50 {p50:.2f} s, p95 {p95:.2f} s (goal 2)\n")
    assert len(seconds) == WORDS


def any_time(words: int) -> Iterator[int]:
    """Words come whenever they come: one that follows an effect at once always finds the search having just looked."""
    rng = random.Random(5)
    for number in range(words):
        time.sleep(rng.random())
        yield number


def effect_of_a_word(searcher: Searcher, settings: Settings, number: int) -> float:
    """Seconds from producing a verdict on the best result to the first search that uses it."""
    producer = FeedbackProducer.connect(settings.kafka, settings.feedback)
    query = Query(text=f"case {number}", query_id=QueryId(f"q-{number}"), k=10)
    answer = searcher.search(query)
    best = answer.results[0]
    started = time.monotonic()
    producer.impression(answer)
    producer.explicit(answer.query, 1.0, content_hash=best.content_hash)
    producer.flush()
    while True:
        for result in searcher.search(query).results:
            if result.content_hash == best.content_hash and result.past is not None:
                producer.close()
                return time.monotonic() - started
        time.sleep(0.02)
