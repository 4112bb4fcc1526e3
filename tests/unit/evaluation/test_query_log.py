"""EVA-3: the query log loses at most what waits, blocks nobody, and is joined with feedback."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.feedback_source import FakeLog, FakeSource
from tests.support.retrieval_fakes import NOW, MemoryGeneration, a_query, a_searcher
from weft.domain.events import Explicit, Impression, Inclusion, Selection, Success
from weft.domain.ids import QueryId
from weft.evaluation.queries import writer
from weft.evaluation.queries.days import OUTCOME_LOG, QUERY_LOG, day_folder, files_of, keep_days, merge_small
from weft.evaluation.queries.outcomes import Outcomes, outcome_rows
from weft.evaluation.queries.reader import read_queries
from weft.evaluation.queries.writer import QueryLog, sampled
from weft.evaluation.settings import QueryLogSettings
from weft.feedback.events.codec import encode
from weft.runtime.clock import day_of
from weft.runtime.kafka.log import Record
from weft.settings import load_settings

SETTINGS = load_settings(environment={}).query_log
FRUIT = MemoryGeneration({"a": ["red apple"], "b": ["red pear"], "c": ["green apple pie"], "d": ["plum"]})
SEARCHER = a_searcher(FRUIT)
EXPLORED = SEARCHER.search(a_query("red apple", explore=True, session_id="s1", principal="ada"))
ANSWER = SEARCHER.search(a_query("red apple"))


def tuned(**changes: object) -> QueryLogSettings:
    return SETTINGS.model_copy(update=changes)


def asked(number: int):
    return replace(ANSWER, query=replace(ANSWER.query, query_id=QueryId(f"q{number}")))


def a_log(root: Path, *, at: float = NOW, waiting: int = 1000, **changes: object) -> QueryLog:
    writing = {name: changes.pop(name) for name in ("flush_rows", "flush_s") if name in changes}
    return QueryLog(root, tuned(**changes), clock=lambda: at, waiting=waiting, **writing)


def test_a_logged_answer_is_read_back_with_everything_it_rests_on(tmp_path: Path) -> None:
    """EVA-3: query, timings by stage, channels with scores, results with contributions, weights and seed."""
    with a_log(tmp_path) as log:
        log.emit(EXPLORED)
    (found,) = read_queries(tmp_path, limit=10)
    assert (found.query_id, found.text, found.at, found.explored) == ("q-1", "red apple", NOW, True)
    facts = found.facts
    assert EXPLORED.understanding is not None
    assert (facts["type"], facts["intent_confidence"]) == (
        EXPLORED.understanding.type.value,
        EXPLORED.understanding.confidence,
    )
    assert (facts["seed"], facts["principal"], facts["fusion"]) == ("q-1", "ada", "learned")
    assert {stage["name"] for stage in facts["timings_ms"]} == set(EXPLORED.timings_ms)
    assert {channel: [(hit.content_hash, hit.score) for hit in head] for channel, head in found.heads.items()} == {
        channel.value: list(head) for channel, head in EXPLORED.heads.items()
    }
    for logged, shown in zip(found.results, EXPLORED.results, strict=True):
        assert (logged.content_hash, logged.score, logged.propensity) == (
            shown.content_hash,
            shown.score,
            shown.propensity,
        )
        assert logged.contributions == {part.name: part.amount for part in shown.contributions}
        assert logged.score_without("vector") == pytest.approx(shown.score - logged.contributions["vector"])
    used = {row["signal"]: row["weight"] for row in facts["weights"]}
    assert used == {part.name: part.weight for part in EXPLORED.results[0].contributions}


def test_the_log_is_kept_by_date_and_for_as_long_as_stated(tmp_path: Path) -> None:
    """EVA-3: a folder a day; ninety days later it is gone, younger ones stay."""
    day = day_of(NOW)
    for age in (95, 90, 89, 0):
        with a_log(tmp_path, at=NOW - age * 86_400) as log:
            log.emit(asked(age))
    assert SETTINGS.keep_days == 90
    kept = sorted(path.name for path in (tmp_path / QUERY_LOG).iterdir())
    assert kept == sorted(day_folder(Path(), day - age).name for age in (89, 0))
    assert {query.query_id for query in read_queries(tmp_path, limit=9)} == {"q89", "q0"}
    assert [q.query_id for q in read_queries(tmp_path, limit=9, since=NOW - 86_400)] == ["q0"]
    assert keep_days(tmp_path / "absent", 90, today=day) == []


def test_a_full_queue_drops_and_counts_and_never_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """EVA-3: off the critical path: a disk that hangs delays no search."""
    hangs = threading.Event()

    def write(*arguments: object) -> None:
        hangs.wait()

    monkeypatch.setattr(writer, "write_table", write)
    log = a_log(tmp_path, waiting=5, flush_rows=1)
    for number in range(50):
        log.emit(asked(number))
    assert not hangs.is_set()
    assert 50 - 5 - 2 <= log.dropped <= 50 - 5
    hangs.set()
    log.close()


def test_rows_that_cannot_be_written_are_lost_and_counted(tmp_path: Path) -> None:
    """EVA-3: a full disk fails no search."""
    (tmp_path / "logs").write_text("a file where a folder should be")
    with a_log(tmp_path) as log:
        log.emit(ANSWER)
    assert (log.logged, log.lost) == (0, 1)


def test_rows_are_written_when_they_are_due_though_they_are_few(tmp_path: Path) -> None:
    """EVA-3: what a crash may lose is bounded in time."""
    log = a_log(tmp_path, flush_s=0.05)
    log.emit(ANSWER)
    while not log.logged:
        threading.Event().wait(0.01)
    assert len(read_queries(tmp_path, limit=5)) == 1
    log.close()


def test_many_threads_log_every_answer_once(tmp_path: Path) -> None:
    """EVA-3: counted together, nothing is missing."""
    with a_log(tmp_path, flush_rows=7) as log:
        threads = [
            threading.Thread(target=lambda start=start: [log.emit(asked(n)) for n in range(start, start + 25)])
            for start in range(0, 100, 25)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert (log.logged, log.dropped, log.lost) == (100, 0, 0)
    assert {query.query_id for query in read_queries(tmp_path, limit=200)} == {f"q{n}" for n in range(100)}
    assert len(read_queries(tmp_path, limit=30)) == 30


def test_a_sample_is_chosen_by_query_id(tmp_path: Path) -> None:
    """EVA-3: about its share, the same queries wherever they are asked; and at 0 nothing."""
    chosen = {f"q{n}" for n in range(1000) if sampled(QueryId(f"q{n}"), 0.2)}
    assert 150 < len(chosen) < 250
    with a_log(tmp_path, sample=0.2, waiting=2000) as log:
        for number in range(1000):
            log.emit(asked(number))
    assert {query.query_id for query in read_queries(tmp_path, limit=1000)} == chosen
    with a_log(tmp_path / "off", sample=0.0) as off:
        off.emit(ANSWER)
    assert not (tmp_path / "off").exists()


def test_what_a_crash_left_and_what_is_damaged_hides_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """EVA-3: a half-written file has another name; a damaged one is left out and named; a repeated row counts once."""
    with a_log(tmp_path) as log:
        log.emit(ANSWER)
    (file,) = files_of(tmp_path / QUERY_LOG)
    (file.parent / ".half.parquet.x1").write_bytes(file.read_bytes()[:100])
    (file.parent / "cut.parquet").write_bytes(file.read_bytes()[:-20])
    (file.parent / "again.parquet").write_bytes(file.read_bytes())
    assert len(read_queries(tmp_path, limit=5)) == 1
    assert "cut.parquet" in caplog.text


def test_hostile_texts_are_logged_as_far_as_they_can_be(tmp_path: Path) -> None:
    """EVA-3, RET-21: lone surrogates, and texts without end."""
    hostile = replace(ANSWER, query=replace(ANSWER.query, text="\ud800 'x\"; drop" + "a" * 9999, query_id="q\udfff"))
    with a_log(tmp_path) as log:
        log.emit(hostile)
        log.emit(ANSWER)
    found = {query.query_id: query.text for query in read_queries(tmp_path, limit=5)}
    assert found == {"q?": "? 'x\"; drop" + "a" * (4096 - 11), "q-1": "red apple"}
    assert read_queries(tmp_path, limit=5, query_id="' or ''='") == []


def stamp(number: int, **facts: object) -> dict:
    return {
        "event_id": f"e{number}",
        "ts": round(NOW * 1000),
        "session_id": "s",
        "principal": "ada",
        "query_id": "q-1",
        **facts,
    }


FIRST, SECOND = (result.content_hash for result in ANSWER.results[:2])
EVENTS = [
    Selection(**stamp(1), content_hash=FIRST, rank=1),
    Explicit(**stamp(2), signal=-1.0, content_hash=SECOND),
    Inclusion(**stamp(3), content_hashes=(FIRST, SECOND)),
    Success(**stamp(4)),
    Impression(**stamp(5), query_hash=FIRST, results=[]),
    Success(**stamp(6, query_id="another")),
]


def records(events: list) -> list[Record]:
    values = [*(encode(event) for event in events), b"garbage", None]
    return [Record(0, offset, 0, b"s", value) for offset, value in enumerate(values)]


def collector(root: Path) -> Outcomes:
    return Outcomes(root, tuned(poll_records=2), max_bytes=10_000, now=NOW)


def test_feedback_is_joined_with_the_query_that_it_is_about(tmp_path: Path) -> None:
    """EVA-3: selections and usefulness come later, each event once, impressions and garbage not at all."""
    with a_log(tmp_path) as log:
        log.emit(ANSWER)
    topic = FakeLog.of(records([*EVENTS, EVENTS[0]]))
    found = collector(tmp_path).collect(FakeSource(topic))
    assert (found.records, found.outcomes) == (9, 7)
    (query,) = read_queries(tmp_path, limit=5)
    assert sorted((seen.kind, seen.content_hash or "", seen.value) for seen in query.outcomes) == sorted(
        [
            ("selection", FIRST, 1.0),
            ("explicit", SECOND, -1.0),
            ("inclusion", FIRST, 1.0),
            ("inclusion", SECOND, 1.0),
            ("success", "", 1.0),
        ]
    )


def test_collecting_goes_on_from_where_it_stopped(tmp_path: Path) -> None:
    """EVA-3: nothing is read twice, what comes later is read then, and a topic made anew from its start."""
    topic = FakeLog.of(records(EVENTS[:2]))
    assert collector(tmp_path).collect(FakeSource(topic)).records == 4
    assert collector(tmp_path).collect(FakeSource(topic)).records == 0
    topic.partitions[0].append(Record(0, 4, 0, b"s", encode(EVENTS[3])))
    assert collector(tmp_path).collect(FakeSource(topic)).outcomes == 1
    assert collector(tmp_path).collect(FakeSource(FakeLog.of(records(EVENTS)))).records == 8


def test_a_crash_between_rows_and_position_counts_nothing_twice(tmp_path: Path) -> None:
    """EVA-3: the position is written last; what is read again carries the same event ids."""
    with a_log(tmp_path) as log:
        log.emit(ANSWER)
    topic = FakeLog.of(records(EVENTS))
    collector(tmp_path).collect(FakeSource(topic))
    before = read_queries(tmp_path, limit=5)
    (tmp_path / OUTCOME_LOG / "positions.json").unlink()
    collector(tmp_path).collect(FakeSource(topic))
    assert read_queries(tmp_path, limit=5) == before


def test_an_event_from_another_age_is_left_out(tmp_path: Path) -> None:
    """EVA-3, FBK-5: a clock that is wrong by decades puts nothing on days that nobody reads."""
    late = Success(**stamp(7, ts=2**50))
    assert collector(tmp_path).collect(FakeSource(FakeLog.of(records([late])))).outcomes == 0
    assert [row["kind"] for row in outcome_rows(late)] == ["success"]


def test_small_files_become_one_and_every_row_stays(tmp_path: Path) -> None:
    """EVA-3: read before, after, and after a crash between the two; damaged files are left alone."""
    with a_log(tmp_path, flush_rows=1) as log:
        for number in range(12):
            log.emit(asked(number))
    folder = day_folder(tmp_path / QUERY_LOG, day_of(NOW))
    before, small = read_queries(tmp_path, limit=99), {path: path.read_bytes() for path in folder.iterdir()}
    assert (len(before), len(small)) == (12, 12)
    assert merge_small(folder, least=13) is None
    merged = merge_small(folder, least=12)
    assert list(folder.iterdir()) == [merged]
    assert read_queries(tmp_path, limit=99) == before
    for path, data in small.items():
        path.write_bytes(data)  # as if it had been killed before they were removed
    assert read_queries(tmp_path, limit=99) == before
    for path, data in small.items():
        path.write_bytes(data[:-9])
    assert merge_small(folder, least=2) is None
    assert read_queries(tmp_path, limit=99) == before


def test_the_log_merges_its_small_files_by_itself(tmp_path: Path) -> None:
    """EVA-3: a trickle of queries leaves no thousands of files."""
    with a_log(tmp_path, flush_rows=1) as log:
        for number in range(123):
            log.emit(asked(number))
        while log.logged < 123:  # closing waits for ten seconds at most, which a busy machine may take longer for
            time.sleep(0.01)
    assert len(files_of(tmp_path / QUERY_LOG)) == 1 + 23  # a merged one of a hundred, and 23 that are too few
    assert len(read_queries(tmp_path, limit=999)) == 123


def test_what_comes_after_closing_is_dropped_and_counted(tmp_path: Path) -> None:
    """EVA-3: nothing waits for a thread that is gone."""
    with a_log(tmp_path) as log:
        log.emit(asked(1))
    log.emit(asked(2))
    assert (log.logged, log.dropped) == (1, 1)
