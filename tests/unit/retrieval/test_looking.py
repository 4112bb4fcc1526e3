"""FBK-7, RET-20: beliefs that take long to read are read beside searches, which go on with what is held."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from tests.support.retrieval_fakes import MemoryGeneration, a_query, a_snapshot, settings
from weft.domain.ids import GenerationId, VersionName
from weft.retrieval.searcher import Searcher
from weft.retrieval.snapshot.snapshot import Snapshot

WAIT_S = 60.0  # for a thread, before a test is given up


class Slow:
    """One generation, whose beliefs move on; who reads them waits until it may go on."""

    def __init__(self) -> None:
        self.generation = MemoryGeneration({"a": ["a checkpoint"], "b": ["a lock"]})
        self.version = 0
        self.may_go_on, self.reading = threading.Event(), threading.Event()
        self.may_go_on.set()
        self.fails: Exception | None = None

    def token(self) -> Hashable:
        return self.version

    def take(self, previous: Snapshot | None) -> Snapshot:
        self.reading.set()
        assert self.may_go_on.wait(WAIT_S)
        if self.fails is not None:
            raise self.fails
        return replace(a_snapshot(self.generation, GenerationId("g")), version=VersionName(f"v{self.version}"))


class Searching:
    """A searcher over it, for which any reading takes long, and the time."""

    def __init__(self, *, look_ms: float = 1e-9, look_share: float = 1.0) -> None:
        self.source, self.now = Slow(), 0.0
        tuned = settings(refresh_s=1.0)
        self.searcher = Searcher(self.source, self.source.generation.encoder, tuned, clock=lambda: self.now)
        self.searcher.LOOK_MS, self.searcher.LOOK_SHARE = look_ms, look_share
        self.searcher.WAIT_S = WAIT_S

    def learned(self, *, after_s: float, version: int) -> str:
        """By which version a search is answered, so much later, when this one is live."""
        self.now += after_s
        self.source.version = version
        return self.searcher.search(a_query("checkpoint")).learned

    def when_read(self, version: int) -> None:
        """Wait until a look that is under way has ended."""
        self.source.may_go_on.set()
        for _ in range(int(WAIT_S * 100)):
            if self.searcher._held.snapshot.version == f"v{version}":
                return
            threading.Event().wait(0.01)
        raise AssertionError(f"expected version v{version} to be read within {WAIT_S:g} s")


@pytest.fixture
def once_slow() -> Searching:
    """The first look reads at once: it is not known yet how long that takes."""
    searching = Searching()
    assert searching.learned(after_s=1.5, version=1) == "v1"
    return searching


def test_a_search_does_not_wait_for_beliefs_that_took_long_to_read(once_slow: Searching) -> None:
    """FBK-7: it is answered by what is held, whoever asks meanwhile as well, and a later one by what was read."""
    source = once_slow.source
    source.may_go_on.clear()
    source.reading.clear()
    assert once_slow.learned(after_s=1.5, version=2) == "v1"
    assert source.reading.wait(WAIT_S)
    assert once_slow.learned(after_s=1.5, version=2) == "v1"
    once_slow.when_read(2)
    assert once_slow.learned(after_s=0.0, version=2) == "v2"


def test_who_asks_for_what_is_live_now_waits_for_it(once_slow: Searching) -> None:
    """FBK-7."""
    once_slow.source.version = 2
    once_slow.searcher.refresh()
    assert once_slow.learned(after_s=0.0, version=2) == "v2"


def test_what_a_look_beside_failed_with_reaches_a_search(once_slow: Searching) -> None:
    """RET-8: a fault of weft's own is not lost in a thread; and the next search looks again."""
    once_slow.source.fails = ZeroDivisionError("while reading")
    assert once_slow.learned(after_s=1.5, version=2) == "v1"
    once_slow.searcher._looking.submit(lambda: None).result(WAIT_S)
    with pytest.raises(ZeroDivisionError, match="while reading"):
        once_slow.learned(after_s=0.4, version=2)
    once_slow.source.fails = None
    once_slow.learned(after_s=0.0, version=2)
    once_slow.when_read(2)


def test_what_an_awaited_look_failed_with_reaches_the_search_that_waits_and_no_later_one(once_slow: Searching) -> None:
    """RET-8."""
    once_slow.source.fails = ZeroDivisionError("while reading")
    with pytest.raises(ZeroDivisionError, match="while reading"):
        once_slow.learned(after_s=5.0, version=2)
    once_slow.source.fails = None
    assert once_slow.learned(after_s=0.0, version=2) == "v2"


def test_however_long_reading_takes_a_decision_is_followed_within_a_minute() -> None:
    """CON-9, RET-20: with a tiny share of the time, what is live is looked at again after half a minute."""
    searching = Searching(look_share=1e-12, look_ms=1e9)
    assert searching.learned(after_s=2.0, version=1) == "v1"
    assert searching.learned(after_s=29.0, version=2) == "v1"
    assert searching.learned(after_s=2.0, version=2) == "v2"


def test_looks_are_as_far_apart_as_makes_reading_its_share_of_the_time() -> None:
    """RET-20: reading that took 5 s, at a share of a quarter, begins again 20 s after it began, and not before."""
    searching = Searching(look_share=0.25, look_ms=1e9)
    searching.searcher._took_s = 5.0
    assert searching.learned(after_s=15.0, version=1) == "v0"
    assert searching.learned(after_s=6.0, version=1) == "v1"


@pytest.mark.parametrize("pause_s", [2.0, 5.0, 59.0, 61.0])
def test_the_first_search_after_a_pause_waits_for_what_is_live(once_slow: Searching, pause_s: float) -> None:
    """CON-9, FBK-7: nobody is answered from before the pause, though reading takes longer than a look may."""
    assert once_slow.learned(after_s=pause_s, version=2) == "v2"


def test_whoever_asks_while_a_look_after_a_pause_goes_on_waits_for_it_too(once_slow: Searching) -> None:
    """FBK-7: threads that ask at once are answered alike."""
    source = once_slow.source
    source.may_go_on.clear()
    source.reading.clear()
    once_slow.now += 5.0
    source.version = 2
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(once_slow.learned, after_s=0.0, version=2)
        assert source.reading.wait(WAIT_S)
        second = threads.submit(once_slow.learned, after_s=0.0, version=2)
        source.may_go_on.set()
        assert (first.result(WAIT_S), second.result(WAIT_S)) == ("v2", "v2")


def test_a_store_that_hangs_after_a_pause_costs_a_search_its_patience_and_no_answer(once_slow: Searching) -> None:
    """ARC-2: what is held answers then, and what is read in the end answers later ones."""
    once_slow.searcher.WAIT_S = 0.01
    once_slow.source.may_go_on.clear()
    assert once_slow.learned(after_s=5.0, version=2) == "v1"
    once_slow.searcher.WAIT_S = WAIT_S  # nobody waits for that look again
    assert once_slow.learned(after_s=0.0, version=2) == "v1"
    once_slow.when_read(2)
    assert once_slow.learned(after_s=0.0, version=2) == "v2"


def test_what_is_read_quickly_is_seen_by_the_search_that_looks() -> None:
    """FBK-7: as long as reading takes less than `LOOK_MS`."""
    searching = Searching(look_ms=1e9)
    for version in range(1, 4):
        assert searching.learned(after_s=2.0, version=version) == f"v{version}"


def test_closing_waits_for_a_look(once_slow: Searching) -> None:
    """ARC-2: nothing reads a store that was closed."""
    source = once_slow.source
    source.may_go_on.clear()
    source.reading.clear()
    once_slow.learned(after_s=1.5, version=2)
    assert source.reading.wait(WAIT_S)
    threading.Timer(0.05, source.may_go_on.set).start()
    once_slow.searcher.close()
    assert once_slow.searcher._held.snapshot.version == "v2"
