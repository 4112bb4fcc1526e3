"""RET-7: one thread takes the steps of a search, and whatever hangs holds the answer up no longer than it has time."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

from pipelines.domain.ranking import Answer, Channel
from pipelines.indexes.graph.schemas import EdgeKind
from pipelines.retrieval.awake import Awake, one_ahead
from pipelines.retrieval.channels.graph import GraphChannel
from pipelines.retrieval.channels.rounds import Round, Steps
from pipelines.retrieval.pipeline import Pipeline
from pipelines.retrieval.searcher import Searcher
from pipelines.runtime.warm import WarmThreads
from tests.support.retrieval_fakes import MemoryGeneration, MemoryGraph, a_query, a_searcher, settings

DOCUMENTS = {"a": ["how checkpoints are written"], "b": ["flush pages in order"], "c": ["yellow bananas"]}
DENSE, LEXICAL, GRAPH, DEGREE, TRIGGERS = (
    Channel.DENSE,
    Channel.LEXICAL,
    Channel.GRAPH,
    Channel.DEGREE,
    Channel.TRIGGERS,
)
QUERY = a_query("checkpoints written")
BUDGET_MS = 150


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


def tuned(budgets: dict[Channel, int], **changes: Any) -> dict[str, Any]:
    return {"budget_ms": dict.fromkeys(Channel, 20_000) | budgets, **changes}


def left_out(answer: Answer) -> dict[Channel, str]:
    """Channels that were left out, without what fails for want of them."""
    return {channel: answer.failed_channels[channel] for channel in Channel if channel in answer.failed_channels}


def found_without(channel: Channel) -> Answer:
    """What a search finds that never had that channel, nor what it would have led to."""
    wanted = [each.value for each in settings().channels if each is not channel]
    return a_searcher(a_generation(), channels=wanted).search(QUERY)


@pytest.mark.parametrize("patience_ms", [10, 60_000])
@pytest.mark.parametrize("channel", [DENSE, LEXICAL, TRIGGERS, GRAPH, DEGREE])
def test_what_hangs_is_left_out_within_its_time(channel: Channel, patience_ms: int) -> None:
    """RET-7: whichever thread it holds, and however long who asked would wait; all others are searched."""
    with hanging() as hang:
        searcher = a_searcher(a_generation(), **tuned({channel: BUDGET_MS}, patience_ms=patience_ms))
        broken(searcher, channel, hang)
        answer = searcher.search(QUERY)
    assert left_out(answer) == {channel: f"no answer within {BUDGET_MS / 1000:g} s"}
    assert answer.timings_ms["channels"] >= BUDGET_MS
    assert answer.results == found_without(channel).results


@pytest.mark.parametrize("channel", [DENSE, LEXICAL, TRIGGERS, GRAPH, DEGREE])
def test_what_fails_is_left_out_and_holds_nothing_up(channel: Channel) -> None:
    """RET-7: named with its reason, and the answer is that of the others."""
    searcher = a_searcher(a_generation(), **tuned({}))
    broken(searcher, channel, fail)
    answer = searcher.search(QUERY)
    assert left_out(answer) == {channel: "OSError: it is gone"}
    assert answer.results == found_without(channel).results


def test_what_hangs_over_other_words_is_left_out_too() -> None:
    """RET-7, RET-3: a second look is held up no longer than a first one."""
    generation = MemoryGeneration({f"d{n}": [f"red w{n} {'apple' if n % 3 else 'plum'}"] for n in range(40)})
    with hanging() as hang:
        searcher = a_searcher(generation, **tuned({LEXICAL: BUDGET_MS}, patience_ms=10))
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
    searcher = a_searcher(a_generation(), **tuned(dict.fromkeys(Channel, BUDGET_MS), channel_threads=2))
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
    with a_searcher(a_generation(), **tuned({}, channel_threads=threads, patience_ms=10_000)) as searcher:
        at_once(6, lambda: together.append(searcher.search(QUERY)))
    assert [(answer.results, answer.failed_channels) for answer in together] == [(alone.results, {})] * 6


def test_what_ranking_raises_is_raised_where_the_answer_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """RET-7: only channels may be left out; and the next search is answered."""
    searcher = a_searcher(a_generation())

    def gone(*_: object) -> Any:
        raise TimeoutError("the store is gone")

    with monkeypatch.context() as patched:
        patched.setattr(Pipeline, "_chosen", gone)
        with pytest.raises(TimeoutError, match="the store is gone"):
            searcher.search(QUERY)
    assert searcher.search(QUERY).results


def test_one_thread_searches_and_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    """RET-7: with one engine it does all, and who asked does nothing; a second engine works beside it."""
    at_work: dict[str, int] = {}

    def told(name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def there(*given: Any, **more: Any) -> Any:
            at_work[name] = threading.get_ident()
            return work(*given, **more)

        return there

    monkeypatch.setattr(GraphChannel, "follow", told("graph", GraphChannel.follow))
    monkeypatch.setattr(Pipeline, "_chosen", told("ranking", Pipeline._chosen))
    for channels in ["dense", "triggers", "graph"], ["lexical", "triggers", "graph"]:
        at_work.clear()
        searcher = a_searcher(a_generation(), **tuned({}, channels=channels, patience_ms=60_000))
        for channel, each in searcher._held.pipeline.channels.searching.items():
            broken(searcher, channel, told(channel.value, each.search))
        searcher.search(QUERY)
        assert at_work.keys() == {*channels, "ranking"}
        assert len({*at_work.values()}) == 1
        assert threading.get_ident() not in at_work.values()


def test_engines_work_side_by_side() -> None:
    """RET-7: each waits until the other has begun."""
    searcher = a_searcher(a_generation(), **tuned({}, patience_ms=60_000))
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


def steps(rounds: Sequence[dict[Channel, float]], taken: Counter[str]) -> Steps[Channel, int]:
    """A search of so many rounds, whose channels take so many seconds; `taken` counts what was done."""

    def work(at: int, channel: Channel, delay_s: float) -> Channel:
        taken[f"{at} {channel}"] += 1
        time.sleep(delay_s)
        return channel

    for at, delays in enumerate(rounds):
        tasks = {channel: partial(work, at, channel, delay_s) for channel, delay_s in delays.items()}
        found, failed = yield Round(tasks, dict.fromkeys(tasks, 20.0))
        assert (found, failed) == ({channel: channel for channel in tasks}, {})
        taken[f"{at} went on"] += 1
    return len(rounds)


@effort(deadline=None, max_examples=60)
@given(
    rounds=st.lists(
        st.dictionaries(st.sampled_from([DENSE, LEXICAL, GRAPH]), st.sampled_from([0.0, 0.001, 0.004])),
        min_size=1,
        max_size=4,
    ),
    late_s=st.sampled_from([1e-9, 0.001, 0.003, 20.0]),
    threads=st.integers(1, 3),
)
def test_each_step_is_taken_once_whoever_comes_when(
    rounds: list[dict[Channel, float]], late_s: float, threads: int
) -> None:
    """RET-7: at whatever moment who asked takes over, each channel searches once and each step is taken once."""
    taken: Counter[str] = Counter()
    warm = WarmThreads(threads, "test")
    assert Awake(steps(rounds, taken), warm).result(late_s) == len(rounds)
    warm.close()
    done = {f"{at} {channel}" for at, delays in enumerate(rounds) for channel in delays}
    assert taken == Counter([*done, *(f"{at} went on" for at in range(len(rounds)))])


def test_a_round_is_ended_by_one_thread_and_each_channel_begun_by_one() -> None:
    """RET-7: however many come at once."""
    for _ in range(200):
        begun: Counter[Channel] = Counter()
        channels = (DENSE, LEXICAL, TRIGGERS)
        current = Round({each: partial(begun.update, [each]) for each in channels}, dict.fromkeys(channels, 20.0))
        last: list[bool] = []
        at_once(4, lambda current=current, last=last: last.append(current.run_here()))
        assert sorted(last) == [False, False, False, True]
        assert begun == Counter(channels)


def test_what_comes_too_late_changes_nothing() -> None:
    """RET-7: what was given up before it began is never begun, and what ends afterwards ends no round."""
    with hanging() as hang:
        begun: list[bool] = []
        current = Round({DENSE: hang, TRIGGERS: lambda: begun.append(True)}, {DENSE: 0.01, TRIGGERS: 0.01})
        late: list[bool] = []
        thread = threading.Thread(target=lambda: late.append(current.run(DENSE)))
        thread.start()
        assert current.gathered() == ({}, dict.fromkeys((DENSE, TRIGGERS), "no answer within 0.01 s"))
        assert not current.run(TRIGGERS)
    thread.join()
    assert (begun, late) == ([], [False])


def test_who_ends_a_round_as_the_last_one_goes_on() -> None:
    """RET-7: long before who asked would take over."""
    begun, at_work = threading.Event(), {}

    def beside() -> None:
        begun.set()
        at_work["beside"] = threading.get_ident()
        time.sleep(0.05)  # the other has ended by then, or ends the round itself

    def search() -> Steps[Any, int]:
        yield Round({DENSE: lambda: begun.wait(20.0), LEXICAL: beside}, dict.fromkeys((DENSE, LEXICAL), 60.0))
        return threading.get_ident()

    warm = WarmThreads(2, "test")
    assert Awake(search(), warm).result(20.0) == at_work["beside"]
    warm.close()


def test_what_hangs_holds_one_thread_and_no_other_waits_for_it() -> None:
    """RET-7: others search meanwhile, also before its time is over."""
    begun, warm = threading.Event(), WarmThreads(2, "test")

    def search(beside: Callable[[], object]) -> Steps[Any, int]:
        found, _ = yield Round({DENSE: lambda: begun.wait(20.0), LEXICAL: beside}, {DENSE: 20.0, LEXICAL: 20.0})
        return len(found)

    with hanging() as hang:
        answers: list[int] = []
        held_up = Awake(search(lambda: (begun.set(), hang())), warm)
        asking = threading.Thread(target=lambda: answers.append(held_up.result(0.01)))
        asking.start()
        assert begun.wait(20.0)
        assert Awake(search(int), warm).result(20.0) == 2
        assert not answers
    asking.join()
    assert answers == [1]
    warm.close()


def test_the_next_search_begins_while_one_is_ranked() -> None:
    """RET-20: and no more than one ahead, nor before channels have ended for that one."""
    seen: list[str] = []

    def search(name: str) -> Steps[None, str]:
        assert all(event.is_set() for event in others.values())
        begun = threading.Event()
        others[name] = begun
        yield Round({DENSE: lambda: time.sleep(0.01) or begun.set()}, {DENSE: 20.0})
        for other, event in others.items():
            assert event.wait(20.0), f"{other} was asked for and is not searched for"
        seen.append(f"{name} beside {sorted(others)}")
        return name

    others: dict[str, threading.Event] = {}
    warm = WarmThreads(2, "test")
    assert one_ahead([search(name) for name in "abc"], warm) == ["a", "b", "c"]
    assert seen == ["a beside ['a', 'b']", "b beside ['a', 'b', 'c']", "c beside ['a', 'b', 'c']"]
    assert one_ahead([], warm) == []
    warm.close()
