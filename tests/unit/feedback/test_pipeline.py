"""FBK-3, FBK-5, ARC-3: what becomes of every record, and what a partition's store is left with."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.feedback_events import (
    HASHES,
    NOON,
    RULES,
    explicit,
    impression,
    inclusion,
    one_of_each,
    records,
    reference,
    retrieval,
    rules,
    selection,
    session,
    shown,
    success,
)
from tests.support.feedback_source import FakeLog, FakeSource
from tests.support.words_spoken import side_of
from weft.domain.errors import BrokerUnavailableError, FencedError, WrongLogError
from weft.domain.events import AnyEvent
from weft.feedback.publish.snapshot import publish_snapshot
from weft.feedback.run.updater import Updater
from weft.feedback.settings import FeedbackSettings
from weft.feedback.store.report import PartitionReport
from weft.feedback.store.tables import evidence_in
from weft.learning.evidence import Evidence
from weft.learning.observe.impressions import EXAMINATION
from weft.learning.observe.triggers import REMOVED
from weft.learning.priors import RANKS
from weft.runtime.kafka.log import Record

DAY = NOON // 86_400_000
WINDOW = round(RULES.time.window_s * 1000)


def opened(store: Path, log: FakeLog, settings: FeedbackSettings = RULES) -> Updater:
    return Updater.open(FakeSource(log), store, range(len(log.partitions)), settings)


def after(
    store: Path, contents: Iterable[AnyEvent | bytes | None] | list[Record], settings: FeedbackSettings = RULES
) -> tuple[PartitionReport, Evidence]:
    """The partition after consuming everything, and what feedback said: without the count of what was shown."""
    contents = list(contents)
    lain = contents if contents and isinstance(contents[0], Record) else records(contents)  # type: ignore[arg-type]
    updater = opened(store, FakeLog.of(lain), settings)  # type: ignore[arg-type]
    while updater.step(0.0):
        pass
    (standing,) = updater.progress()
    evidence = updater._states[0].read(evidence_in)
    updater.close()
    assert standing.report.balanced
    assert standing.lag == 0
    said = {key: mass for key, mass in evidence.counts.items() if key.parameter != EXAMINATION}
    return standing.report, Evidence(said, evidence.usage)


def fates(report: PartitionReport) -> tuple[int, int, int, int]:
    return report.applied, report.duplicate, report.dead_lettered, report.late


def masses(evidence: Evidence, parameter: str) -> dict[str, int]:
    return {key.bin: micro for key, micro in evidence.counts.items() if key.parameter == parameter}


def test_feedback_meets_its_impression(tmp_path: Path) -> None:
    """FBK-4, LRN-18: s = 0.5 and a good outcome of weight 1 is half a unit for and half against, on the event's day.

    It is a word on the content, too, since noon, of a result that had the best score on its page.
    """
    report, evidence = after(tmp_path, [impression(), explicit(1.0, 1)])
    assert fates(report) == (2, 0, 0, 0)
    assert masses(evidence, "signal.vector.good") == {"for": 500_000, "against": 500_000}
    assert {(key.day, key.content_hash, key.bin): n for key, n in evidence.usage.items()} == {
        (DAY, HASHES[1], "verdict:good:43200000:100"): 1_000_000
    }


def test_the_order_of_the_two_does_not_matter(tmp_path: Path) -> None:
    """FBK-4: feedback waits for an impression that is still on its way."""
    answered = [impression(), explicit(1.0, 1), selection(3)]
    _, in_order = after(tmp_path / "in order", answered)
    report, early = after(tmp_path / "early", [*answered[1:], answered[0]])
    assert early == in_order
    assert (report.applied, report.waiting, report.unjoined) == (3, 0, 0)


def test_showing_alone_is_no_evidence(tmp_path: Path) -> None:
    """FBK-12: nothing was said about it."""
    _, evidence = after(tmp_path, [session(), impression()])
    assert evidence.is_empty


def test_what_was_shown_and_clicked_is_counted_by_rank(tmp_path: Path) -> None:
    """FBK-10: once each, down to the last rank that is told apart; a second click on a result counts no more."""
    page = impression(results=[shown(rank) for rank in range(1, RANKS + 2)])
    updater = opened(tmp_path, FakeLog.of(records([page, selection(2), selection(2, event_id="again")])))
    updater.step(0.0)
    counts = {
        key.bin: mass
        for key, mass in updater._states[0].read(evidence_in).counts.items()
        if key.parameter == EXAMINATION
    }
    updater.close()
    seen = {f"{rank:02d}/04/8/04/8.shown": 1_000_000 for rank in range(1, RANKS + 1)}
    scores = {f"{rank:02d}/04/8/04/8.score": 500_000 for rank in range(1, RANKS + 1)}
    leads = {f"{rank:02d}/04/8/04/8.lead": 500_000 for rank in range(1, RANKS + 1)}
    assert counts == {**seen, **scores, **leads, "02/04/8/04/8.clicked": 1_000_000}


def test_every_type_of_event_is_applied(tmp_path: Path) -> None:
    """FBK-1: reports need no impression."""
    report, evidence = after(tmp_path, one_of_each(), rules(limits__principal_daily=100.0))
    assert fates(report) == (len(one_of_each()), 0, 0, 0)
    assert {key.parameter.partition(".")[0] for key in evidence.counts} == {
        *("signal", "product", "relevance", "decay", "threshold", "quality", "trust", "speaker")
    }
    uses = {"retrieval", "inclusion", "reference", "inaccurate"}
    assert {"lesson" if key.bin.startswith("lesson.") else side_of(key.bin) for key in evidence.usage} == {
        "positive",
        "negative",
        *uses,
        "question:how?",
        f"{REMOVED}flush",
        "lesson",
    }


def test_being_retrieved_is_never_evidence_of_being_good(tmp_path: Path) -> None:
    """FBK-12: what was found and left out is weakly bad, and nothing else."""
    _, evidence = after(tmp_path, [impression(), retrieval(4)])
    assert {(key.content_hash, key.bin): mass for key, mass in evidence.usage.items()} == {
        (HASHES[4], "negative"): round(RULES.credit.retrieved * 1_000_000),
        (HASHES[4], "retrieval"): 1_000_000,
    }
    assert not [key for key in evidence.counts if key.parameter.endswith(".good") or key.bin.endswith(".good")]


def test_feedback_of_any_type_waits_for_its_impression(tmp_path: Path) -> None:
    """FBK-4: across transactions, with all that it says."""
    early = [retrieval(3), inclusion(1), reference(1, match=0.5), success(), explicit(), selection(2)]
    _, in_order = after(tmp_path / "in order", [impression(), *early])
    report, evidence = after(tmp_path / "early", [*early, impression()], rules(poll_records=1))
    assert (report.waiting, evidence) == (0, in_order)


def test_a_repeated_event_id_is_dropped(tmp_path: Path) -> None:
    """FBK-5: within one batch and across batches."""
    contents = [impression(), explicit(), explicit(), explicit()]
    for poll_records in (100, 1):
        report, evidence = after(tmp_path / str(poll_records), contents, rules(poll_records=poll_records))
        assert fates(report) == (2, 2, 0, 0)
        assert masses(evidence, "relevance") == {"10/20.good": 1_000_000}


def test_wrong_records_stop_nothing(tmp_path: Path) -> None:
    """FBK-3: every one is a dead letter with its reason, what stands around them counts."""
    wrong = [None, b"{", b"x" * 300_000, impression(event_id="again"), explicit(1.0, 9, event_id="never shown")]
    report, evidence = after(tmp_path, [b"", impression(), *wrong, explicit()])
    assert fates(report) == (2, 0, 6, 0)
    assert report.reasons == {
        "oversized": 1,
        "repeated_impression": 1,
        "tombstone": 1,
        "undecodable": 2,
        "unknown_result": 1,
    }
    assert not evidence.is_empty


def test_a_dead_letter_keeps_the_head_of_its_bytes(tmp_path: Path) -> None:
    """FBK-3: partition, offset, reason, up to 64 KiB of the original, and the SHA-256 of all of it."""
    import hashlib
    import sqlite3

    original = b"\xff" * 300_000
    after(tmp_path, [session(), original])
    connection = sqlite3.connect(tmp_path / "updaters/0/state.sqlite")
    (row,) = connection.execute("select offset, reason, size, sha256, original from dead_letters")
    connection.close()
    assert row == (1, "oversized", len(original), hashlib.sha256(original).hexdigest(), original[: 64 * 1024])


def test_no_timestamp_outweighs_an_ordinary_one(tmp_path: Path) -> None:
    """FBK-3: a far-future event is refused, and one that claims its record's lying time lands an hour ahead."""
    honest = [impression(), explicit(event_id="honest")]
    liars = [explicit(event_id="liar", ts=2**62), explicit(event_id="twin", ts=NOON + 400 * 86_400_000)]
    report, evidence = after(tmp_path, [*honest, *liars, explicit(event_id="after")])
    assert report.reasons == {"too_new": 1}
    assert {key.day for key in evidence.counts} == {DAY}
    assert report.clock_ms == NOON + round(RULES.time.clock_step_s * 1000)


def test_an_event_older_than_the_window_is_late(tmp_path: Path) -> None:
    """FBK-5: its id may have been forgotten, so it cannot be told from a repeat."""
    contents = [impression(), session(event_id="now"), explicit(ts=NOON - WINDOW - 1), explicit(ts=NOON - WINDOW)]
    lain = [record._replace(timestamp=NOON) for record in records(contents)]
    report, _ = after(tmp_path, lain)
    assert fates(report) == (3, 0, 0, 1)


def test_feedback_on_an_expired_impression_is_late(tmp_path: Path) -> None:
    """FBK-4: the window is a day of event time."""
    settings = rules(time__clock_step_s=WINDOW)
    contents = [impression(), explicit(event_id="too late", ts=NOON + WINDOW + 1)]
    report, evidence = after(tmp_path, contents, settings)
    assert fates(report) == (1, 0, 0, 1)
    assert evidence.is_empty


def test_feedback_that_answers_nothing_waits_for_a_day(tmp_path: Path) -> None:
    """FBK-4: it was applied when it came, waits, and is given up as unjoined."""
    settings = rules(time__clock_step_s=WINDOW)
    report, _ = after(tmp_path / "waits", [explicit()], settings)
    assert (report.applied, report.waiting, report.unjoined) == (1, 1, 0)
    report, _ = after(tmp_path / "gone", [explicit(), session(ts=NOON + WINDOW + 1)], settings)
    assert (report.applied, report.waiting, report.unjoined) == (2, 0, 1)


def test_feedback_of_another_session_does_not_meet_the_impression(tmp_path: Path) -> None:
    """FBK-11: knowing a query id is not enough."""
    report, evidence = after(tmp_path, [impression(), explicit(session_id="intruder")])
    assert report.waiting == 1
    assert evidence.is_empty


def test_the_join_window_is_bounded_by_count_too(tmp_path: Path) -> None:
    """FBK-4: an impression is remembered over the newest so many records."""
    filling = [session(event_id=f"session {number}") for number in range(10)]
    settings = rules(limits__waiting_records=5)
    report, evidence = after(tmp_path, [impression(), *filling, explicit()], settings)
    assert report.waiting == 1
    assert evidence.is_empty


@pytest.mark.parametrize("poll_records", [1, 2, 3, 5, 1000])
def test_batches_leave_no_trace(tmp_path: Path, poll_records: int) -> None:
    """ARC-3: where batches begin changes nothing, not even at the edges of windows and limits."""
    filling = [session(event_id=f"session {number}", ts=NOON + number * 40_000_000) for number in range(8)]
    contents: list[AnyEvent | bytes | None] = [
        explicit(event_id="early", query_id="q2", ts=NOON),
        impression(),
        explicit(),
        *filling[:3],
        explicit(event_id="later", ts=NOON + 80_000_000),
        b"?",
        selection(2, ts=NOON + 80_000_000),
        *filling[3:],
        impression("q2", ts=NOON + 280_000_000),
        explicit(event_id="explicit", ts=NOON + 280_000_000),
    ]
    tight = {"time__clock_step_s": 86_400.0, "limits__waiting_records": 7}
    whole, expected = after(tmp_path / "whole", contents, rules(**tight))
    report, evidence = after(tmp_path / "parts", contents, rules(**tight, poll_records=poll_records))
    assert (replace(report, topic_id=whole.topic_id), evidence) == (whole, expected)


def test_a_hole_in_the_offsets_is_counted(tmp_path: Path) -> None:
    """FBK-5: transaction markers and lost records leave holes; they are named, and nothing else changes."""
    lain = [record for record in records([session(event_id=str(n)) for n in range(6)]) if record.offset not in {2, 3}]
    report, _ = after(tmp_path, lain)
    assert (report.consumed, report.holes, report.next_offset) == (4, 2, 6)


def test_two_updaters_on_one_partition(tmp_path: Path) -> None:
    """FBK-4: the fencing epoch lets exactly one of them commit."""
    log = FakeLog.of(records([impression(), explicit()]))
    first = opened(tmp_path, log, rules(poll_records=1))
    first.step(0.0)
    second = opened(tmp_path, log)
    with pytest.raises(FencedError, match="another updater took partition 0"):
        first.step(0.0)
    with pytest.raises(FencedError):
        publish_snapshot(first._states[0])
    second.step(0.0)
    (standing,) = second.progress()
    assert (standing.report.consumed, standing.report.epoch) == (2, 2)


def consumed_and_moved(tmp_path: Path, log: FakeLog) -> FakeLog:
    updater = opened(tmp_path, log)
    updater.step(0.0)
    updater.close()
    return log


THREE = records([session(event_id=str(number)) for number in range(3)])


def test_a_topic_made_again_is_recognised(tmp_path: Path) -> None:
    """FBK-5: by its identity, at the start and while running; nothing of it is applied."""
    log = consumed_and_moved(tmp_path, FakeLog.of(THREE))
    with pytest.raises(WrongLogError, match=f"expected topic id {log.topic_id}"):
        opened(tmp_path, FakeLog.of(THREE))
    running = opened(tmp_path, log)
    log.topic_id, log.partitions[0] = "another", [*THREE, THREE[0]._replace(offset=3)]
    with pytest.raises(WrongLogError, match="found another"):
        running.step(0.0)
    assert running.progress()[0].report.next_offset == 3


def test_added_partitions_are_recognised(tmp_path: Path) -> None:
    """FBK-5: keys lie elsewhere now."""
    log = consumed_and_moved(tmp_path, FakeLog.of(THREE))
    log.partitions.append([])
    with pytest.raises(WrongLogError, match="expected partition count 1, found 2"):
        opened(tmp_path, log)


def test_an_offset_beyond_the_end_is_recognised(tmp_path: Path) -> None:
    """FBK-5: the log was truncated under the same identity."""
    log = consumed_and_moved(tmp_path, FakeLog.of(THREE))
    del log.partitions[0][1:]
    updater = opened(tmp_path, log)
    updater.step(0.0)  # a new leader may know an older end for a moment
    with pytest.raises(WrongLogError, match="found an end at 1"):
        updater.step(2.0)


def test_records_deleted_unread_are_recognised(tmp_path: Path) -> None:
    """FBK-5: retention overtook the updater."""
    log = consumed_and_moved(tmp_path, FakeLog.of(THREE))
    log.log_start = 5
    with pytest.raises(WrongLogError, match="the log starts at 5"):
        opened(tmp_path, log)


def test_a_new_store_begins_at_the_start_of_the_log(tmp_path: Path) -> None:
    """FBK-5: what retention deleted before there was a store is no hole."""
    log = FakeLog.of(THREE[2:])
    log.log_start = 2
    updater = opened(tmp_path, log)
    updater.step(0.0)
    report = updater.progress()[0].report
    assert (report.first_offset, report.consumed, report.holes, report.balanced) == (2, 1, 0, True)


def test_a_broker_that_is_away_costs_nothing(tmp_path: Path) -> None:
    """FBK-5: the same updater reads on when it is back."""
    log = FakeLog.of(records([impression(), explicit()]))
    updater = opened(tmp_path, log, rules(poll_records=1))
    updater.step(0.0)
    log.available = False
    with pytest.raises(BrokerUnavailableError):
        updater.step(0.0)
    log.available = True
    updater.step(0.0)
    assert updater.progress()[0].report.applied == 2
