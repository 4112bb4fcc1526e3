"""LES-3, LES-7, LES-10: lessons through a real broker, an updater of its own process, and agents in others."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.conftest import ROOT
from weft.domain.lesson import Conditions, Lesson, LessonSource
from weft.runtime.kafka.broker import EmbeddedBroker

TEXT = "Run the migrations before starting the API"
LESSON = Lesson(
    section="general", content=TEXT, source=LessonSource.USER_CORRECTION, conditions=Conditions(tools=("Bash",))
)
USE = ("--tool", "Bash", "--context", "start the api")
PATIENCE_S = 60.0


@dataclass(frozen=True)
class Agents:
    """People and agents, each command a process of its own."""

    store: Path
    bootstrap: str

    def run(self, *arguments: str, given: str = "", says: bool = False, room: str = "lessons") -> str:
        place = ["--store", str(self.store), *(["--bootstrap", self.bootstrap] if says else [])]
        command = [sys.executable, "-m", "weft", room, *arguments, *place]
        done = subprocess.run(command, cwd=ROOT, input=given, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def both(self, *arguments: str) -> tuple[str, str]:
        """What a command that says something prints, and what it says on stderr."""
        place = ["--store", str(self.store), "--bootstrap", self.bootstrap]
        command = [sys.executable, "-m", "weft", "lessons", *arguments, *place]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        return done.stdout, done.stderr

    def refused(self, *arguments: str, room: str = "lessons") -> str:
        """What a command that is refused says."""
        place = ["--store", str(self.store), "--bootstrap", self.bootstrap]
        command = [sys.executable, "-m", "weft", room, *arguments, *place]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 1, done.stdout
        return done.stderr

    def hook(self, **asked: object) -> str:
        return self.run("hook", given=json.dumps(asked), says=True)

    def await_(self, *arguments: str, until: Callable[[str], bool]) -> str:
        """What a command prints as soon as it is so."""
        end = time.monotonic() + PATIENCE_S
        while not until(printed := self.run(*arguments)):
            assert time.monotonic() < end, printed
        return printed


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agents]:
    store = tmp_path_factory.mktemp("store")
    with EmbeddedBroker() as broker:
        command = [sys.executable, "-m", "jobs.update", "--local", "--store", str(store)]
        updater = subprocess.Popen([*command, "--bootstrap", broker.bootstrap], cwd=ROOT, stderr=subprocess.DEVNULL)
        while not list((store / "updaters").glob("*/evidence.parquet")):
            assert updater.poll() is None
            time.sleep(0.1)
        try:
            yield Agents(store, broker.bootstrap)
        finally:
            updater.terminate()
            updater.wait(30)


@pytest.mark.timeout(300)
def test_a_lesson_reaches_others_and_is_retired_by_a_word(agents: Agents) -> None:
    """LES-3, LES-7, LES-10: added, told to another process, contradicted, gone; and the history says why."""
    added = agents.run("add", TEXT, "--source", "user_correction", "--tool", "Bash", "--principal", "ada", says=True)
    assert added.strip() == LESSON.id
    shown = agents.await_("prompt", *USE, "--json", until=lambda printed: LESSON.id in printed)
    (first,) = json.loads(shown)["lessons"]
    assert first["why"].startswith("relevance")
    assert agents.run("prompt", "--tool", "Edit", "--context", "bake bread") == ""
    printed = agents.run("contradict", LESSON.id[:8], "--why", "it is managed now", "--principal", "bob", says=True)
    assert printed.startswith(f"{LESSON.id}: active 0.95 → retired")
    agents.await_("prompt", *USE, until=lambda printed: printed == "")
    story = json.loads(agents.run("show", LESSON.id, "--json"))
    assert (story["status"], story["reason"]) == ("retired", "a person's word: contradiction")
    assert [(each["what"], each["by"]) for each in story["history"]] == [("add", "ada"), ("contradiction", "bob")]
    assert story["history"][1]["why"] == "it is managed now"
    agents.run("validate", LESSON.id, "--principal", "bob", says=True)
    agents.await_("show", LESSON.id, "--json", until=lambda printed: json.loads(printed)["status"] == "active")


@pytest.mark.timeout(300)
@pytest.mark.slow
def test_a_lessons_text_is_forgotten_by_a_command(agents: Agents) -> None:
    """LES-14: nobody is told it, no file of the store has it, and the command says what remains where."""
    text = "Never name the customer Zweifelsfall in a commit"
    lesson = agents.run("add", text, "--tool", "Git", "--source", "user_correction", says=True).strip()
    agents.await_("prompt", "--tool", "Git", until=lambda printed: text in printed)
    forgotten, said = agents.both("forget", lesson[:8], "--why", "a person asked")
    assert forgotten == f"{lesson}: its text is forgotten\n"
    assert f"key lesson-{lesson}" in said
    assert "retention" in said
    agents.await_("show", lesson, until=lambda printed: "its text was forgotten" in printed)
    assert agents.run("prompt", "--tool", "Git") == ""
    story = json.loads(agents.run("show", lesson, "--json"))
    assert [(each["what"], each["why"]) for each in story["history"]] == [("forget", "a person asked")]
    assert (story["said"], "content" in story) == (1, False)
    agents.await_("list", "--json", until=lambda _: not _files_with(agents.store, "Zweifelsfall"))


def _files_with(store: Path, word: str) -> list[Path]:
    """Files of a store that hold a word; checkpoints, which keep the state before for a while, left out."""
    files = (path for path in store.rglob("*") if path.is_file() and "checkpoints" not in path.parts)
    return [path for path in files if word in _text_of(path)]


def _text_of(path: Path) -> str:
    try:
        return str(pq.read_table(path).to_pylist() if path.suffix == ".parquet" else path.read_bytes())
    except FileNotFoundError:  # it was replaced meanwhile
        return ""


@pytest.mark.timeout(300)
def test_an_agents_hooks_tell_what_fits_and_learn_what_came_of_it(agents: Agents, tmp_path: Path) -> None:
    """LES-5, LES-6, LES-10: before a tool and at the stop; told twice, it counts once."""
    agents.run("add", "Pin the base image by its digest", "--tool", "Docker", "--source", "user_correction", says=True)
    agents.await_("prompt", "--tool", "Docker", until=lambda printed: "digest" in printed)
    listed = map(json.loads, agents.run("list", "--json").splitlines())
    (lesson,) = [row for row in listed if "digest" in row["content"]]
    used: dict[str, object] = {
        "session_id": "s-1",
        "tool_name": "Docker",
        "tool_input": {"command": "build the base image"},
    }
    shown = _shown(agents, used)
    assert lesson["id"] in json.loads(shown)["hookSpecificOutput"]["additionalContext"]
    transcript = tmp_path / "transcript.jsonl"
    turns = [
        {
            "type": "user",
            "message": {"role": "user", "content": "build the image"},
            "timestamp": "2020-01-01T00:00:00Z",
        },
        {
            "type": "assistant",
            "message": {"role": "assistant", "content": "Built it from python:3.11-slim."},
            "timestamp": "2034-01-01T00:00:00Z",
        },
        {
            "type": "user",
            "message": {"role": "user", "content": "You forgot to pin the base image by its digest again."},
            "timestamp": "2035-01-01T00:00:00Z",
        },
    ]
    transcript.write_text("".join(json.dumps(turn) + "\n" for turn in turns), encoding="utf-8")
    for _ in range(2):
        agents.hook(hook_event_name="Stop", session_id="s-1", transcript_path=str(transcript))
    shown = agents.await_("show", lesson["id"], "--json", until=lambda printed: '"failure": 1' in printed)
    story = json.loads(shown)
    assert (story["outcomes"]["failure"], story["injected"]) == (1, 1)
    last = story["history"][-1]
    assert (last["origin"], last["session"]) == ("detection", "agent-s-1")
    # It counts as much as it is sure, and says so to people.
    assert 0.5 < last["sure"] < 1.0
    assert story["observations"] == pytest.approx(last["sure"], abs=0.01)
    assert f"told by detection, {last['sure']:.2f} sure" in agents.run("show", lesson["id"])
    assert last["span"] == "You forgot to pin the base image by its digest again."


@pytest.mark.timeout(300)
def test_half_an_emoji_in_a_transcript_costs_nothing_but_itself(agents: Agents, tmp_path: Path) -> None:
    """LES-6, LES-10: what is said before and behind it reaches the store."""
    transcript = tmp_path / "transcript.jsonl"
    said = [
        "No. Never reboot the ledger during a settlement run.",
        "No, never use the \ud83d old bundler, always use the new bundler",
        "No. Never restart the voucher service during a settlement run.",
    ]
    turns = [{"type": "user", "message": {"role": "user", "content": each}} for each in said]
    transcript.write_text("".join(json.dumps(turn) + "\n" for turn in turns), encoding="utf-8")
    agents.hook(hook_event_name="Stop", session_id="half \ud83d", transcript_path=str(transcript))
    agents.await_("list", until=lambda printed: "reboot the ledger" in printed and "voucher service" in printed)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_whoever_says_a_lesson_is_told_where_agents_are_not(agents: Agents) -> None:
    """LES-3, LES-10: what was contradicted stays retired when it is said again, and its sayer learns of it."""
    said = ("add", "Squash the commits before a merge", "--tool", "Git")
    known, told = agents.both(*said, "--source", "user_correction")
    assert told == ""
    lesson = known.strip()
    agents.await_("prompt", "--tool", "Git", until=lambda printed: lesson in printed)
    agents.run("contradict", lesson, "--why", "single\ncommits  are\tread", "--principal", "bob", says=True)
    agents.await_("prompt", "--tool", "Git", until=lambda printed: printed == "")
    again, told = agents.both(*said, "--source", "user_correction")
    assert again == known
    assert "never: retired" in told
    assert f"weft lessons validate {lesson}" in told
    lesson, told = agents.both("add", "Sign the tags of a merge", "--tool", "Git", "--source", "user_correction")
    assert told == ""
    agents.await_("prompt", "--tool", "Git", until=lambda printed: lesson.strip() in printed)
    opposite = agents.both("add", "Never sign the tags of a merge", "--tool", "Git", "--source", "user_correction")[1]
    assert f"it contradicts {lesson.strip()}" in opposite
    assert "now and then" in agents.both("add", "Look at the diff before a merge", "--tool", "Git")[1]
    assert "; single commits are read\n" in agents.run("show", known.strip())
    foreign = agents.both("add", "Signiere die Tags vor dem Merge", "--tool", "Git", "--source", "user_correction")[1]
    assert "recognised in English alone" in foreign
    assert "expected at most 2,000 characters" in agents.refused("contradict", known.strip(), "--why", "x" * 2_001)


@pytest.mark.timeout(300)
@pytest.mark.slow
def test_what_an_agent_said_in_its_session_is_unlearned(agents: Agents) -> None:
    """LES-7, LRN-17: begun and completed first, it is everybody's at once, and can be taken out again."""
    whose = ("--principal", "cleo")
    assert "weft sessions start" in agents.refused("unlearn", "s-9", room="sessions")
    for phase in ("start", "complete"):
        agents.run(phase, "s-9", *whose, says=True, room="sessions")
    text = "Drain the spool before the nightly backup"
    agents.run("add", text, "--tool", "Cron", "--source", "user_correction", "--session", "s-9", *whose, says=True)
    agents.await_("prompt", "--tool", "Cron", until=lambda printed: text in printed)
    agents.run("unlearn", "s-9", says=True, room="sessions")
    agents.await_("prompt", "--tool", "Cron", until=lambda printed: printed == "")
    assert text not in agents.run("list")


def _shown(agents: Agents, used: dict[str, object]) -> str:
    """What the hook prints once its table has the lesson."""
    end = time.monotonic() + PATIENCE_S
    board = agents.store / "lessons" / "board.sqlite"
    while True:
        # Every answer notes an injection: it is asked for once the table is newer than the store.
        newest = max(path.stat().st_mtime for path in (agents.store / "updaters").glob("*/evidence.parquet"))
        if board.exists() and board.stat().st_mtime > newest:
            return agents.hook(hook_event_name="PreToolUse", **used)
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_person_merges_what_agrees_and_keeps_apart_what_does_not(agents: Agents) -> None:
    """LES-13: opposites are refused, and so is a lesson with itself; a split gives each what it had."""
    texts = ("Purge the spool after ten hours", "After ten hours, purge the spool", "Purge the spool after ten days")
    one, two, other = (agents.run("add", text, "--section", "spool", says=True).strip() for text in texts)
    agents.await_("list", "--section", "spool", "--json", until=lambda printed: printed.count("Purge") == 2)
    agents.await_("list", "--section", "spool", "--json", until=lambda printed: printed.count("purge") == 1)

    def believed() -> dict[str, tuple[float, str]]:
        rows = map(json.loads, agents.run("list", "--section", "spool", "--json").splitlines())
        return {row["id"]: (row["p_good"], row["representative"]) for row in rows}

    before = believed()
    assert "found opposites (in one place: hours and days)" in agents.refused("merge", one, other)
    assert "expected two lessons, found one" in agents.refused("merge", one, one)
    assert agents.run("merge", one, two, says=True).startswith(one)
    agents.await_("show", one, "--json", until=lambda printed: json.loads(printed)["representative"] == two)
    agents.run("apart", one, two, says=True)
    agents.await_("show", one, "--json", until=lambda printed: json.loads(printed)["representative"] == one)
    assert believed() == before


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_what_is_imported_is_exported_and_what_is_no_lesson_is_named(agents: Agents, tmp_path: Path) -> None:
    """LES-1, LES-10: by line, and nothing else stops."""
    lines = [Lesson(section="docs", content=f"Date every page of part {name}").to_json() for name in ("one", "two")]
    file = tmp_path / "lessons.jsonl"
    secret = Lesson(section="docs", content="Log in with password: hunter2!").to_json()
    file.write_text("\n".join([lines[0], '{"section": "docs"}', lines[1], secret]), encoding="utf-8")
    assert json.loads(agents.run("import", str(file), says=True)) == {
        "lessons": 2,
        "revised": 0,
        "known": 0,
        "retired": 0,
        "problems": 2,
        "sent": True,
    }
    empty, binary = tmp_path / "empty.md", tmp_path / "binary.md"
    empty.write_text("# Lessons\n\nSome day.\n", encoding="utf-8")
    binary.write_bytes(b"\xff\xfe")
    assert json.loads(agents.run("import", str(empty), says=True))["sent"] is False
    assert "expected text in UTF-8" in agents.refused("import", str(binary))
    exported = agents.await_("export", "--json", until=lambda printed: printed.count("Date every page") == 2)
    ids = {row["id"] for row in map(json.loads, exported.splitlines())}
    assert {Lesson.from_json(line).id for line in lines} <= ids
    page = tmp_path / "lessons.md"
    page.write_text(agents.run("export").replace("of part one", "of the first part"), encoding="utf-8")
    assert json.loads(agents.run("import", str(page), says=True))["revised"] == 1
    first = agents.await_("list", "--json", until=lambda printed: "the first part" in printed)
    again = json.loads(agents.run("import", str(page), says=True))
    assert again["known"] == again["lessons"] >= 2
    rows = {row["content"]: row for row in map(json.loads, first.splitlines())}
    assert {rows[f"Date every page of {part}"]["said"] for part in ("the first part", "part two")} == {1}
    assert rows["Date every page of part one"]["status"] == "retired"
    older = tmp_path / "old.json"
    counted = '{"text": "Tag every release", "helpful": 3, "harmful": 1}'
    archived = '{"text": "Sign every commit", "topic": "git", "status": "archived"}'
    older.write_text(f"[{archived}, {counted}]", encoding="utf-8")
    job = [sys.executable, "-m", "jobs.import_lessons", str(older), "--store", str(agents.store)]
    job += ["--bootstrap", agents.bootstrap]
    said = subprocess.run(job, cwd=ROOT, capture_output=True, text=True, check=True)
    assert json.loads(said.stdout)["retired"] == 1
    agents.await_("list", "--json", "--status", "retired", until=lambda printed: "Sign every commit" in printed)
    counted = agents.await_("list", "--json", until=lambda printed: '"success": 3' in printed)
    (tag,) = (row for row in map(json.loads, counted.splitlines()) if row["content"] == "Tag every release")
    assert (tag["outcomes"]["success"], tag["outcomes"]["failure"]) == (3, 1)
    assert agents.run("review").endswith("pairs to review\n")
    assert "first confidence" in agents.run("calibration")


@pytest.mark.timeout(300)
def test_the_first_lesson_makes_store_and_topic_and_says_what_is_to_run(tmp_path: Path) -> None:
    """LES-10: in a folder that is not there, by a broker without a topic; what was said before updaters counts."""
    store = tmp_path / "fresh"
    with EmbeddedBroker() as broker:
        place = ["--store", str(store), "--bootstrap", broker.bootstrap]
        command = [sys.executable, "-m", "weft", "lessons", "add", TEXT, "--tool", "Bash", *place]
        said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        update = ["update", "--local", *place]
        assert f"once updaters run: weft {' '.join(update)}\n" in said.stderr
        assert f"made a new store in {store}" in said.stderr
        subprocess.run(
            [sys.executable, "-m", "weft", *update, "--until-caught-up"], cwd=ROOT, capture_output=True, check=True
        )
        assert TEXT in Agents(store, broker.bootstrap).run("list")
        again = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        assert again.stdout == said.stdout
        assert again.stderr.startswith("weft: agents are told this now and then: needs_validation")


def test_without_a_broker_the_first_lesson_names_the_command_that_starts_one(tmp_path: Path) -> None:
    """LES-10: nothing is made, and nothing but the reason is printed."""
    store = tmp_path / "fresh"
    place = ["--store", str(store), "--bootstrap", "127.0.0.1:1"]
    command = [sys.executable, "-m", "weft", "lessons", "add", TEXT, *place]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (said.returncode, said.stdout, store.exists()) == (75, "", False)
    assert said.stderr.startswith("weft: ")
    assert "weft broker" in said.stderr
    assert said.stderr.count("\n") == 1
