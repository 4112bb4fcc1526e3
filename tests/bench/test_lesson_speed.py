"""LES-7, LES-8, LES-10: how long lessons take to be read, looked up, told and injected. Printed, not judged."""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from statistics import median

import pytest

from tests.conftest import ROOT
from tests.support.feedback_events import SETTINGS, lesson_added
from tests.support.lesson_words import TODAY, believed
from tests.support.session_store import Partition
from weft.domain.lesson import Conditions, Lesson, LessonPriority, LessonResult, LessonSource
from weft.learning.evidence import MICRO, Evidence
from weft.learning.lessons.rows import outcome_bin, statement_bin, text_bin
from weft.learning.uses import UsageKey, Uses
from weft.lessons.duplicates import DuplicateIndex
from weft.lessons.finding import ToolUse, finder_of

TOOLS = ("Bash", "Edit", "Write", "Read", "Grep", "mcp__*")
THINGS = ("migration", "index", "lock", "schema", "cache", "queue", "token", "image", "branch", "release", "backup")


def a_lesson(rng: random.Random, number: int) -> Lesson:
    one, other = rng.sample(THINGS, 2)
    conditions = Conditions(tools=(rng.choice(TOOLS),), words=(one, other))
    text = f"Check the {one} before touching the {other} of part {number}"
    source = rng.choice(list(LessonSource))
    return Lesson(section=one, content=text, source=source, conditions=conditions)


def evidence_of(lessons: int, outcomes: int) -> Evidence:
    """So many lessons, each said once, with so many outcomes by fifty people in a hundred days."""
    rng, usage = random.Random(1), {}
    for number in range(lessons):
        lesson = a_lesson(rng, number)
        bins = [text_bin(lesson), statement_bin(lesson.source, LessonPriority.MEDIUM)]
        bins += [outcome_bin(rng.choice(list(LessonResult)), "report") for _ in range(outcomes)]
        for bin_ in bins:
            usage[UsageKey(TODAY - rng.randrange(100), lesson.id, bin_, f"p{rng.randrange(50)}")] = MICRO
    return Evidence(usage=Uses.of(usage))


def timed(run: Callable[[], object], rounds: int = 7) -> tuple[float, float]:
    """Milliseconds that pass, and of processor time: medians."""
    walls, processors = [], []
    for _ in range(rounds):
        began, before = time.perf_counter(), time.process_time()
        run()
        walls.append((time.perf_counter() - began) * 1e3)
        processors.append((time.process_time() - before) * 1e3)
    return median(walls), median(processors)


def say(capsys: pytest.CaptureFixture[str], what: str, took: tuple[float, float]) -> None:
    with capsys.disabled():
        sys.stdout.write(f"\n{what}: {took[0]:.1f} ms, {took[1]:.1f} ms of processor time (medians)")


@pytest.mark.slow
def test_a_hundred_thousand_beliefs_are_read(capsys: pytest.CaptureFixture[str]) -> None:
    """LES-7: 100,000 lessons, each said once, with three outcomes; goal 200 ms."""
    evidence = evidence_of(100_000, 3)
    Uses.of(evidence.usage).columns()
    say(capsys, "100,000 beliefs", timed(lambda: believed(evidence).status))
    assert len(believed(evidence).ids) == 100_000


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_duplicates_among_a_hundred_thousand_are_found(capsys: pytest.CaptureFixture[str]) -> None:
    """LES-13: every twentieth is said twice, in another order; words as frequent as in a language; goal 10 s."""
    rng = random.Random(1)
    syllables = [first + second for first in "bcdfgklmnprst" for second in "aeiou"]
    things = ["".join(rng.choices(syllables, k=4)) for _ in range(20_000)]
    frequent = list(accumulate(1.0 / (rank + 10) for rank in range(len(things))))
    index, said = DuplicateIndex(SETTINGS.lessons.duplicates), []
    for number in range(95_238):
        one, other, *rest = rng.choices(things, cum_weights=frequent, k=7)
        said.append(f"Run the {one} before the {other} and keep {' with '.join(rest)}")
        if number % 20 == 0:
            said.append(f"Before the {other} run the {one} and keep {' with '.join(rest)}")
    lessons = [Lesson(section="work", content=text) for text in said]
    found: list[object] = []

    def find() -> None:
        for each in lessons:
            index.add(each)
        found.extend(index.pairs())

    say(capsys, f"duplicates among {len(lessons):,}", timed(find, rounds=1))
    assert len(found) >= 95_238 // 20


@pytest.mark.slow
def test_lessons_are_looked_up_for_a_tool_use(capsys: pytest.CaptureFixture[str]) -> None:
    """LES-8: among 10,000; goal 10 ms."""
    weights = SETTINGS.priors.lessons.relevance
    finder = finder_of(believed(evidence_of(10_000, 1)), weights, SETTINGS.lessons.duplicates)
    use, rng = ToolUse("Bash", text="drop the index of the schema before the release"), random.Random(1)
    say(capsys, "look-up among 10,000", timed(lambda: finder.find(use, limit=20, rng=rng), rounds=50))
    assert finder.find(use, limit=20, rng=rng)


@pytest.mark.slow
@pytest.mark.integration
@pytest.mark.parametrize("lessons", [1_000, 10_000])
def test_a_hook_answers_from_a_cold_shell(lessons: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """LES-10: goal 100 ms from the start of the process; modules are compiled, as an installation leaves them."""
    rng, partition = random.Random(1), Partition(tmp_path)
    partition.feed([lesson_added(a_lesson(rng, number)) for number in range(lessons)], cuts=False)
    partition.publish()
    command = [sys.executable, "-m", "weft", "lessons", "hook", "--store", str(tmp_path)]
    asked = json.dumps({"tool": "Bash", "context": "drop the index of the schema"}).encode()

    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path / "compiled")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def ask() -> bytes:
        done = subprocess.run(command, cwd=ROOT, env=environment, input=asked, capture_output=True, check=True)
        return done.stdout

    assert b"index" in ask()  # which makes the table
    walls, processors = [], []
    for _ in range(40):
        began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        ask()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        walls.append((time.perf_counter() - began) * 1e3)
        processors.append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e3)
    slow = sorted(walls)[int(0.95 * len(walls))]
    say(capsys, f"hook, {lessons:,} lessons, 95 of 100 within {slow:.0f} ms", (median(walls), median(processors)))
