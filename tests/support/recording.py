"""The picture of the README: `weft ask` in a terminal, over some pages of the documentation, recorded as SVG.

    python -m tests.support.recording

Everything in it is real: the pages are indexed, a broker and updaters run, and the command is typed to through a
terminal of its own. It fails where the right answer is not second at first, or not first when asked again.
"""

from __future__ import annotations

import os
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Sequence
from fcntl import ioctl
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

import weft
from lab.stores import BackgroundUpdaters
from weft.runtime.kafka.broker import EmbeddedBroker
from weft.settings import load_settings

ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs" / "pictures" / "ask.svg"
PAGES = ("calibration", "feedback", "kafka", "learning", "lessons", "nights", "operations")
QUESTION = "how do I roll back bad results"
RIGHT = "When something goes wrong"
"""The heading under which the answer stands."""

_PROMPT = "› "
_COLUMNS, _ROWS = 96, 60
_PATIENCE_S = 60.0
_FONTS = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)
"""Which the picture would load from elsewhere: a reader's own do."""
_KEYS = re.compile(r"\x1b\[\?\d+[hl]|\r")  # what readline and the terminal say to each other


class Terminal:
    """A command in a terminal of its own, typed to when it prompts."""

    def __init__(self, command: Sequence[str]) -> None:
        ours, theirs = pty.openpty()
        ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0))
        environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", "COLUMNS": str(_COLUMNS)}
        self._process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL, env=environment, cwd=ROOT
        )
        os.close(theirs)
        self._ours = ours
        self.shown = ""

    def wait(self) -> str:
        """What it shows until it prompts."""
        begun, until = len(self.shown), time.monotonic() + _PATIENCE_S
        data = b""
        while not _KEYS.sub("", data.decode("utf-8", "ignore")).endswith(_PROMPT):
            ready, _, _ = select.select([self._ours], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                raise TimeoutError(f"expected a prompt within {_PATIENCE_S:g} s, found {data!r}")
            data += os.read(self._ours, 65_536)
        self.shown += _KEYS.sub("", data.decode("utf-8"))
        return self.shown[begun:]

    def type(self, line: str) -> str:
        """Type a line, and say what it shows after it."""
        os.write(self._ours, line.encode() + b"\n")
        return self.wait()

    def close(self) -> None:
        """End its input, and the command with it."""
        os.write(self._ours, b"\x04")
        self._process.wait(_PATIENCE_S)
        os.close(self._ours)


def recorded(store: Path) -> str:
    """What a person sees who asks, says which result is right, and asks again."""
    weft.index([ROOT / "docs" / f"{page}.md" for page in PAGES], store)
    with EmbeddedBroker() as broker:
        chosen = [f"storage.root={store}", f"kafka.bootstrap={broker.bootstrap}"]
        with BackgroundUpdaters(load_settings([], chosen), local=True):
            asks = ["ask", "--store", str(store), "--bootstrap", broker.bootstrap, "-k", "3", "--principal", "ada"]
            terminal = Terminal([sys.executable, "-m", "weft", *asks])
            terminal.wait()
            if (rank := _rank(terminal.type(QUESTION))) != 2:
                raise SystemExit(
                    f"expected {RIGHT!r} second under {QUESTION!r}, found it at {rank}: ask something else"
                )
            terminal.type(f"+{rank}")
            if (rank := _rank(terminal.type("="))) != 1:
                raise SystemExit(f"expected {RIGHT!r} first after praise, found it at {rank}")
            terminal.close()
    return terminal.shown


def picture(shown: str) -> str:
    """A terminal's text as SVG; what only this run has, such as ids, stays as it was."""
    lines = Text.from_ansi(shown.removesuffix(_PROMPT)).split("\n")
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=_COLUMNS, file=nowhere, force_terminal=True, color_system="truecolor")
        console.print("$ weft ask --store .weft --bootstrap 127.0.0.1:9092 -k 3", highlight=False)
        for line in lines:
            console.print(line, highlight=False)
        svg = console.export_svg(title="weft ask", theme=MONOKAI, unique_id="ask")
    return _FONTS.sub("", svg)


def _rank(shown: str) -> int | None:
    """At which the right heading stands."""
    lines = Text.from_ansi(shown).plain.splitlines()
    ranked = [match for line in lines if (match := re.match(r"\s+(\d+)\s+[01]\.\d+ ", line))]
    return next((int(match[1]) for match in ranked if RIGHT in match.string), None)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        text = recorded(Path(folder) / "store")
    PICTURE.write_text(picture(text), "utf-8")
    sys.stdout.write(f"{PICTURE.relative_to(ROOT)}\n")
