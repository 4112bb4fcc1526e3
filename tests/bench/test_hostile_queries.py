"""RET-21: what hostile queries cost others, as a ratio within one run, over the corpus of the benchmarks."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence

import numpy as np
import pytest

from tests.support.search_bench import Corpus, Line, asked_one_by_one
from weft.domain.ids import QueryId
from weft.domain.ranking import Query
from weft.retrieval.searcher import Searcher

pytestmark = [pytest.mark.slow, pytest.mark.timeout(7200)]

TURNS, EACH = 16, 8
HOSTILE = [
    "a." * 3000,
    " ".join(['AND OR NOT ( ) [ ] *:* contents: " ~ ^9 \\ / ? && || + -'] * 50),
    "x" * 100_000,
    " ".join(f"term{n}" for n in range(500)),
    "a? " * 2000,
    "“" * 5000,
]


def test_hostile_queries_do_not_slow_others_twofold(corpus: Corpus, searcher: Searcher, line: Line) -> None:
    """RET-21: beside them an ordinary query takes at most twice as long as beside others like itself.

    Both are asked in turns, so that whatever else the machine does weighs on both equally.
    """
    hostile = [Query(text=text, query_id=QueryId("q"), k=10) for text in HOSTILE]
    ordinary = corpus.queries[:EACH]
    asked_one_by_one(searcher, [*ordinary, *hostile])
    calm, disturbed = [], []
    for turn in range(TURNS):
        calm += spans_beside(searcher, ordinary, ordinary)
        at = turn % len(hostile)
        disturbed += spans_beside(searcher, ordinary, hostile[at:] + hostile[:at])
    middle = [float(np.median(spans)) for spans in (calm, disturbed)]
    line("an ordinary search beside hostile ones", f"{middle[1]:.1f} ms, beside its like {middle[0]:.1f} ms", "<= 2")
    assert middle[1] <= 2.0 * middle[0]


def spans_beside(searcher: Searcher, queries: Sequence[Query], beside: Sequence[Query]) -> list[float]:
    """Milliseconds of each query while another thread asks those beside."""
    done, first = threading.Event(), threading.Event()

    def load() -> None:
        for query in itertools.cycle(beside):
            first.set()
            searcher.search(query)
            if done.is_set():
                return

    other = threading.Thread(target=load)
    other.start()
    first.wait()
    try:
        return asked_one_by_one(searcher, queries)[1].tolist()
    finally:
        done.set()
        other.join()
