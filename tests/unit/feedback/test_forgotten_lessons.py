"""LES-14: the text of a lesson and its history go from states, evidence and learned versions; what came of it stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.feedback_events import LESSON, lesson_added, lesson_changed, lesson_outcome, rules
from tests.support.feedback_publisher import MemoryPublisher
from tests.support.session_store import Partition, phase
from weft.app.lessons.forgetting import forget_in_versions
from weft.catalog.catalog import Catalog
from weft.catalog.learned import EVIDENCE_FILE, LearnedState, read_evidence, write_evidence
from weft.domain.events import AnyEvent
from weft.domain.lesson import Lesson, lesson_session
from weft.feedback.events.producer import FeedbackProducer
from weft.learning.evidence import Evidence
from weft.learning.lessons.rows import NOTE, TEXT, note_in
from weft.runtime.kafka.writer import partition_of
from weft.runtime.storage.files import file_hashes

OTHER = Lesson(section="api", content="Pin the base image by its digest")
WHY = "because the start of the interface reads its tables"
SAID: list[AnyEvent] = [
    lesson_added(why=WHY, principal="ada"),
    lesson_added(principal="bob", event_id="said again"),
    lesson_outcome(LESSON.id, "failure", span="you forgot the migrations", principal="ada"),
    lesson_added(OTHER, principal="ada"),
    phase("start", "s-1", principal="ada"),
    lesson_added(session_id="s-1", event_id="in a session", principal="ada"),
]
FORGET = lesson_changed("forget", LESSON.id, session_id=lesson_session(LESSON.id), principal="eve")


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    return Partition(tmp_path / "store", rules(limits__newcomers=100))


def words(evidence: Evidence, lesson: Lesson = LESSON) -> list[str]:
    """What a lesson says, and who did what to it."""
    return sorted(
        key.bin if key.bin.startswith(TEXT) else f"{note_in(key.bin).what} by {note_in(key.bin).by}"
        for key in evidence.usage
        if key.content_hash == lesson.id and key.bin.startswith((TEXT, NOTE))
    )


def masses(evidence: Evidence) -> dict[object, int]:
    """All else."""
    return {key: micro for key, micro in evidence.usage.items() if not key.bin.startswith((TEXT, NOTE))}


@pytest.mark.parametrize("cuts", [True, False])
def test_what_a_lesson_says_is_gone_and_what_came_of_it_stays(partition: Partition, *, cuts: bool) -> None:
    """LES-14: of shared evidence and of open sessions; others' words stay, and batches make no difference."""
    partition.feed(SAID, cuts=cuts)
    before = partition.shared
    assert len(words(before)) == 5
    partition.feed([FORGET, phase("complete", "s-1", principal="ada")], cuts=cuts)
    after = partition.shared
    assert words(after) == ["forget by eve"]
    assert words(after, OTHER) == words(before, OTHER) != []
    assert masses(before).keys() <= masses(after).keys()
    raw = b"".join(path.read_bytes() for path in partition.state.folder.glob("state.sqlite*"))
    assert LESSON.content.encode() not in raw
    assert WHY.encode() not in raw
    assert OTHER.content.encode() in raw


def test_in_one_batch_what_is_said_afterwards_is_there_again(partition: Partition) -> None:
    """LES-14: whoever says the same lesson again brings its text back."""
    partition.feed([*SAID[:1], FORGET, lesson_added(event_id="anew", principal="bob")], cuts=False)
    assert [each for each in words(partition.shared) if not each.startswith(TEXT)] == ["add by bob", "forget by eve"]
    assert sum(each.startswith(TEXT) for each in words(partition.shared)) == 1


def test_every_partition_is_told_and_the_lessons_own_under_its_key() -> None:
    """LES-14: events of that key are what a compacted topic takes away for the new one."""
    publisher = MemoryPublisher()
    producer = FeedbackProducer(publisher)
    producer.lesson_forgotten(LESSON.id, partitions=4, principal="eve")
    keys = [key.decode() for key, _ in publisher.sent]
    assert sorted(partition_of(key, 4) for key in keys) == [0, 1, 2, 3]
    assert lesson_session(LESSON.id) in keys


def test_learned_versions_and_their_copies_lose_the_text_and_count_the_same(partition: Partition) -> None:
    """LES-14, CON-7a: base and cut lose the same rows: what is live is what it was, and versions can be verified."""
    partition.feed(SAID[:4])
    partition.publish()
    catalog, streamed = partition.catalog, partition.shared
    state = LearnedState(parent=None, evidence=streamed, cut=streamed, created_at=7.0)
    version = catalog.learned.publish(state, expected_newest=None)
    catalog.make_live(version)
    copy = catalog.root / "mlflow" / "artifacts" / "run" / EVIDENCE_FILE
    copy.parent.mkdir(parents=True)
    write_evidence(copy, streamed)
    partition.feed([FORGET])
    partition.publish()
    live = masses(Catalog(catalog.root).live.evidence())

    assert forget_in_versions(catalog, LESSON.id) == {"learned versions": 1, "files in MLflow": 1}
    assert words(Catalog(catalog.root).live.evidence()) == ["forget by eve"]
    assert masses(Catalog(catalog.root).live.evidence()) == live
    again = Catalog(catalog.root).learned
    assert (words(again.read(version).evidence), words(again.read(version).cut), words(read_evidence(copy))) == (
        [],
        [],
        [],
    )
    manifest = again.manifest(version)
    assert manifest.files == {k: v for k, v in file_hashes(again.folder_of(version)).items() if k != "manifest.json"}
    assert (manifest.created_at, manifest.digest) == (7.0, again.read(version).evidence.digest())
    assert forget_in_versions(catalog, LESSON.id) == {"learned versions": 0, "files in MLflow": 0}
