"""`weft lessons hook`: what an agent is told before it uses a tool, within a tenth of a second (LES-10).

It reads one JSON object from stdin, as coding agents hand it to their hooks, or a plain one:

    {"hook_event_name": "PreToolUse", "session_id": …, "tool_name": "Bash", "tool_input": {"command": …}}
    {"tool": "Bash", "files": ["api/main.py"], "context": "start the api"}

and prints what fits, in UTF-8: to a hook the JSON that it expects, to others the prompt form; nothing where nothing
fits. It never stops an agent: it answers one whole object though the pipe stays open, and waits a second for one at
most. Whatever is wrong is said on stderr, and the exit code is 0.

It imports neither settings nor evidence (`weft.app.lessons.board`).
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TextIO

from weft.app.lessons.board import SystemDraws, note_injection, open_board, without_halves
from weft.lessons.finding import ToolUse
from weft.lessons.prompt import estimated_tokens, prompt_form

_FILES = ("file_path", "path", "notebook_path", "file", "filename")
_DECODER = json.JSONDecoder()
_PATIENCE_S = 1.0  # until one whole object is there: an agent writes it at once
_PIECE = 65_536  # bytes that are read together: what a pipe holds
_LONGEST = 20_000  # characters of one value that are read: what a tool is for stands at the beginning
_ADDING_TEXT = frozenset({"PreToolUse", "PostToolUse", "UserPromptSubmit"})
"""Events whose hooks may add to what an agent reads; what others print is no answer to them."""


def answer(arguments: Sequence[str]) -> int:
    """Answer the object on stdin; 0 whatever happens."""
    _open_streams()
    try:
        _answer(_asked(sys.stdin.fileno()), _options(arguments))
    except ValueError as error:
        _note(str(error))
    except Exception as error:  # noqa: BLE001  an agent goes on without lessons
        _note(f"{type(error).__name__}: {error}")
    return 0


def _open_streams() -> None:
    """Let streams that were closed lead nowhere: a file that is opened later would else take their numbers."""
    for name, mode in {"stdin": "r", "stdout": "w", "stderr": "w"}.items():
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  as long as the process runs


def _asked(stdin: int) -> Mapping[str, Any]:
    """The object that an agent writes, as soon as it is whole; its pipe may stay open.

    Raises:
        ValueError: There is none when the input ends, or within a second.
    """
    given, end = b"", time.monotonic() + _PATIENCE_S
    while True:
        # Looked at where nothing more comes at once, so that a long object is taken apart once.
        ready, _, _ = select.select([stdin], [], [], 0.0)
        if not ready and (asked := _object(given)) is not None:
            return asked
        left = end - time.monotonic()
        piece = os.read(stdin, _PIECE) if left > 0.0 and select.select([stdin], [], [], left)[0] else b""
        if not piece:
            break
        given += piece
    if (asked := _object(given)) is not None:
        return asked
    start = given[:40].decode("utf-8", "replace")
    raise ValueError(f"expected one JSON object on stdin, as an agent hands it to its hooks, found {start!r}")


def _object(given: bytes) -> Mapping[str, Any] | None:
    """The object that some bytes begin with; None where they do not, or not yet."""
    try:
        asked, _ = _DECODER.raw_decode(without_halves(given.decode("utf-8-sig", "replace").lstrip()))
    except (ValueError, RecursionError):
        return None
    return asked if isinstance(asked, dict) else None


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
        from weft.app.lessons.session_end import tell_session  # noqa: PLC0415  1.2 s: settings, Kafka

        tell_session(root, asked, bootstrap=options.bootstrap, note=_note)
        return
    if event is not None and event not in _ADDING_TEXT:
        return
    board = open_board(root, _made, _note)
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
            _note(f"what was shown is not noted: {error}")
    facts = {"hookEventName": event, "additionalContext": form.text}
    _print(form.text if event is None else json.dumps({"hookSpecificOutput": facts}, ensure_ascii=False), sys.stdout)


def _print(text: str, stream: TextIO) -> None:
    """Print a line in UTF-8, whatever the locale says: JSON is, and so are lessons."""
    try:
        stream.buffer.write(text.encode("utf-8", "replace") + b"\n")
        stream.flush()
    except OSError:  # whoever read it is gone, or the disk is full: what could not be written is not tried again
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _made(root: Path) -> Path:
    from weft.app.lessons.keeping import write_board  # noqa: PLC0415  .8 s: settings, evidence

    return write_board(root)


def _note(text: str) -> None:
    _print(f"weft lessons hook: {text}", sys.stderr)


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
