"""The table of lessons that hooks read, kept up with the store by the updaters' job (LES-10)."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sqlite3
import threading
import time
from pathlib import Path

from weft.app.lessons.board import BOARD, FOLDER, VERSION, live_token
from weft.app.lessons.view import live_lessons
from weft.catalog.catalog import Catalog
from weft.domain.errors import WeftError
from weft.domain.lesson_match import BelievedLesson
from weft.learning.evidence import day_of
from weft.learning.lessons.beliefs import LessonBeliefs
from weft.lessons.finding import action_words, context_words
from weft.lessons.prompt import MOST_LESSONS
from weft.runtime.clock import system_clock
from weft.settings import Settings, load_settings

log = logging.getLogger(__name__)

_SCHEMA = """
create table facts (name text primary key, value text not null);
create table lessons (number integer primary key, document text not null, propensity real not null);
create table keys (kind text not null, key text not null, factor real not null, lesson integer not null);
create table separate (one text not null, other text not null);
create index keys_by_factor on keys (kind, key, factor);
"""
_WILD = frozenset("*?[")
_INTERVAL_S = 0.2  # between looks at the store
_SHARE = 4.0  # times as long as a table takes to make nobody makes another


def write_board(root: Path, settings: Settings | None = None) -> Path:
    """Make the table of a store's lessons as they are believed now, and put it in the place of the one before."""
    chosen = settings or load_settings([], [f"storage.root={json.dumps(str(root))}"])
    token = live_token(root)  # before the evidence: what comes in between makes the table old
    beliefs = live_lessons(Catalog(root), chosen)
    folder = root / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f"{BOARD}.{os.getpid()}.{threading.get_ident()}"
    draft.unlink(missing_ok=True)
    with contextlib.closing(sqlite3.connect(draft)) as connection:
        connection.executescript(_SCHEMA)
        _fill(connection, beliefs, chosen)
        facts = {"version": str(VERSION), "token": json.dumps(token), "settings": json.dumps(_numbers(chosen))}
        facts["day"] = str(day_of(system_clock()))
        connection.executemany("insert into facts values (?, ?)", facts.items())
        connection.commit()
    path = folder / BOARD
    draft.replace(path)
    return path


def _fill(connection: sqlite3.Connection, beliefs: LessonBeliefs, settings: Settings) -> None:
    priorities = settings.priors.lessons.relevance.priorities
    for number, believed in enumerate(beliefs.injectable()):
        propensity = beliefs.propensity(believed.lesson.id)
        connection.execute("insert into lessons values (?, ?, ?)", (number, _document(believed), propensity))
        factor = believed.p_good * priorities[believed.lesson.priority]
        keys = [(kind, key, factor, number) for kind, key in _keys(believed)]
        connection.executemany("insert into keys values (?, ?, ?, ?)", keys)
    connection.executemany("insert into separate values (?, ?)", map(sorted, beliefs.separate))


def _keys(believed: BelievedLesson) -> set[tuple[str, str]]:
    conditions = believed.lesson.conditions
    tools = {("wild" if _WILD & set(tool) else "tool", tool.casefold()) for tool in conditions.tools}
    stems = {*action_words(believed), *context_words(believed)}
    return tools | {("file", pattern) for pattern in conditions.files} | {("stem", stem) for stem in stems}


def _document(believed: BelievedLesson) -> str:
    facts = {"lesson": believed.lesson.as_fields(), "p_good": believed.p_good}
    facts |= {"lower": believed.lower, "upper": believed.upper, "status": believed.status.value}
    facts["counts"] = {result.value: count for result, count in believed.counts.items()}
    return json.dumps(facts, ensure_ascii=False)


def _numbers(settings: Settings) -> dict[str, object]:
    return {
        "relevance": settings.priors.lessons.relevance.model_dump(mode="json"),
        "duplicates": settings.lessons.duplicates.model_dump(mode="json"),
        "budget": settings.lessons.prompt.budget,
        "limit": MOST_LESSONS,
    }


class BoardKeeper:
    """Makes the table anew whenever the store's evidence has changed, in a thread of its own."""

    def __init__(self, root: Path, settings: Settings) -> None:
        self.made = 0
        self._root, self._settings = root, settings
        self._stopped = threading.Event()
        self._token: object = None
        self._thread = threading.Thread(target=self._run, name="keep-lessons", daemon=True)

    def __enter__(self) -> BoardKeeper:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()
        self._look()  # what came last

    def _run(self) -> None:
        while not self._stopped.is_set():
            began = time.monotonic()
            self._look()
            self._stopped.wait(max(_INTERVAL_S, _SHARE * (time.monotonic() - began)))

    def _look(self) -> None:
        token = [*live_token(self._root), day_of(system_clock())]
        if token == self._token or not (self._root / "updaters").is_dir():  # none has begun yet
            return
        try:
            write_board(self._root, self._settings)
        except (WeftError, OSError, sqlite3.Error) as error:
            log.warning("hooks read the lessons as they were: %s", error)
            return
        self._token = token
        self.made += 1
