"""Ask one question after the other, and say what the results are worth: the shortest way around the loop.

    weft ask --store DIR [--bootstrap HOST:PORT] [-k 5]

A line is a question, or says something about the answer to the last one:

    +2   result 2 is good          !2   open result 2: its whole text
    -2   result 2 is not           ?2   what the score of result 2 is made of
    =    ask the same again, and say what has moved
    + docs/cache.md#where   that is the right answer, shown or not; - the same says that it is wrong

With `--bootstrap` the feedback topic is told what was shown and what became of it; where updaters run (`weft update`),
`=` waits for what they make of it, five seconds at most. An empty line says this again; Ctrl-D ends. Lines may be piped
in. Answers are kept in the query log, as those of `weft search` are. Exit codes: 0 ended, 1, 75 or 78 with a reason
(nothing published, damaged store, no broker, or one that lost what was said), 2 usage.
"""

from __future__ import annotations

import io
import re
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Protocol

import typer
from rich.padding import Padding
from rich.text import Text

from weft.cli.console.options import ServedOptions, command, run_job
from weft.cli.console.output import dim, markup, show
from weft.cli.console.terminal import visible, warn
from weft.cli.searches.requests import new_id
from weft.cli.searches.search import shown
from weft.domain.errors import WeftError
from weft.domain.ids import ContentHash
from weft.domain.ranking import ANY, Answer, Query, RankedResult
from weft.retrieval.answer.changes import UNCHANGED, rank_changes
from weft.retrieval.answer.trace import explained
from weft.runtime.process import speaker_of

if TYPE_CHECKING:
    from weft.client.http import Client

HELP = (
    "a question, or about the last answer: +2 right · -2 wrong, the last one counts · + PATH#heading right, though not "
    "shown · !2 open · ?2 why this score · = ask again and compare · Ctrl-D ends"
)
REPEAT = "="
_ABOUT = re.compile(r"([+\-!?])\s*(\d{1,4})")
_POINTING = re.compile(r"([+\-])\s*(\S*[^\s\d]\S*)")  # no space in it: a question has some
_PROMPT = "› "
_EFFECT_S = 5.0  # within which what is said reaches searches where updaters run (FBK-7)
_LOOK_S = 0.2
_NOT_SHOWN = ContentHash("")  # stands for a place that was named: any change may come of it


@command
def ask(
    options: ServedOptions,
    k: Annotated[int, typer.Option("-k", min=1, max=100, help="Results.")] = 5,
    model: Annotated[str, typer.Option("--model", help="Rank by what was learned for it; * for all.")] = ANY,
    agent: Annotated[str, typer.Option("--agent", help="Rank by what was learned for it; * for all.")] = ANY,
    principal: Annotated[
        str | None, typer.Option("--principal", help="Whose verdicts they are; default the name you are logged in by.")
    ] = None,
    bootstrap: Annotated[str | None, typer.Option("--bootstrap", help="Broker that is told what you say.")] = None,
) -> None:
    """Ask one question after the other, and say what the results are worth."""
    who = Query(text="", query_id=new_id(), k=k, model=model, agent=agent, principal=speaker_of(principal))
    with ExitStack() as open_:
        client = options.service({"--bootstrap": bootstrap})
        asked: Asked
        if client is not None:
            asked = AskedService(open_.enter_context(client))
        else:
            from weft.cli.searches.here import opened_searcher  # noqa: PLC0415  1 s, which who asks a service spares

            asked = opened_searcher(options, bootstrap, open_)
        show(dim(HELP))
        AskLoop(asked, who).run(_typed() if sys.stdin.isatty() else _piped())
        asked.finish()


class Asked(Protocol):
    """Who answers questions, and is told what they are worth; made anew for every sitting."""

    @property
    def takes_feedback(self) -> bool:
        """Whether anybody is told."""

    def search(self, query: Query, *, record: bool) -> Answer:
        """The answer; recorded where it is shown."""

    def follow(self) -> None:
        """See what was learned meanwhile."""

    def select(self, answer: Answer, result: RankedResult) -> None:
        """Say that a result was opened."""

    def judge(self, answer: Answer, result: RankedResult, verdict: float) -> None:
        """Say what a result is worth."""

    def correct(self, answer: Answer, name: str, *, right: bool) -> str:
        """Say that a place that is named is right for a question, or wrong; its URI."""

    def finish(self) -> None:
        """Wait until all of it was heard; an error where some was not."""


class AskedService:
    """A running service: it keeps the log, tells what was shown, and follows what is learned."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.takes_feedback = bool(client.ready()["feedback"])

    def search(self, query: Query, *, record: bool) -> Answer:
        """The answer; recorded where it is shown."""
        return self._client.answers([query], record=record).answers[0]

    def follow(self) -> None:
        """It does by itself."""

    def select(self, answer: Answer, result: RankedResult) -> None:
        """Say that a result was opened."""
        self._client.select(answer, result.content_hash)

    def judge(self, answer: Answer, result: RankedResult, verdict: float) -> None:
        """Say what a result is worth."""
        self._client.tell(answer, verdict, content_hash=result.content_hash, asked=bool(result.asked))

    def correct(self, answer: Answer, name: str, *, right: bool) -> str:
        """Say that a place that is named is right for a question, or wrong; its URI."""
        uri = self._client.place(name)
        self._client.correct(answer, uri, right=right)
        return uri

    def finish(self) -> None:
        """All of it was heard."""


@dataclass
class AskLoop:
    """One person's questions and verdicts, one after the other."""

    asked: Asked
    who: Query  # A query that says who asks, for how many results
    last: Answer | None = None  # the answer that verdicts are about
    judged: set[ContentHash] = field(
        default_factory=set
    )  # contents of which something was said, as far as that moved nothing

    def run(self, lines: Iterable[str]) -> None:
        """Do what every line says; what cannot be done is told, and the next one is heard."""
        for line in lines:
            try:
                self.handle_line(line.strip())
            except WeftError as error:
                warn(" ".join(str(error).split()))

    def handle_line(self, line: str) -> None:
        """Do what one line says."""
        about, pointing = _ABOUT.fullmatch(line), _POINTING.fullmatch(line)
        if about is not None:
            self._about(about[1], int(about[2]))
        elif pointing is not None:
            self._point(pointing[2], right=pointing[1] == "+")
        elif line == REPEAT:
            self._repeat()
        elif line:
            self.judged.clear()
            self._show(self._asked(line))
        else:
            show(dim(HELP))

    def _asked(self, text: str, *, record: bool = True) -> Answer:
        return self.asked.search(replace(self.who, text=text, query_id=new_id()), record=record)

    def _show(self, answer: Answer) -> None:
        self.last = answer
        for each in shown(answer, explain=False):
            show(each)
        for result in answer.results:
            if result.asked:
                show(dim(f"is {result.rank} any good? +{result.rank} or -{result.rank}"))

    def _repeat(self) -> None:
        """Ask again; where something was said, once it is heard, or after the time that this takes at most."""
        if (before := self.last) is None:
            show(dim("nothing was asked yet"))
            return
        until, text = time.monotonic() + _EFFECT_S, before.query.text
        while (waiting := self._unheard(before, self._asked(text, record=False))) and time.monotonic() < until:
            time.sleep(_LOOK_S)
            self.asked.follow()
        self.judged = waiting  # others speak meanwhile: what they moved is not what was said here
        now = self._asked(text)
        self._show(now)
        change = rank_changes(before, now)
        unheard = (
            "; what you said is not heard yet, or moves nothing here: weft feedback status says whether updaters run"
        )
        show(dim(change + (unheard if waiting and change == UNCHANGED else "")))

    def _unheard(self, before: Answer, now: Answer) -> set[ContentHash]:
        """Of what was judged, what stands as it stood."""
        then, since = ({each.content_hash: each.score for each in answer.results} for answer in (before, now))
        if rank_changes(before, now) != UNCHANGED:
            since |= {_NOT_SHOWN: 0.0}
        return {each for each in self.judged if then.get(each) == since.get(each)}

    def _about(self, what: str, rank: int) -> None:
        results = () if self.last is None else self.last.results
        result = next((each for each in results if each.rank == rank), None)
        if self.last is None or result is None:
            many = f"one of the {len(results)} results of the last answer"
            wanted = many if results else "a question first: nothing is shown"
            show(markup(f"[yellow]expected {wanted}, found {what}{rank}[/]"))
        elif what == "?":
            show(Padding(explained(result), (0, 0, 1, 5)))
        elif what == "!":
            whole = "\n".join(map(visible, result.text.splitlines()))
            show(Padding(Text(whole), (0, 0, 1, 5)))
            self._tell(self.last, result, None)
        else:
            self._tell(self.last, result, 1.0 if what == "+" else -1.0)

    def _point(self, name: str, *, right: bool) -> None:
        """Say that a place is the right answer to the last question, or a wrong one."""
        if self.last is None or not self.asked.takes_feedback:
            wanted = "a question first" if self.last is None else "a broker: start with --bootstrap HOST:PORT"
            show(markup(f"[yellow]expected {wanted}[/]"))
            return
        uri = self.asked.correct(self.last, name, right=right)
        self.judged.add(_NOT_SHOWN)
        show(dim(f"told: {uri} is {'right' if right else 'wrong'}"))

    def _tell(self, answer: Answer, result: RankedResult, verdict: float | None) -> None:
        """Say that a result was opened, or what is thought of it."""
        if not self.asked.takes_feedback:
            if verdict is not None:
                show(markup("[yellow]nobody is told: start with --bootstrap HOST:PORT[/]"))
            return
        if verdict is None:
            self.asked.select(answer, result)
        else:
            self.asked.judge(answer, result, verdict)
        if verdict is not None:
            self.judged.add(result.content_hash)
        word = {1.0: "right", -1.0: "wrong", None: "opened"}[verdict]
        show(dim(f"told: {result.rank} {word}"))


def _piped() -> Iterator[str]:
    """Lines of a pipe or a file, which are UTF-8 whatever the terminal's encoding is."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8", errors="replace")
    yield from sys.stdin


def _typed() -> Iterator[str]:
    """Lines that a person types, until there are no more."""
    import readline  # noqa: F401, PLC0415  lines can be edited and had back; not every Python has it, nor does a pipe need it

    while True:
        try:
            yield input(_PROMPT)
        except EOFError:
            sys.stdout.write("\n")
            return


main = partial(run_job, ask)
"""Run the job on arguments."""
