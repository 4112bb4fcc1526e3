"""LES-10: the hook of agents answers as everything else does, and never stops an agent."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.support.feedback_events import NOON, SETTINGS, lesson_added, lesson_changed, lesson_outcome
from tests.support.session_store import Partition
from weft.app.lessons.board import Board, live_token
from weft.app.lessons.keeping import BoardKeeper, write_board
from weft.app.lessons.session_end import read_transcript
from weft.app.lessons.view import live_lessons
from weft.cli.lessons import hook
from weft.domain.lesson import Conditions, Lesson, LessonPriority, LessonSource
from weft.lessons.finding import ToolUse, finder_of
from weft.lessons.prompt import MOST_LESSONS

THINGS = ("migration", "index", "lock", "schema", "cache", "queue", "token", "image", "branch", "release")
TOOLS = ("Bash", "Edit", "Write", "mcp__*")


class Always:
    """Draws whatever can be drawn."""

    def random(self) -> float:
        return 0.0


def a_lesson(rng: random.Random, number: int) -> Lesson:
    one, other = rng.sample(THINGS, 2)
    conditions = Conditions(
        tools=(rng.choice(TOOLS),) if rng.random() < 0.8 else (),
        files=("*.sql",) if rng.random() < 0.2 else (),
        words=(one, other) if rng.random() < 0.5 else (),
    )
    return Lesson(
        section=one,
        content=f"Check the {one} before touching the {other} of part {number}",
        source=rng.choice(list(LessonSource)),
        priority=rng.choice(list(LessonPriority)),
        conditions=conditions,
    )


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    rng, partition = random.Random(3), Partition(tmp_path)
    partition.feed([lesson_added(a_lesson(rng, number)) for number in range(250)], cuts=False)
    partition.publish()
    return partition


def root_of(partition: Partition) -> Path:
    return partition.state.folder.parents[1]


def asked(monkeypatch: pytest.MonkeyPatch, given: bytes, *arguments: str) -> int:
    with tempfile.TemporaryFile("w+") as stdin:
        stdin.buffer.write(given)
        stdin.seek(0)
        monkeypatch.setattr(sys, "stdin", stdin)
        return hook.answer(arguments)


def test_the_table_answers_as_the_lessons_in_memory_do(partition: Partition) -> None:
    """LES-8, LES-10: the same lessons in the same order, though it reads a part of them."""
    root = root_of(partition)
    write_board(root, SETTINGS)
    beliefs = live_lessons(partition.catalog, SETTINGS)
    weights = SETTINGS.priors.lessons.relevance
    finder, board, rng = (
        finder_of(beliefs, weights, SETTINGS.lessons.duplicates),
        Board(root / "lessons" / "board.sqlite"),
        random.Random(4),
    )
    for _ in range(40):
        files = ("db/1.sql",) if rng.random() < 0.3 else ()
        use = ToolUse(rng.choice(("Bash", "edit", "MCP__db__run")), files, f"check {' '.join(rng.sample(THINGS, 3))}")
        expected = finder.find(use, limit=MOST_LESSONS, rng=Always())
        shown = board.find(use, rng=Always())
        assert [each.match.rank for each in shown] == pytest.approx([each.match.rank for each in expected])
        assert {each.match.believed.lesson.id for each in shown[:5]} == {
            each.match.believed.lesson.id for each in expected[:5]
        }


def test_what_is_printed_is_noted_for_the_end_of_the_session(
    partition: Partition, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """LES-3, LES-7: with propensity and P(good), by a hook that says its session; others get the text."""
    store = ("--store", str(root_of(partition)))
    use = {"tool_name": "Bash", "tool_input": {"command": "drop the index"}}
    given = json.dumps({"hook_event_name": "PreToolUse", "session_id": "../s 1", **use}).encode()
    assert asked(monkeypatch, given, *store) == 0
    told = json.loads(capsys.readouterr().out)["hookSpecificOutput"]
    assert told["hookEventName"] == "PreToolUse"
    (file,) = (root_of(partition) / "lessons" / "sessions").iterdir()
    noted = json.loads(file.read_text())
    assert {each["lesson_id"] for each in noted["lessons"]} == {
        line.split("[")[1][:16] for line in told["additionalContext"].splitlines() if "[" in line
    }
    assert all(0.0 < each["propensity"] <= 1.0 and 0.0 < each["p_good"] < 1.0 for each in noted["lessons"])
    assert asked(monkeypatch, b'{"tool": "Bash", "context": "drop the index"}', *store, "--budget", "60") == 0
    assert capsys.readouterr().out.startswith("## ")


@pytest.mark.parametrize(
    ("given", "arguments"),
    [
        (b"", ()),
        (b"no json", ()),
        (b"[1]", ()),
        (b"{}", ("--colour", "blue")),
        (b"{}", ("--budget", "many")),
        (b'{"tool": "Bash"}', ("--store", "/nowhere/at/all")),
    ],
    ids=["nothing", "no JSON", "no object", "an unknown option", "no number", "no store"],
)
def test_an_agent_goes_on_whatever_is_wrong(
    given: bytes, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """LES-10: it is said on stderr, and the exit code is 0."""
    assert asked(monkeypatch, given, *arguments) == 0
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "expected" in printed.err.removeprefix("weft lessons hook: ")


@pytest.fixture
def told_store(tmp_path: Path) -> Path:
    """A store with one lesson, which any tool use that names it is told."""
    partition = Partition(tmp_path)
    lesson = Lesson(section="db", content="Drop the index before a bulk load", source=LessonSource.USER_CORRECTION)
    partition.feed([lesson_added(lesson)], cuts=False)
    partition.publish()
    return write_board(root_of(partition), SETTINGS).parents[1]


HOOK = [sys.executable, "-m", "weft", "lessons", "hook", "--store"]
ASKED = b'{"tool": "Bash", "context": "drop the index"}'


def answered_to(pieces: list[bytes], root: Path) -> tuple[bytes, bytes]:
    """What a hook prints, on both streams, while its input stays open."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen([*HOOK, str(root)], cwd=ROOT, **pipes) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        for piece in pieces:
            process.stdin.write(piece)
            process.stdin.flush()
        printed = process.stdout.read(), process.stderr.read()
        assert process.wait() == 0
    return printed


@pytest.mark.parametrize(
    "pieces",
    [
        [ASKED],
        [b'{"tool": "Bash",', b' "context": "drop the index"}\n'],
        [b'\xef\xbb\xbf {"context": "drop the index", "more": "' + b"x" * 200_000 + b'"}'],
        [b'{"tool_name": "Ba\\ud83dsh", "context": "drop the index \\ud83d", "session_id": "\\uDC4D"}'],
        [b'{"tool": "Ba\xffsh", "context": "drop the index \xed\xa0\xbd"}'],
        [b'{"context": "drop the index"}\n{"context": '],
    ],
    ids=["at once", "in two", "a long one", "half an emoji", "no UTF-8", "and the next"],
)
def test_one_whole_object_is_answered_though_the_pipe_stays_open(pieces: list[bytes], told_store: Path) -> None:
    """LES-10: an agent that waits for the answer does not close it."""
    told, noted = answered_to(pieces, told_store)
    assert told.startswith(b"## db\n")
    assert noted == b""


@pytest.mark.parametrize("given", [b"", b'{"tool": "Bash", ', b"[1]"], ids=["nothing", "half an object", "none"])
def test_an_agent_that_writes_no_object_is_left(given: bytes, told_store: Path) -> None:
    """LES-10: whoever leaves the pipe open is not waited for."""
    told, noted = answered_to([given], told_store)
    assert told == b""
    assert b"expected one JSON object on stdin" in noted


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-", ">/dev/full", "2>/dev/full"])
def test_closed_streams_stop_no_agent(closed: str, told_store: Path) -> None:
    """LES-10: the exit code is 0, and there is no traceback."""
    command = ["sh", "-c", f'exec "$@" {closed}', "sh", *HOOK, str(told_store)]
    given = b"no object" if "2>" in closed else ASKED
    done = subprocess.run(command, cwd=ROOT, input=given, capture_output=True, check=False)
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr
    assert (b"expected one JSON object on stdin" in done.stderr) is (closed == "<&-")


def test_what_is_printed_is_utf_8_whatever_the_locale_says(told_store: Path) -> None:
    """LES-9, LES-10: an agent reads JSON, and the signs before lessons are no ASCII."""
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [*HOOK, str(told_store)]
    done = subprocess.run(command, cwd=ROOT, input=ASKED, capture_output=True, check=True, env=ascii_only)
    assert "Drop the index" in done.stdout.decode()
    assert not done.stdout.isascii()
    assert done.stderr == b""


def test_what_an_agent_states_in_another_form_is_read_or_passed_over(
    partition: Partition, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """LES-10: one file for a list of them, and what is no text is none."""
    store = ("--store", str(root_of(partition)))
    for files, expected in (("db/1.sql", ("db/1.sql",)), (["a.py", 7], ("a.py",)), (7, ()), (None, ())):
        assert hook.tool_use({"tool": "Edit", "files": files}).files == expected
    assert asked(monkeypatch, b'{"tool_name": null, "tool_input": "x", "session_id": 5, "files": 7}', *store) == 0
    assert capsys.readouterr().err == ""


def test_an_agent_is_told_though_nothing_can_be_written(
    partition: Partition, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """LES-10: neither the session's file, nor a table that takes the place of one that is left."""
    root = root_of(partition)
    write_board(root, SETTINGS)
    (root / "lessons" / "sessions").write_text("in the way")

    def full(root: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("weft.app.lessons.keeping.write_board", full)
    monkeypatch.setattr("weft.app.lessons.board._is_left", lambda *_: True)
    given = b'{"session_id": "s", "tool": "Bash", "context": "drop the index"}'
    assert asked(monkeypatch, given, "--store", str(root)) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("## ")
    assert "as they were: [Errno 28]" in printed.err
    assert "what was shown is not noted" in printed.err


def test_the_table_follows_the_evidence(partition: Partition) -> None:
    """LES-3, LES-7: what was retired is gone from it, and it is made no more often than evidence comes."""
    root = root_of(partition)
    lesson = Lesson(section="api", content="Pin the base image", source=LessonSource.USER_CORRECTION)
    use = ToolUse(text="pin the base image")

    def shown() -> set[str]:
        chosen = Board(root / "lessons" / "board.sqlite").find(use, rng=Always())
        return {each.match.believed.lesson.id for each in chosen}

    with BoardKeeper(root, SETTINGS) as keeper:
        partition.feed([lesson_added(lesson, ts=NOON + 1)])
        partition.publish()
    assert lesson.id in shown()
    assert keeper.made <= 2
    with BoardKeeper(root, SETTINGS):
        partition.feed([lesson_outcome(lesson.id, "contradiction", origin="person", ts=NOON + 2)])
        partition.publish()
    assert lesson.id not in shown()


OPPOSED = {
    "never": ("Always squash the commits before merging", "Never squash the commits before merging"),
    "order": ("Run the migrations before starting the API", "Run the migrations after starting the API"),
    "number": ("Set the timeout of the client to 30 seconds", "Set the timeout of the client to 300 seconds"),
}


@pytest.mark.parametrize(("first", "second"), OPPOSED.values(), ids=OPPOSED)
def test_of_two_that_contradict_one_another_the_better_one_is_told(first: str, second: str, tmp_path: Path) -> None:
    """LES-8, LES-13: by the hook and by the lessons in memory, until somebody says that both hold."""
    partition = Partition(tmp_path)
    root, weights = root_of(partition), SETTINGS.priors.lessons.relevance
    better = Lesson(section="work", content=second, source=LessonSource.USER_CORRECTION)
    worse = Lesson(section="work", content=first, source=LessonSource.KNOWLEDGE_BLOCK)
    use = ToolUse(text=f"{first} {second}")

    def told() -> list[str]:
        partition.publish()
        write_board(root, SETTINGS)
        beliefs = live_lessons(partition.catalog, SETTINGS)
        finder = finder_of(beliefs, weights, SETTINGS.lessons.duplicates)
        by_hook = Board(root / "lessons" / "board.sqlite").find(use, rng=Always())
        shown = [each.match.believed.lesson.content for each in finder.find(use, limit=5, rng=Always())]
        assert [each.match.believed.lesson.content for each in by_hook] == shown
        return shown

    partition.feed([lesson_added(better), lesson_added(worse)], cuts=False)
    assert told() == [second]
    partition.feed([lesson_changed("apart", worse.id, better.id, ts=NOON + 1)], cuts=False)
    assert sorted(told()) == sorted([first, second])


def test_a_transcript_is_read_as_far_as_it_can_be(tmp_path: Path) -> None:
    """LES-5, LES-10: lines that are no message are passed over; that there is no file is said."""
    message = {"type": "user", "message": {"role": "user", "content": "Always flush the spool."}}
    lines = [b"\xff\xfe{", b"[]", b"null", b'{"message": 5}', b'{"type": "user"}', json.dumps(message).encode()]
    (tmp_path / "transcript.jsonl").write_bytes(b"\n".join(lines))
    notes: list[str] = []
    (turn,) = read_transcript(str(tmp_path / "transcript.jsonl"), notes.append)
    assert (turn.step.text, turn.step.speaker) == ("Always flush the spool.", "user")
    assert (read_transcript(None, notes.append), notes) == ([], [])
    assert read_transcript(str(tmp_path), notes.append) == read_transcript(7, notes.append) == []
    assert [note.startswith("expected a transcript, found no file") for note in notes] == [True, True]


def test_half_an_emoji_costs_nothing_but_itself(tmp_path: Path) -> None:
    """LES-5, LES-10: UTF-8 carries no half, so that no event would; whole ones stay as they are."""
    parts = [
        {"type": "text", "text": "Cut \ud83d here"},
        {"type": "tool_use", "name": "Ba\udc4dsh", "input": {"command": "echo \ud83d", "file_path": "\udc4d.py"}},
        {"type": "tool_result", "content": "\ud83d"},
        {"type": "text", "text": "\U0001f44d C:\\ud83d"},
    ]
    transcript = tmp_path / "transcript.jsonl"
    transcript.write_text(json.dumps({"type": "user", "message": {"role": "user", "content": parts}}))
    steps = [turn.step for turn in read_transcript(str(transcript), pytest.fail)]
    assert [steps[0].text, steps[3].text] == ["Cut \ufffd here", "\U0001f44d C:\\ud83d"]
    assert (steps[1].tool, steps[1].files, steps[2].output) == ("Ba\ufffdsh", ("\ufffd.py",), "\ufffd")
    assert steps[1].text == "echo \ufffd \ufffd.py"


def user_line(text: object, **facts: object) -> str:
    return json.dumps({"type": "user", "message": {"role": "user", "content": text}, **facts}, ensure_ascii=False)


def test_a_transcript_holds_what_people_wrote_and_nothing_that_programs_put_there(tmp_path: Path) -> None:
    """LES-5: summaries, subagents' tasks and reminders stand as a user's messages, and are no person's words."""
    transcript = tmp_path / "transcript.jsonl"
    lines = [
        user_line("No, never push."),
        user_line("Caveat: no, that is wrong", isMeta=True),
        user_line("The user said: no, never do that", isCompactSummary=True),
        user_line("Always check the logs", isSidechain=True),
        user_line("Thanks. <system-reminder>\nNever say so.\n</system-reminder>"),
        user_line([{"type": "text", "text": "one\u2028line\u0085of text"}], isMeta=False),
        "[" * 100_000,
        user_line("x" * 1_000_000),
    ]
    transcript.write_text("\n".join(lines) + '\n{"type": "user", "mess', encoding="utf-8")
    first, second, third, last = (turn.step.text for turn in read_transcript(str(transcript), pytest.fail))
    assert (first, second.strip(), third) == ("No, never push.", "Thanks.", "one\u2028line\u0085of text")
    assert len(last) == 20_000


@pytest.mark.parametrize("event", ["PermissionRequest", "Notification", "SessionStart", "PreCompact", "Another", 7])
def test_hooks_that_may_add_nothing_print_nothing(
    event: object, partition: Partition, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """LES-10: an agent takes what such a hook prints for a decision, and refuses it; nothing was injected either."""
    root = root_of(partition)
    use = {"tool_name": "Bash", "tool_input": {"command": "drop the index"}, "session_id": "s"}
    assert asked(monkeypatch, json.dumps({"hook_event_name": event, **use}).encode(), "--store", str(root)) == 0
    assert capsys.readouterr().out == ""
    assert not (root / "lessons" / "sessions").exists()


def test_a_table_is_kept_however_the_store_is_spelled(partition: Partition, monkeypatch: pytest.MonkeyPatch) -> None:
    """LES-10: an updater may name the store by its whole path, and a hook from the folder that it is called in."""
    root = root_of(partition)
    write_board(root, SETTINGS)
    monkeypatch.chdir(root.parent)
    assert live_token(Path(root.name)) == live_token(root) == Board(root / "lessons/board.sqlite").token


def test_what_is_asked_is_read_to_a_bound() -> None:
    """LES-10: a file that is written whole takes no longer than a command."""
    use = hook.tool_use({"tool_name": "Write", "tool_input": {"file_path": "a.py", "content": "x = 1\n" * 1_000_000}})
    assert use.files == ("a.py",)
    assert len(use.text) < 21_000


def test_what_a_stop_could_not_tell_waits_for_the_next(
    partition: Partition, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """LES-7, LES-10: without a broker the agent goes on, and what was injected stays noted."""
    root = root_of(partition)
    use = {"tool_name": "Bash", "tool_input": {"command": "drop the index"}, "session_id": "s"}
    assert asked(monkeypatch, json.dumps({"hook_event_name": "PreToolUse", **use}).encode(), "--store", str(root)) == 0
    noted = (root / "lessons" / "sessions" / "s.jsonl").read_text()
    stop = json.dumps({"hook_event_name": "Stop", "session_id": "s"}).encode()
    assert asked(monkeypatch, stop, "--store", str(root), "--bootstrap", "127.0.0.1:1") == 0
    assert "BrokerUnavailableError" in capsys.readouterr().err
    assert (root / "lessons" / "sessions" / "s.jsonl").read_text() == noted != ""


@pytest.mark.parametrize("name", ["a?b", "a#b", "a%41", "ünï cödé"])
def test_the_table_is_read_wherever_the_store_lies(name: str, tmp_path: Path) -> None:
    """OPS-15, LES-10: no sign in a path means anything to SQLite, and nothing is made beside the store."""
    partition = Partition(tmp_path / name)
    partition.feed([lesson_added(a_lesson(random.Random(3), 1))])
    partition.publish()
    assert Board(write_board(tmp_path / name)).token == live_token(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_condition_that_is_never_met_is_refused_where_it_is_said(tmp_path: Path) -> None:
    """LES-8, LES-10: before anything is made or asked."""
    command = [*HOOK[:4], "add", "Sign every commit", "--tool", "Bash(git *)", "--store", str(tmp_path / "store")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "state Bash, and git as words of the context" in done.stderr
    assert not (tmp_path / "store").exists()


CJK = {  # by what an agent is about to do
    "部署前运行测试": "部署前先运行测试",
    "我要提交代码，先格式化": "提交代码之前要格式化",
    "デプロイの前にﾃｽﾄを実行": "デプロイの前にテストを実行する",
    "배포 테스트 실행": "배포 전에 테스트를 실행하세요",
}


@pytest.mark.parametrize("context", CJK)
def test_lessons_without_blanks_between_words_are_told_by_their_words(context: str, tmp_path: Path) -> None:
    """LES-8, LES-10: by two letters in a row, as search reads them; others are not told."""
    partition = Partition(tmp_path)
    contents = [*CJK.values(), "Run the tests before you deploy"]
    lessons = [Lesson(section="cjk", content=each, source=LessonSource.USER_CORRECTION) for each in contents]
    partition.feed([lesson_added(each) for each in lessons], cuts=False)
    partition.publish()
    write_board(root_of(partition), SETTINGS)
    told, noted = answered_to([json.dumps({"context": context}).encode()], root_of(partition))
    assert [each for each in contents if each in told.decode()] == [CJK[context]]
    assert noted == b""
