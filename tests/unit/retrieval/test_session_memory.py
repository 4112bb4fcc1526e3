"""LRN-15, RET-19: what a session remembers is kept in the store, for every search that names it."""

from __future__ import annotations

import multiprocessing
import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.retrieval_fakes import NOW, MemoryGeneration, MemorySource, a_query, settings
from weft.catalog.catalog import MemoryStore
from weft.domain.errors import StoreError
from weft.domain.ids import SessionId
from weft.domain.ranking import Answer, Query, Repeats
from weft.domain.understanding import SessionMemory
from weft.retrieval.searcher import Searcher
from weft.runtime.storage.locks import Patience, locked

S1, S2 = SessionId("s1"), SessionId("s2/../x")
FRUIT = MemoryGeneration({name: [f"apple {name}"] for name in ("pie", "tart", "jam")} | {"b": ["banana bread"]})


def searcher(root: Path, memories: MemoryStore | None = None) -> Searcher:
    """One as another process would open it."""
    held = memories or MemoryStore(root)
    return Searcher(MemorySource(FRUIT), FRUIT.encoder, settings(), clock=lambda: NOW, memories=held)


def shown(answer: Answer) -> list[str]:
    return [result.text for result in answer.results]


def test_a_session_is_remembered_from_one_process_to_the_next(tmp_path: Path) -> None:
    """LRN-15: topic and results, without the caller carrying anything; other sessions have nothing of it."""
    for text in ("apple pie", "apple tart", "apple jam"):
        assert searcher(tmp_path).search(a_query(text, session_id=S1)).memory is not None
    leap = searcher(tmp_path).search(a_query("banana bread", session_id=S1))
    assert leap.understanding is not None
    assert leap.understanding.shift is not None
    assert leap.understanding.shift.happened
    other = searcher(tmp_path).search(a_query("banana bread", session_id=S2))
    assert other.understanding is not None
    assert other.understanding.shift is None
    assert MemoryStore(tmp_path).read(S1) == leap.memory


def test_what_a_session_was_given_can_be_left_out_in_the_next_process(tmp_path: Path) -> None:
    """RET-19."""
    first = searcher(tmp_path).search(a_query("apple", k=2, session_id=S1))
    again = a_query("apple", k=2, session_id=S1, repeats=Repeats.SUPPRESS)
    second = searcher(tmp_path).search(again)
    assert len(shown(first)) == 2
    assert set(shown(first)).isdisjoint(shown(second))
    assert set(shown(searcher(tmp_path).search(replace(again, session_id=None)))) & set(shown(first))


def test_queries_of_a_batch_see_those_of_their_session_before_them(tmp_path: Path) -> None:
    """LRN-15: in their order, as if each was asked alone; those without a session are answered together."""
    texts = ("apple pie", "apple tart", "banana bread", "apple jam")
    batch = [a_query(text, query_id=f"q{at}", session_id=None if at == 3 else S1) for at, text in enumerate(texts)]
    answers = searcher(tmp_path / "batch").search_many(batch)
    alone = [searcher(tmp_path / "alone").search(query) for query in batch]
    assert [answer.query.text for answer in answers] == list(texts)
    assert [answer.results for answer in answers] == [answer.results for answer in alone]
    assert [answer.memory for answer in answers] == [answer.memory for answer in alone]
    assert answers[3].memory is None


def test_who_carries_a_memory_is_answered_by_that(tmp_path: Path) -> None:
    """LRN-15: the store is left alone."""
    answer = searcher(tmp_path).search(a_query("apple pie", session_id=S1, memory=SessionMemory(draws=7)))
    assert answer.memory is not None
    assert answer.memory.draws == 7
    assert MemoryStore(tmp_path).read(S1) == SessionMemory()


def test_draws_of_weights_are_counted(tmp_path: Path) -> None:
    """LRN-15: Thompson state is part of the session."""
    for at in range(3):
        searcher(tmp_path).search(a_query("apple", query_id=f"q{at}", session_id=S1, explore=at != 1))
    assert MemoryStore(tmp_path).read(S1).draws == 2


def _draw(root: str, times: int) -> None:
    for _ in range(times):
        MemoryStore(Path(root)).update(S1, SessionMemory.drawn)


def test_several_processes_lose_nothing_of_a_session(tmp_path: Path) -> None:
    """LRN-15: each makes its memory out of the last one."""
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_draw, args=(str(tmp_path), 20)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 3
    assert MemoryStore(tmp_path).read(S1).draws == 60


def test_a_search_never_fails_for_want_of_its_memory(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """LRN-15: a damaged one counts as none, and one that another process holds is done without; both are told."""
    memories = MemoryStore(tmp_path)
    plain = searcher(tmp_path).search(a_query("apple pie"))
    memories.write(S1, SessionMemory(draws=3))
    (path,) = (tmp_path / "sessions" / "memories").glob("*.json")
    path.write_bytes(b"\x00")
    answer = searcher(tmp_path).search(a_query("apple pie", session_id=S1))
    assert (answer.results, memories.read(S1).draws) == (plain.results, 0)
    assert str(path) in caplog.text
    memories.PATIENCE = Patience(0.0, 0.0)  # type: ignore[misc]
    (lock,) = (tmp_path / "sessions" / "memories").glob(".lock*")
    with locked(lock, Patience(0.0, 0.0)):
        with pytest.raises(StoreError):
            memories.update(S1, SessionMemory.drawn)
        unremembered = searcher(tmp_path, memories).search(a_query("apple pie", session_id=S1))
    assert (unremembered.results, unremembered.memory) == (plain.results, None)
    assert "does not remember" in caplog.text


def test_those_that_were_not_heard_of_for_longest_make_room(tmp_path: Path) -> None:
    """LRN-15: sessions that never end do not fill the disk; a name is never part of a path."""
    memories = MemoryStore(tmp_path)
    memories.MOST = 3  # type: ignore[misc]
    written: set[Path] = set()
    for at in range(6):
        memories.update(SessionId(f"../s{at}"), SessionMemory.drawn)
        for path in {*tmp_path.rglob("*.json")} - written:
            os.utime(path, ns=(at, at))  # a clock may not tell two writes apart
            written.add(path)
    assert [memories.read(SessionId(f"../s{at}")).draws for at in range(6)] == [0, 0, 0, 1, 1, 1]
    assert {path.parent for path in tmp_path.rglob("*.json")} == {tmp_path / "sessions" / "memories"}


def test_a_filter_that_is_none_is_refused_in_a_session_too(tmp_path: Path) -> None:
    """RET-4: what a search raises is raised, and nothing is remembered of it."""
    with pytest.raises(ValueError, match="query q-1"):
        searcher(tmp_path).search(Query(text="apple", query_id="q-1", session_id=S1, filters={"since": "yesterday"}))
    assert MemoryStore(tmp_path).read(S1) == SessionMemory()
