"""LES-6, LES-13: operations and nights change the book of lessons by events, through a real broker."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT
from weft.app.lessons.operations import ensure_store_and_topic, lesson_sender
from weft.app.lessons.pairs import tend_lessons
from weft.app.lessons.view import live_lessons
from weft.app.night import asking_night
from weft.catalog.catalog import Catalog
from weft.consolidation.pipeline import consolidate
from weft.domain.lesson import Lesson, LessonSource
from weft.learning.lessons.beliefs import LessonBeliefs
from weft.learning.lessons.rows import ALIAS, NIGHT
from weft.runtime.kafka.broker import EmbeddedBroker
from weft.settings import Settings, load_settings


def correction(content: str) -> Lesson:
    return Lesson(section="work", content=content, source=LessonSource.USER_CORRECTION)


RUN, TURNED = (
    correction("Run the migrations before starting the API"),
    correction("Before starting the API, run the migrations"),
)
ALWAYS, NEVER = correction("Always squash commits before merging"), correction("Never squash commits before merging")


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[Settings]:
    """A store to which four lessons were said: two that say the same, and two opposites."""
    with EmbeddedBroker() as broker:
        assigned = [f"kafka.bootstrap={broker.bootstrap}", f"storage.root={tmp_path / 'store'}"]
        here = load_settings(assignments=assigned, environment={})
        ensure_store_and_topic(here)
        with lesson_sender(here, "ada", None) as speaker:
            for each in (RUN, TURNED, ALWAYS, NEVER):
                speaker.producer.lesson_added(speaker.session_of(each.id), each, principal="ada")
        update(here)
        yield here


def update(settings: Settings) -> None:
    """What was said becomes evidence."""
    command = [sys.executable, "-m", "jobs.update", "--local", "--until-caught-up", *places(settings)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)


def places(settings: Settings) -> list[str]:
    return ["--store", settings.storage.root, "--bootstrap", settings.kafka.bootstrap]


def beliefs_of(settings: Settings) -> LessonBeliefs:
    return live_lessons(Catalog(Path(settings.storage.root)), settings)


def apply(settings: Settings, *operations: object) -> tuple[int, dict[str, object]]:
    """The exit code of `weft lessons apply`, and what it prints."""
    given = "\n".join(each if isinstance(each, str) else json.dumps(each) for each in operations)
    command = [sys.executable, "-m", "weft", "lessons", "apply", "-", *places(settings)]
    done = subprocess.run(command, cwd=ROOT, input=given, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.integration
@pytest.mark.timeout(300)
def test_a_night_merges_by_events_what_says_the_same_and_a_person_splits_it(settings: Settings) -> None:
    """LES-13: exactly once, however often it is said; opposites are for people; a person's word outranks it."""
    apart = beliefs_of(settings)
    assert {apart.of(each.id).representative for each in (RUN, TURNED)} == {RUN.id, TURNED.id}  # type: ignore[union-attr]
    nowhere = settings.model_copy(update={"kafka": settings.kafka.model_copy(update={"bootstrap": "127.0.0.1:1"})})
    waiting: list[str] = []
    with asking_night(nowhere, waits=waiting.append) as night:
        rehearsed = consolidate(night, dry_run=True)["steps"]["lessons"]
        summary = consolidate(night)
    assert (rehearsed["proposed"], rehearsed["applied"]) == (2, 0)
    counts = {name: summary["steps"]["lessons"][name] for name in ("proposed", "applied", "in_conflict", "to_review")}
    assert counts == {"proposed": 2, "applied": 0, "in_conflict": 1, "to_review": 1}
    assert summary["learned"]  # without a broker the night goes on, and says what waits
    assert len(waiting) == 1
    assert "wait for a later night (1 pairs)" in waiting[0]

    for _ in range(2):  # a night that is taken up again
        told = tend_lessons(beliefs_of(settings), False, settings=settings)
        assert (told["proposed"], told["applied"]) == (2, 1)
    update(settings)
    merged = beliefs_of(settings)
    links = [key for key in Catalog(Path(settings.storage.root)).live.evidence().usage if key.bin.startswith(ALIAS)]
    assert len(links) == 1
    assert len({merged.of(each.id).representative for each in (RUN, TURNED)}) == 1  # type: ignore[union-attr]
    assert {each.by for each in merged.history(RUN.id) if each.what == "alias"} == {NIGHT}
    assert tend_lessons(merged, False, settings=settings)["applied"] == 0

    link = {"lesson_id": RUN.id, "other_id": TURNED.id}  # in whichever direction
    assert apply(settings, {"kind": "KEEP-APART", **link})[0] == 0
    update(settings)
    split = beliefs_of(settings)
    for each in (RUN.id, TURNED.id):
        before, after = apart.of(each), split.of(each)
        assert before is not None and after is not None  # noqa: PT018
        assert (after.p_good, after.representative) == (before.p_good, each)
    assert tend_lessons(split, False, settings=settings)["proposed"] == 1


@pytest.mark.integration
@pytest.mark.timeout(300)
def test_operations_are_applied_one_by_one_and_errors_name_their_index(settings: Settings) -> None:
    """LES-6: seven kinds, from stdin; what is refused stops nothing, and the exit code says so."""
    pin, digest = correction("Pin the base image"), correction("Pin the base image by its digest")
    code, printed = apply(
        settings,
        {"kind": "ADD", "lesson": pin.as_fields()},
        {"kind": "retire", "lesson_id": NEVER.id},
        "no JSON",
        {"kind": "REVISE", "lesson_id": pin.id, "lesson": digest.as_fields()},
        {"kind": "MERGE", "lesson_id": TURNED.id, "other_id": RUN.id},
        {"kind": "MERGE", "lesson_id": ALWAYS.id, "other_id": NEVER.id},
        {"kind": "RETIRE", "lesson_id": NEVER.id, "why": "we squash"},
        {"kind": "TAG", "lesson_id": ALWAYS.id, "result": "success"},
        {"kind": "ADD", "lesson": {"section": "work", "content": "Log in with password: hunter2!"}},
        {"kind": "forget", "lesson_id": ALWAYS.id},
        {"kind": "ADD", "lesson": {"section": "work"}},
    )
    assert code == 1
    assert printed["accepted"] == ["add", "revise", "merge", "retire", "tag"]
    errors = printed["errors"]
    assert isinstance(errors, list)
    assert [each["index"] for each in errors] == [1, 2, 5, 8, 9, 10]
    assert "hunter2" not in json.dumps(errors)
    update(settings)
    beliefs = beliefs_of(settings)
    status = {each.id: each.status.value for each in beliefs.all()}
    assert (status[NEVER.id], status[pin.id], status[digest.id]) == ("retired", "retired", "active")
    assert beliefs.of(TURNED.id).representative == RUN.id  # type: ignore[union-attr]
    assert sum(beliefs.of(ALWAYS.id).counts.values()) == 1  # type: ignore[union-attr]
    code, printed = apply(settings, {"kind": "RESTORE", "lesson_id": NEVER.id, "why": "some do"})
    assert (code, printed["errors"]) == (0, [])
    update(settings)
    assert beliefs_of(settings).of(NEVER.id).status.value == "active"  # type: ignore[union-attr]
