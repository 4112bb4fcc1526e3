"""The table of lessons that hooks of agents read, and what they write down beside it (LES-10).

It imports neither settings nor evidence: a hook answers within a tenth of a second. Updaters keep the table
(`keeping`); what is injected is written to the session's file, and told to the topic at the session's end.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sqlite3
import time
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from weft.domain.lesson import Lesson, LessonPriority, LessonResult, LessonStatus
from weft.domain.lesson_match import BelievedLesson, ChosenLesson
from weft.lessons.duplicates import ConflictChecker
from weft.lessons.finding import LessonFinder, ToolUse, Uniform, file_pattern
from weft.wording.lexicon import sure_stem
from weft.wording.words import words_of

FOLDER = "lessons"
BOARD = "board.sqlite"
"""Where the table lies in a store."""

VERSION = 6
_MOST = 100  # lessons looked at, the likeliest first: several times as many as are shown
_STEMS = 2_000  # words of a context that are looked up
_ABANDONED_S = 5.0  # a table that is this much older than what it was made from is kept by nobody


_ESCAPE = re.compile(r"\\(?:u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|u[dD][89a-fA-F]\w\w|.)", re.DOTALL)
_HALF = 6  # characters of half a pair, as JSON escapes it; a pair has twelve, and other escapes are cut to two


def without_halves(text: str) -> str:
    r"""JSON in which half of an emoji, which no UTF-8 carries, is the replacement character.

    Examples:
        >>> json.loads(without_halves(r'["\ud83d cut", "\ud83d\udc4d whole", "C:\\ud83d"]'))
        ['� cut', '👍 whole', 'C:\\ud83d']
    """
    if "\\ud" not in text and "\\uD" not in text:
        return text
    return _ESCAPE.sub(lambda escape: r"\ufffd" if len(escape.group()) == _HALF else escape.group(), text)


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
        self._connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
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


def open_board(root: Path, make: Callable[[Path], Path], note: Callable[[str], None]) -> Board:
    """The table as it is kept, or made anew where nobody keeps it; a note is taken where that fails."""
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
    try:
        return Board(make(root))
    except (OSError, sqlite3.Error) as error:
        if board is None:
            raise
        note(f"lessons are told as they were: {error}")
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
