"""`weft lessons hook`: what an agent is told before it uses a tool, within a tenth of a second (LES-10).

It reads one JSON object from stdin, as coding agents hand it to their hooks, or a plain one:

    {"hook_event_name": "PreToolUse", "session_id": …, "tool_name": "Bash", "tool_input": {"command": …}}
    {"tool": "Bash", "files": ["api/main.py"], "context": "start the api"}

and prints what fits: to a hook the JSON that it expects, to others the prompt form; nothing where nothing fits. It
never stops an agent: whatever is wrong is said on stderr, and the exit code is 0.

It imports neither settings nor evidence. Updaters keep a table of lessons that may be shown beside the store
(`board`); what is injected is written to the session's file there, and told to the topic at the session's end.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import sys
import time
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from weft.domain.lesson import Lesson, LessonPriority, LessonResult, LessonStatus
from weft.domain.lesson_match import BelievedLesson, ChosenLesson
from weft.lessons.duplicates import ConflictChecker
from weft.lessons.finding import LessonFinder, Uniform
from weft.lessons.prompt import estimated_tokens, prompt_form
from weft.lessons.relevance import ToolUse, file_pattern
from weft.wording.lexicon import sure_stem
from weft.wording.words import words_of

FOLDER = "lessons"
BOARD = "board.sqlite"
"""Where the table lies in a store."""

VERSION = 5
_MOST = 100  # lessons looked at, the likeliest first: several times as many as are shown
_STEMS = 2_000  # words of a context that are looked up
_ABANDONED_S = 5.0  # a table that is this much older than what it was made from is kept by nobody
_FILES = ("file_path", "path", "notebook_path", "file", "filename")
_LONGEST = 20_000  # characters of one value that are read: what a tool is for stands at the beginning
_ADDING_TEXT = frozenset({"PreToolUse", "PostToolUse", "UserPromptSubmit"})
"""Events whose hooks may add to what an agent reads; what others print is no answer to them."""


def answer(arguments: Sequence[str]) -> int:
    """Answer the object on stdin; 0 whatever happens."""
    try:
        _answer(_asked(sys.stdin.buffer.read()), _options(arguments))
    except ValueError as error:
        sys.stderr.write(f"weft lessons hook: {error}\n")
    except Exception as error:  # noqa: BLE001  an agent goes on without lessons
        sys.stderr.write(f"weft lessons hook: {type(error).__name__}: {error}\n")
    return 0


def _asked(given: bytes) -> Mapping[str, Any]:
    try:
        asked = json.loads(given or b"{}")
    except ValueError:
        asked = None
    if isinstance(asked, dict):
        return asked
    start = given[:40].decode("utf-8", "replace")
    raise ValueError(f"expected one JSON object on stdin, as an agent hands it to its hooks, found {start!r}")


def _options(arguments: Sequence[str]) -> SimpleNamespace:
    options: dict[str, Any] = {
        "store": os.environ.get("WEFT__STORAGE__ROOT") or ".weft",
        "bootstrap": None,
        "budget": None,
    }
    rest = iter(arguments)
    for name in rest:
        key, _, value = name.removeprefix("--").partition("=")
        if key == "json":
            continue
        if key not in options:
            raise ValueError(f"expected --store, --bootstrap or --budget, found {name}")
        options[key] = value or next(rest, None)
    if options["budget"] is not None and not str(options["budget"]).isdecimal():
        raise ValueError(f"expected --budget to be a number of tokens, found {options['budget']}")
    return SimpleNamespace(**options)


def _answer(asked: Mapping[str, Any], options: SimpleNamespace) -> None:
    root = Path(str(options.store))
    event = asked.get("hook_event_name")
    if event in {"Stop", "SubagentStop", "SessionEnd"}:
        from weft.app.lessons.session_end import tell_session  # noqa: PLC0415  it takes its time

        tell_session(root, asked, bootstrap=options.bootstrap)
        return
    if event is not None and event not in _ADDING_TEXT:
        return
    board = open_board(root)
    use = tool_use(asked)
    with_settings = board.settings
    budget = int(options.budget or with_settings["budget"])
    chosen = board.find(use, rng=SystemDraws())
    form = prompt_form([each.match.believed for each in chosen], budget=budget, count_tokens=estimated_tokens)
    if not form.text:
        return
    shown = [each for each in chosen if each.match.believed.lesson.id in set(form.shown)]
    if isinstance(asked.get("session_id"), str):
        try:
            note_injection(root, asked["session_id"], use, shown)
        except OSError as error:  # the agent is told all the same
            sys.stderr.write(f"weft lessons hook: what was shown is not noted: {error}\n")
    if event is None:
        sys.stdout.write(form.text + "\n")
        return
    facts = {"hookEventName": event, "additionalContext": form.text}
    sys.stdout.write(json.dumps({"hookSpecificOutput": facts}, ensure_ascii=False) + "\n")


def tool_use(asked: Mapping[str, Any]) -> ToolUse:
    """What an agent is about to do, as its hook says it.

    Examples:
        >>> tool_use({"tool_name": "Edit", "tool_input": {"file_path": "a.py", "new_string": "x = 1"}})
        ToolUse(tool='Edit', files=('a.py',), text='a.py x = 1')
    """
    stated = asked.get("tool_input")
    given: Mapping[str, Any] = stated if isinstance(stated, dict) else {}
    files = [given[name] for name in _FILES if isinstance(given.get(name), str)]
    more = asked.get("files")
    files += [each for each in (more if isinstance(more, list) else [more]) if isinstance(each, str)]
    texts = [value[:_LONGEST] for value in given.values() if isinstance(value, str)]
    texts += [str(asked[name])[:_LONGEST] for name in ("context", "prompt") if asked.get(name)]
    return ToolUse(str(asked.get("tool_name") or asked.get("tool") or ""), tuple(files), " ".join(texts))


def note_injection(root: Path, session: str, use: ToolUse, shown: Sequence[ChosenLesson]) -> str:
    """Write down what was put before an agent, for the session's end to tell; the id of the injection."""
    injection = os.urandom(16).hex()
    folder = root / FOLDER / "sessions"
    folder.mkdir(parents=True, exist_ok=True)
    facts = {
        "injection_id": injection,
        "at": round(time.time() * 1000),
        "tool": use.tool,
        "lessons": [
            {
                "lesson_id": each.match.believed.lesson.id,
                "propensity": each.propensity,
                "p_good": each.match.believed.p_good,
            }
            for each in shown
        ],
    }
    with session_file(root, session).open("a", encoding="utf-8") as file:
        file.write(json.dumps(facts) + "\n")
    return injection


def session_file(root: Path, session: str) -> Path:
    """Where a session's injections are written: its name, or digits of it where that is no file's name."""
    plain = all(letter.isalnum() or letter in "-_" for letter in session) and 0 < len(session) <= 100
    name = session if plain else hashlib.sha256(session.encode("utf-8", "replace")).hexdigest()[:32]
    return root / FOLDER / "sessions" / f"{name}.jsonl"


class SystemDraws:
    """Uniform draws from the system, which take no import."""

    def random(self) -> float:
        """One in [0, 1)."""
        return int.from_bytes(os.urandom(6), "big") / 2.0**48


class Board:
    """The table of lessons that may be shown, as its store had them when it was made."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        rows = dict(self._connection.execute("select name, value from facts").fetchall())
        if rows.get("version") != str(VERSION):
            raise ValueError(f"expected a table of version {VERSION}, found {rows.get('version')}")
        self.settings: dict[str, Any] = json.loads(rows["settings"])
        self.token: list[list[Any]] = json.loads(rows["token"])
        self.day = int(rows["day"])

    def find(self, use: ToolUse, *, rng: Uniform) -> list[ChosenLesson]:
        """The lessons for a tool use, best first."""
        weights = SimpleNamespace(**self.settings["relevance"])
        weights.priorities = {LessonPriority(name): factor for name, factor in weights.priorities.items()}
        rows = self._candidates(use)
        lessons = [_believed(json.loads(row)) for row, _ in rows]
        propensities = {each.lesson.id: chance for each, (_, chance) in zip(lessons, rows, strict=True)}
        opposed = ConflictChecker(SimpleNamespace(**self.settings["duplicates"]), self._separate())  # type: ignore[arg-type]
        finder = LessonFinder(lessons, propensities, weights, opposed)
        return finder.find(use, limit=self.settings["limit"], rng=rng)

    def _separate(self) -> frozenset[frozenset[str]]:
        """Pairs of lessons that somebody keeps apart."""
        return frozenset(map(frozenset, self._connection.execute("select one, other from separate")))

    def _candidates(self, use: ToolUse) -> list[tuple[str, float]]:
        """The likeliest lessons, by about the rank that they will have; only they are read."""
        weights = self.settings["relevance"]
        stem = weights["words"] / weights["enough_words"]
        stems = sorted(set(map(sure_stem, words_of(use.text))))[:_STEMS]
        tool = use.tool.casefold()
        met = [("tool", tool, weights["tool"]), *(("stem", each, stem) for each in stems)]
        patterns = self._connection.execute(
            "select distinct kind, key from keys where kind in ('file', 'wild')"
        ).fetchall()
        paths = [path.replace("\\", "/") for path in use.files]
        for kind, key in patterns:
            if kind == "wild" and fnmatchcase(tool, key):
                met.append((kind, key, weights["tool_wildcard"]))
            elif kind == "file" and any(map(file_pattern(key).search, paths)):
                met.append((kind, key, weights["file"]))
        asked = ", ".join("(?, ?, ?)" for _ in met)
        rows = self._connection.execute(
            f"with asked (kind, key, weight) as (values {asked}), met as (select lesson, max(factor) as factor,"  # noqa: S608
            " sum(case when kind = 'stem' then 0.0 else weight end) as conditions,"
            " sum(case when kind = 'stem' then weight else 0.0 end) as stems"
            " from asked join keys using (kind, key) group by lesson)"
            " select document, propensity from met join lessons on lesson = number"
            " order by (conditions + min(stems, ?)) * factor desc, number limit ?",
            [*(value for each in met for value in each), weights["words"] + weights["actions"], _MOST],
        )
        return [(str(document), float(propensity)) for document, propensity in rows]


def open_board(root: Path) -> Board:
    """The table as it is kept, or made anew where nobody keeps it."""
    if not root.is_dir():
        raise FileNotFoundError(f"expected a store in {root}, found no such folder: name it with --store")
    path = root / FOLDER / BOARD
    board = None
    try:
        board = Board(path)
        if not _is_left(board, root, path):
            return board
    except (OSError, sqlite3.Error, ValueError, KeyError):
        pass  # there is none, or one of another version
    from weft.app.lessons.board import write_board  # noqa: PLC0415  it imports what takes its time

    try:
        return Board(write_board(root))
    except (OSError, sqlite3.Error) as error:
        if board is None:
            raise
        sys.stderr.write(f"weft lessons hook: lessons are told as they were: {error}\n")
        return board


def _is_left(board: Board, root: Path, path: Path) -> bool:
    """Whether the store has moved on, and nobody has made the table anew for a while."""
    if board.day != int(time.time()) // 86_400:
        return True
    token = live_token(root)
    if token == board.token:
        return False
    newest = max((stamp[3] for stamp in token), default=0) / 1e9
    return time.time() - newest > _ABANDONED_S and path.stat().st_mtime < newest + _ABANDONED_S


def live_token(root: Path) -> list[list[Any]]:
    """What changes whenever live evidence may have, as the catalog tells it, however the store's folder is spelled."""
    watched = [root / "current.json", *sorted((root / "updaters").glob("*/evidence.parquet"))]
    token = []
    for path in watched:
        try:
            status = path.stat()
        except FileNotFoundError:
            continue
        token.append([path.relative_to(root).as_posix(), status.st_ino, status.st_size, status.st_mtime_ns])
    return token


def _believed(stated: dict[str, Any]) -> BelievedLesson:
    return BelievedLesson(
        lesson=Lesson.from_fields(stated["lesson"]),
        p_good=stated["p_good"],
        lower=stated["lower"],
        upper=stated["upper"],
        status=LessonStatus(stated["status"]),
        counts={LessonResult(name): count for name, count in stated["counts"].items()},
    )
