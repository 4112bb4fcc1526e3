"""RET-7: channels search side by side, and whatever hangs holds the answer up no longer than it has time."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.memory_graph import MemoryGraph
from tests.support.retrieval_fakes import MemoryGeneration, a_query, a_searcher, settings
from weft.domain.ranking import Answer, Channel
from weft.indexes.graph.graph import EdgeKind
from weft.retrieval.channels.run import (
    Among,
    ChannelRankings,
    ChannelRequest,
    Channels,
    Hits,
    Ranked,
    run_channels,
)
from weft.retrieval.pipeline import Pipeline
from weft.retrieval.search import prefetched
from weft.retrieval.searcher import Searcher

pytestmark = pytest.mark.integration

DOCUMENTS = {"a": ["how checkpoints are written"], "b": ["flush pages in order"], "c": ["yellow bananas"]}
DENSE, LEXICAL, GRAPH, DEGREE, TRIGGERS = (
    Channel.DENSE,
    Channel.LEXICAL,
    Channel.GRAPH,
    Channel.DEGREE,
    Channel.TRIGGERS,
)
QUERY = a_query("checkpoints written")
BUDGET_MS = 500


def a_generation() -> MemoryGeneration:
    generation = MemoryGeneration(DOCUMENTS)
    rows = [generation.row_of(texts[0]) for texts in DOCUMENTS.values()]
    generation.graph = MemoryGraph(3, (EdgeKind.CALLS, rows[0], rows[1]))
    return generation


@contextmanager
def hanging() -> Iterator[Callable[..., Any]]:
    """Something that does not come back before the test is over."""
    over = threading.Event()

    def hang(*_: object, **__: object) -> Any:
        over.wait()
        raise OSError("it was too late for that")

    try:
        yield hang
    finally:
        over.set()


def fail(*_: object, **__: object) -> Any:
    raise OSError("it is gone")


def broken(searcher: Searcher, channel: Channel, instead: Callable[..., Any]) -> None:
    """Have one of the channels do something else."""
    channels = searcher._held.pipeline.channels
    if channel in channels.searching:
        channels.searching[channel].search = instead  # type: ignore[method-assign]
    else:
        channels.following[channel].follow = instead  # type: ignore[method-assign]


def tuned(*channels: Channel, **changes: Any) -> dict[str, Any]:
    """Settings that leave little time to channels of the kind of these, and much to the others."""
    little = {"following" if channel in {GRAPH, DEGREE} else "searching" for channel in channels}
    return {"budget_ms": {"searching": 20_000, "following": 20_000} | dict.fromkeys(little, BUDGET_MS), **changes}


def left_out(answer: Answer) -> dict[Channel, str]:
    """Channels that were left out, without what fails for want of them."""
    return {channel: answer.failed_channels[channel] for channel in Channel if channel in answer.failed_channels}


def found_without(channel: Channel) -> Answer:
    """What a search finds that never had that channel, nor what it would have led to."""
    wanted = [each.value for each in settings().channels if each is not channel]
    return a_searcher(a_generation(), channels=wanted).search(QUERY)


@pytest.mark.parametrize("channel", [DENSE, LEXICAL, TRIGGERS, GRAPH, DEGREE])
def test_what_hangs_is_left_out_within_its_time(channel: Channel) -> None:
    """RET-7: all others are searched."""
    with hanging() as hang:
        searcher = a_searcher(a_generation(), **tuned(channel))
        broken(searcher, channel, hang)
        answer = searcher.search(QUERY)
    assert left_out(answer) == {channel: f"no answer within {BUDGET_MS / 1000:g} s"}
    assert answer.timings_ms["channels"] >= BUDGET_MS
    assert answer.results == found_without(channel).results


@pytest.mark.parametrize("channel", [DENSE, LEXICAL, TRIGGERS, GRAPH, DEGREE])
def test_what_fails_is_left_out_and_holds_nothing_up(channel: Channel) -> None:
    """RET-7: named with its reason, and the answer is that of the others."""
    searcher = a_searcher(a_generation(), **tuned())
    broken(searcher, channel, fail)
    answer = searcher.search(QUERY)
    assert left_out(answer) == {channel: "OSError: it is gone"}
    assert answer.results == found_without(channel).results


def test_what_hangs_over_other_words_is_left_out_too() -> None:
    """RET-7, RET-3: a second look is held up no longer than a first one."""
    generation = MemoryGeneration({f"d{n}": [f"red w{n} {'apple' if n % 3 else 'plum'}"] for n in range(40)})
    with hanging() as hang:
        searcher = a_searcher(generation, **tuned(LEXICAL))
        search, calls = searcher._held.pipeline.channels.searching[LEXICAL].search, Counter[str]()

        def then_hang(*asked: Any) -> Any:
            calls["made"] += 1
            return search(*asked) if calls["made"] == 1 else hang()

        broken(searcher, LEXICAL, then_hang)
        answer = searcher.search(a_query("what ? red ? w1 w2 w4"))
    assert answer.understanding is not None
    asked = len(answer.understanding.variants)
    assert asked
    assert answer.failed_channels == {"lexical": f"no answer within {asked * BUDGET_MS / 1000:g} s"}
    assert {LEXICAL, DENSE} <= {channel for result in answer.results for channel in result.channels}


def test_searches_whose_threads_all_hang_end_in_time_and_later_ones_find_all_again() -> None:
    """RET-7: with every thread held up an answer says so; once they come back, nothing of it is left."""
    searcher = a_searcher(a_generation(), **tuned(*Channel, channel_threads=2))
    search = searcher._held.pipeline.channels.searching[DENSE].search
    with hanging() as hang:
        broken(searcher, DENSE, hang)
        for _ in range(4):
            assert DENSE in left_out(searcher.search(QUERY))
    broken(searcher, DENSE, search)
    assert any(not searcher.search(QUERY).failed_channels for _ in range(100))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_searches_at_once_wait_for_no_thread_that_waits_for_them(threads: int) -> None:
    """RET-7: with fewer threads than searches each is answered as if it were alone, no channel left out."""
    alone = a_searcher(a_generation()).search(QUERY)
    together: list[Answer] = []
    with a_searcher(a_generation(), **tuned(channel_threads=threads)) as searcher:
        at_once(6, lambda: together.append(searcher.search(QUERY)))
    assert [(answer.results, answer.failed_channels) for answer in together] == [(alone.results, {})] * 6


def test_what_ranking_raises_is_raised_where_the_answer_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """RET-7: only channels may be left out; and the next search is answered."""
    searcher = a_searcher(a_generation())

    def gone(*_: object, **__: object) -> Any:
        raise TimeoutError("the store is gone")

    with monkeypatch.context() as patched:
        patched.setattr(Pipeline, "_rank", gone)
        with pytest.raises(TimeoutError, match="the store is gone"):
            searcher.search(QUERY)
    assert searcher.search(QUERY).results


def test_engines_work_side_by_side() -> None:
    """RET-7: each waits until the other has begun."""
    searcher = a_searcher(a_generation(), **tuned())
    both = threading.Barrier(2, timeout=20.0)
    for channel in (DENSE, LEXICAL):
        search = searcher._held.pipeline.channels.searching[channel].search
        broken(searcher, channel, lambda *asked, search=search: (both.wait(), search(*asked))[1])
    assert searcher.search(QUERY).failed_channels == {}


def at_once(count: int, work: Callable[[], object]) -> None:
    """Do the same in so many threads that begin together."""
    barrier = threading.Barrier(count)

    def begin() -> None:
        barrier.wait()
        work()

    threads = [threading.Thread(target=begin) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def asked_of(channels: Channels, threads: Executor, budget_ms: float = 20_000) -> ChannelRankings:
    """Search for one query through all of these."""
    asked = [ChannelRequest("word", list(Channel), depth=3)]
    return run_channels(channels, asked, budget_ms=dict.fromkeys(Channel, budget_ms), threads=threads)


class Doing:
    """A channel that does something and finds nothing."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._work = work

    def search(self, texts: Sequence[str], among: Among, depth: int) -> list[Ranked]:
        self._work()
        return [Ranked(Hits.of([])) for _ in texts]


def test_what_comes_too_late_is_never_begun() -> None:
    """RET-7: a channel that waited for a thread until its time was over does not search any more."""
    begun: list[bool] = []
    with ThreadPoolExecutor(1) as threads, hanging() as hang:
        channels = Channels({DENSE: Doing(hang), TRIGGERS: Doing(lambda: begun.append(True))})
        found = asked_of(channels, threads, budget_ms=10)
    assert found.failed == [dict.fromkeys((DENSE, TRIGGERS), "no answer within 0.01 s")]
    assert not begun


def test_a_time_out_within_a_channel_is_its_failure() -> None:
    """RET-7: it is told from a channel that is late."""

    def refuse() -> None:
        raise TimeoutError("no line")

    with ThreadPoolExecutor(1) as threads:
        assert asked_of(Channels({DENSE: Doing(refuse)}), threads).failed == [{DENSE: "TimeoutError: no line"}]


def test_what_hangs_holds_one_thread_and_no_other_waits_for_it() -> None:
    """RET-7: others search meanwhile, also before its time is over."""
    begun, answers = threading.Event(), list[ChannelRankings]()
    with ThreadPoolExecutor(2) as threads:
        with hanging() as hang:
            held_up = Channels({LEXICAL: Doing(lambda: (begun.set(), hang()))})
            with_verdict_request = threading.Thread(target=lambda: answers.append(asked_of(held_up, threads)))
            with_verdict_request.start()
            assert begun.wait(20.0)
            assert asked_of(Channels({LEXICAL: Doing(int)}), threads).failed == [{}]
            assert not answers
        with_verdict_request.join()
    assert answers[0].failed == [{LEXICAL: "OSError: it was too late for that"}]


def test_the_next_batch_is_searched_for_while_one_is_ranked() -> None:
    """RET-20: and no more than one ahead."""
    begun = {name: threading.Event() for name in "abcd"}

    def search(name: str) -> str:
        begun[name].set()
        return name

    def rank(name: str) -> list[tuple[str, bool]]:
        following, after = chr(ord(name) + 1), chr(ord(name) + 2)
        assert following not in begun or begun[following].wait(20.0)
        return [(name, after in begun and begun[after].is_set())]

    assert prefetched("abcd", search, rank) == [(name, False) for name in "abcd"]
    assert prefetched("", search, rank) == []
