"""RET-20: threads of which the one that was busy last works next."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import Future

import pytest

from pipelines.runtime.warm import WarmThreads


def thread_of(threads: WarmThreads) -> int:
    """Which thread works now, where nothing else is to do."""
    told: Future[int] = Future()
    threads.start(lambda: told.set_result(threading.get_ident()))
    return told.result(20.0)


def test_one_after_the_other_is_done_by_the_same_thread() -> None:
    """RET-20: by the one that was busy last; eight that take turns would do an eighth each."""
    threads = WarmThreads(8, "test")
    all_of_them = threading.Barrier(8, timeout=20.0)
    done: list[Future[int]] = [Future() for _ in range(8)]
    for each in done:
        threads.start(lambda each=each: each.set_result(all_of_them.wait()))
    assert {each.result(20.0) for each in done} == set(range(8))
    (_, most), *_ = Counter(thread_of(threads) for _ in range(200)).most_common()
    assert most > 200 / 4
    threads.close()


@pytest.mark.parametrize("most", [1, 3])
def test_so_many_work_at_once_and_the_rest_in_the_order_it_came(most: int) -> None:
    """RET-20: nothing is lost, nothing done twice."""
    threads, go, lock = WarmThreads(most, "test"), threading.Event(), threading.Lock()
    at_work, most_at_work, done = 0, 0, []

    def work(number: int) -> None:
        nonlocal at_work, most_at_work
        with lock:
            at_work += 1
            most_at_work = max(at_work, most_at_work)
        go.wait(20.0)
        with lock:
            at_work -= 1
            done.append(number)

    for number in range(30):
        threads.start(lambda number=number: work(number))
    go.set()
    threads.close()
    assert sorted(done) == list(range(30))
    assert most_at_work <= most
    assert most > 1 or done == sorted(done)


def test_what_fails_costs_no_thread(caplog: pytest.LogCaptureFixture) -> None:
    """RET-20: it is logged, and the next work is done."""

    def fail() -> None:
        raise OSError("the disk is gone")

    threads = WarmThreads(1, "test")
    threads.start(fail)
    thread_of(threads)
    assert "the disk is gone" in caplog.text
    threads.close()
    with pytest.raises(RuntimeError, match="shutdown"):
        threads.start(fail)
