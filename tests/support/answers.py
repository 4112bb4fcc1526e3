"""An answer on stdout, as `weft search` prints it."""

from __future__ import annotations

from weft.cli.console.output import Result, TextOutput
from weft.cli.searches.search import shown
from weft.domain.ranking import Answer


def print_answer(answer: Answer, *, explain: bool = False, why: tuple[int, int] | None = None) -> None:
    TextOutput().show(Result([], shown(answer, explain=explain, why=why)))
