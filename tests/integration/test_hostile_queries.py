"""RET-21: whatever is asked, the real engines answer: FAISS, Lucene, encoder, graph, and all that reads a query."""

from __future__ import annotations

import math
import statistics
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs import reindex
from jobs.evaluate import measuring
from jobs.search import opened
from pipelines.domain.ids import QueryId
from pipelines.domain.ranking import Query, Repeats
from pipelines.domain.sessions import SessionMemory
from pipelines.retrieval.searcher import Searcher
from pipelines.runtime.stages import HERE
from pipelines.settings import load_settings

ROOT = Path(__file__).resolve().parents[2]
NOTES = """---
trigger_phrases: [disk full, no space left]
tier: core
intent: decision
---
# Space

When the disk is full the updater stops, see `Searcher.search`.
"""
ORDINARY = ["how is a search answered", "where are channels opened", "what does the graph channel do", "disk full"]
SOUP = [
    "AND",
    "OR",
    "NOT",
    "(",
    ")",
    "[",
    "]",
    "*:*",
    "contents:",
    '"',
    "~",
    "^9",
    "\\",
    "/",
    "?",
    "&&",
    "||",
    "+",
    "-",
]


@pytest.fixture(scope="module")
def searcher(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Searcher]:
    root = tmp_path_factory.mktemp("store")
    source = tmp_path_factory.mktemp("source")
    for path in sorted((ROOT / "pipelines" / "retrieval" / "channels").glob("*.py")):
        (source / path.name).write_bytes(path.read_bytes())
    (source / "space.md").write_text(NOTES)
    changes = [f"storage.root={root}", "embedding.tokens.enabled=true"]
    made = measuring(load_settings([], changes, environment={}))  # a busy machine loses no channel
    reindex.run(reindex.plan_of(made, [source]), watch=lambda _: None, executor=HERE)
    with opened(made) as searching:
        yield searching


def asked(text: str, **more: object) -> Query:
    return Query(text=text, query_id=QueryId("q"), k=10, **more)  # type: ignore[arg-type]


anything = st.text(max_size=300)
hostile = st.one_of(
    anything,
    st.lists(st.sampled_from(SOUP), max_size=300).map(" ".join),
    st.lists(st.sampled_from(SOUP), max_size=300).map("".join),
    st.text(st.characters(categories=["Cc", "Cs", "Cf", "Co", "Mn", "Zs"]), max_size=200),
    st.tuples(st.text(min_size=1, max_size=6), st.integers(1, 8192)).map(lambda pair: pair[0] * pair[1]),
    st.lists(anything, max_size=300).map(" ".join),
    st.sampled_from(ORDINARY).flatmap(lambda text: anything.map(lambda noise: f"{noise} {text} {noise}")),
    st.tuples(st.sampled_from(["folder", "domain", "since", "type"]), anything).map(
        lambda pair: f"{pair[0]}:{pair[1]}"
    ),
)


@given(hostile, st.booleans(), st.sampled_from(Repeats))
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_nothing_that_is_asked_raises_or_loses_a_channel(
    searcher: Searcher, text: str, adaptive: bool, repeats: Repeats
) -> None:
    """RET-21: whatever the text; no channel fails, and every score is a number that its parts sum to."""
    memory = SessionMemory().given(["ab" * 32], kept=5)
    answer = searcher.search(asked(text, adaptive=adaptive, context=True, repeats=repeats, memory=memory))
    assert answer.failed_channels == {}
    for result in answer.results:
        assert math.isfinite(result.score)
        assert result.score == math.fsum(part.amount for part in result.contributions)


def test_hostile_and_ordinary_queries_share_a_batch(searcher: Searcher) -> None:
    """RET-21: an ordinary query beside hostile ones finds what it finds alone."""
    wild = ["\ud800\x00" * 100, " ".join(SOUP * 50), "x" * 100_000, "", "ﷺ" * 4096]
    together = searcher.search_many([asked(text) for pair in zip(wild, [*ORDINARY, ""], strict=True) for text in pair])
    for text, answer in zip(ORDINARY, together[1::2], strict=False):
        alone = searcher.search(asked(text))
        assert [result.content_hash for result in answer.results] == [result.content_hash for result in alone.results]


def median_ms(searcher: Searcher, beside: Sequence[str]) -> float:
    """Median time of ordinary queries while another thread asks those beside."""
    done = threading.Event()

    def load() -> None:
        while not done.is_set():
            for text in beside:
                searcher.search(asked(text))

    other = threading.Thread(target=load)
    other.start()
    try:
        taken = []
        for _ in range(25):
            for text in ORDINARY:
                begun = time.perf_counter()
                searcher.search(asked(text))
                taken.append((time.perf_counter() - begun) * 1000.0)
    finally:
        done.set()
        other.join()
    return statistics.median(taken)


@pytest.mark.slow
def test_hostile_queries_do_not_slow_others_twofold(searcher: Searcher) -> None:
    """RET-21: beside them an ordinary query takes at most twice as long as beside its own like."""
    wild = [
        "a." * 3000,
        " ".join(SOUP * 50),
        "x" * 100_000,
        " ".join(f"term{n}" for n in range(500)),
        "a? " * 2000,
        "“" * 5000,
    ]
    beside_ordinary = min(median_ms(searcher, ORDINARY) for _ in range(3))
    beside_hostile = min(median_ms(searcher, wild) for _ in range(3))
    print(f"\nordinary beside ordinary {beside_ordinary:.1f} ms, beside hostile {beside_hostile:.1f} ms")  # noqa: T201
    assert beside_hostile <= 2.0 * beside_ordinary
