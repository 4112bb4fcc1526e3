"""Search: ask, see why, say what was good, and watch it move (OPS-6)."""

from __future__ import annotations

import asyncio
import time
from functools import partial

import msgspec
from fastapi import Request
from nicegui import ui
from nicegui.element import Element
from nicegui.events import GenericEventArguments

from weft.app.views.status import Seen
from weft.domain.ids import ContentHash
from weft.domain.ranking import Answer, Query, RankedResult
from weft.retrieval.answer.changes import UNCHANGED, rank_changes
from weft.retrieval.answer.trace import gap_line, snippet, understanding_line
from weft.service.console.layout import ERRORS, PATIENCE_S, Visit, button, el, show_error, visit
from weft.service.console.pictures import contributions, legend, score_bar
from weft.service.routes.feedback import taken
from weft.service.routes.searching import answers_to
from weft.service.tokens import TokenScope
from weft.service.worker import Form

RESULTS = 10
EFFECT_S = 5.0
"""Within which what is said reaches searches where updaters run (FBK-7)."""

_LOOK_S = 0.2
_SNIPPET = 320  # characters
_answers = msgspec.msgpack.Decoder(Answer)

_EXPLAINS = (
    ("Ask", "A whole question, in your words. Results come from everything that is indexed."),
    ("See why", "Each result says what speaks for it, how sure that is, and what people said before."),
    ("Say what was good", "A verdict moves this answer and those to near questions, within seconds, for everybody."),
)


@ui.page("/", response_timeout=PATIENCE_S)
async def page(request: Request, q: str = "") -> None:
    """The question is in the address: it can be sent to somebody."""
    at = visit(request, q.strip()[:60] or "search")
    sitting = Sitting(at)
    if q.strip():
        await sitting.ask(q)
    else:
        sitting.welcome(await asyncio.to_thread(at.service.facts.read))


class Sitting:
    """One browser's page: the last answer, and what was said of it."""

    def __init__(self, at: Visit) -> None:
        self._at = at
        self._answer: Answer | None = None
        self._opened: set[str] = set()
        self._closed: dict[str, Element] = {}  # boxes that nothing is in yet, by content
        self._verdicts: dict[str, float] = {}  # by content, of the question that is shown
        self._judging = 0  # verdicts that are waited for: the last one shows what moved
        with el("div", None, "answer", id="answer").on("ask", self._asked, args=["detail"]):
            self._status: Element = el("div", None, "status", role="status", aria_live="polite")
            self._results: Element = el("div")

    def welcome(self, seen: Seen) -> None:
        """What this is, before anything was asked."""
        with self._results:
            el("h1", "Retrieval that learns")
            documents, contents = (f"{seen.counts[name]:,} {name}" for name in ("documents", "contents"))
            el("p", f"Ask {documents} with {contents}, or press / from anywhere.", "soft")
            with el("ol", None, "welcome"):
                for title, text in _EXPLAINS:
                    with el("li"):
                        el("h2", title)
                        el("p", text)

    async def ask(self, text: str) -> None:
        """Answer a question."""
        self._opened.clear()
        self._verdicts.clear()
        if silent := self._at.why_silent(TokenScope.SEARCH):  # the session has ended since the page was made
            self._tell(silent, wrong=True)
            return
        try:
            answer = await self._search(text)
        except ERRORS as error:
            show_error(self._results, error)
            return
        self._show(answer, None)

    async def _asked(self, event: GenericEventArguments) -> None:
        stated = event.args["detail"] if isinstance(event.args, dict) else event.args
        await self.ask(str(stated))

    async def _search(self, text: str, *, record: bool = True) -> Answer:
        query = Query(text=text, k=RESULTS, principal=self._at.principal)
        (answer,) = await answers_to(self._at.service, [query], Form.PACKED, record=record)
        return _answers.decode(answer.body)

    def _show(self, answer: Answer, before: Answer | None) -> None:
        self._answer = answer
        silent = self._at.why_silent()
        self._tell(silent)
        self._results.clear()
        self._closed.clear()
        with self._results:
            with el("div", None, "question"):
                el("h1", answer.query.text[:300])
                took = sum(answer.timings_ms.values())
                facts = f"{len(answer.results)} results in {took:.0f} ms · learned version {answer.learned}"
                el("p", facts, "soft")
                if answer.understanding is not None:
                    el("p", understanding_line(answer.understanding), "soft")
            if answer.gap is not None:
                el("p", _sentence(gap_line(answer.gap)), "gap", role="note")
            for left_out, why in (*answer.failed_channels.items(), *answer.failed_shards.items()):
                el("p", f"{left_out} could not be asked: {why}", "problem", role="note")
            if answer.results:
                legend()
            were = {} if before is None else {each.content_hash: each.rank for each in before.results}
            most = max((each.score for each in answer.results), default=1.0) or 1.0
            with el("ol", None, "results"):
                for result in answer.results:
                    with el("li"):
                        self._result(result, answer, most, silent, None if before is None else were)
            if answer.lessons:
                el("h2", "Lessons that fit")
                with el("ul"):
                    for chosen in answer.lessons:
                        el("li", chosen.match.believed.lesson.content)

    def _result(
        self, result: RankedResult, answer: Answer, most: float, silent: str, were: dict[ContentHash, int] | None
    ) -> None:
        was = None if were is None else were.get(result.content_hash)
        article = el("article", None, "result", tabindex="0", data_hash=result.content_hash)
        article.props["aria-label"] = f"Result {result.rank}"
        if were is not None and was != result.rank:
            article.classes("moved").style(f"--rows: {(was or len(were) + 1) - result.rank}")
        with article:
            with el("div", None, "head"):
                el("span", str(result.rank), "rank")
                with el("div", None, "names"):
                    named = dict.fromkeys(each for each in (result.title, *result.heading_path[-1:]) if each)
                    el("h2", " › ".join(named) or result.symbol or result.uris[0])
                    place = f"{result.uris[0]}:{result.start_line}"
                    el("a", place, "place", href=f"/contents/{result.content_hash}", title="What it has to do with")
                if were is not None and was != result.rank:
                    moved = "new" if was is None else f"↑ {was - result.rank}" if was > result.rank else None
                    el("span", moved or f"↓ {result.rank - (was or 0)}", "badge moved-badge")
                if result.doubtful:
                    el("span", "doubtful", "badge doubt", title="It matches no better than what answers nothing")
                sure = f"{result.confidence:.0%}"
                el("span", f"{sure} good" if result.probability is not None else f"match {sure}", "badge sure")
            el("p", snippet(result.text, answer.query.text, _SNIPPET), "snippet")
            score_bar(result, most)
            el("p", _sentence(result.why), "why")
            with el("div", None, "actions"):
                own = None if result.past is None or result.past.own is None else (-1.0, 1.0)[result.past.own]
                message = self._verdicts.get(result.content_hash, own)
                for text, name, signal in (("Good", "good", 1.0), ("Wrong", "bad", -1.0)):
                    judge = partial(self._judge, result, signal)
                    pressed = "true" if message == signal else "false"
                    label = f"{text}: result {result.rank}"
                    button(text, judge, name, why_not=silent, aria_pressed=pressed, aria_label=label)
                with el("details").on("toggle", partial(self._toggled, result), args=["newState"]) as details:
                    el("summary", "Why, and the whole text")
                    inside = el("div", None, "inside")
                if result.content_hash in self._opened:
                    details.props["open"] = True
                    with inside:
                        _opened(result)
                else:
                    self._closed[result.content_hash] = inside

    async def _toggled(self, result: RankedResult, _: GenericEventArguments) -> None:
        inside = self._closed.pop(result.content_hash, None)
        if inside is None or inside.is_deleted:
            return
        self._opened.add(result.content_hash)
        with inside:
            _opened(result)
        if self._answer is not None and not self._at.why_silent():
            opened = {"type": "selection", "content_hash": result.content_hash, "rank": result.rank}
            try:
                await taken(self._at.service, [{**opened, "answer": self._answer.token}])
            except ERRORS as error:
                self._tell(str(error), wrong=True)

    async def _judge(self, result: RankedResult, signal: float) -> None:
        """Tell what somebody thinks of a result, and show what that moves."""
        before = self._answer
        if before is None or (silent := self._at.why_silent()):
            self._tell(silent if before is not None else "")
            return
        stated = {"type": "explicit", "signal": signal, "content_hash": result.content_hash}
        try:
            await taken(self._at.service, [{**stated, "asked": bool(result.asked), "answer": before.token}])
            self._verdicts[result.content_hash] = signal
            word = "good" if signal > 0.0 else "wrong"
            self._tell(f"Said: {result.rank} is {word}. Waiting for what comes of it…")
            self._judging += 1
            mine = self._judging
            counts = await self._verdict_counts(before.query.text, result.content_hash, signal)
            if mine != self._judging or self._answer is not before:
                return  # somebody said or asked something else meanwhile, and waits for that
            now = await self._search(before.query.text)
        except ERRORS as error:
            self._tell(" ".join(str(error).split()), wrong=True)
            return
        self._show(now, before)
        change = rank_changes(before, now)
        if change != UNCHANGED:
            self._tell(_sentence(change))
        elif counts:
            self._tell("Said, and heard; it moves nothing here.")
        else:
            self._tell(
                f"Said, but not heard within {EFFECT_S:g} s: no updater runs (`weft update`), or it is behind. "
                "Health says which."
            )

    async def _verdict_counts(self, text: str, content: ContentHash, signal: float) -> bool:
        """Whether searches know of a verdict by now; asked until they do, a few seconds at most.

        What else moves the answer meanwhile, such as that a result was opened, is no sign of it.
        """
        until = time.monotonic() + EFFECT_S
        while time.monotonic() < until:
            await asyncio.sleep(_LOOK_S)
            now = await self._search(text, record=False)
            result = next((each for each in now.results if each.content_hash == content), None)
            if result is None or (result.past is not None and result.past.own is (signal > 0.0)):
                return True
        return False

    def _tell(self, text: str, *, wrong: bool = False) -> None:
        self._status.clear()
        if text:
            with self._status:
                el("p", text, "problem" if wrong else "said")


def _opened(result: RankedResult) -> None:
    """Why a result stands there, and all that it says."""
    contributions(result)
    with el("ul", None, "facts"):
        for fact in _facts(result):
            el("li", fact)
    el("pre", result.text, "text", tabindex="0", role="group", aria_label="The whole text")


def _facts(result: RankedResult) -> list[str]:
    channels = ", ".join(f"{channel.value.replace('_', ' ')} #{hit.rank}" for channel, hit in result.channels.items())
    facts = [f"Found by {channels}."] if channels else []
    past = result.past
    if past is not None:
        facts.append(
            f"People said of it, to this question: {past.right} right, {past.wrong} wrong; to near ones: "
            f"{past.near_right} right, {past.near_wrong} wrong."
        )
    else:
        facts.append("Nobody said anything of it to this or a near question.")
    if result.probability is not None:
        facts.append(f"Of results that match so well, wherever they stand, {result.probability:.0%} are good.")
    if result.above_next is not None:
        facts.append(f"It belongs above the next one with probability {result.above_next:.2f}.")
    facts += [_sentence(f"declared: {each.says}") for each in result.relations]
    if result.alike:
        facts.append(f"Left out as near-duplicates of it: {', '.join(result.alike)}.")
    if len(result.uris) > 1:
        facts.append(f"It also stands in {', '.join(result.uris[1:])}.")
    return facts


def _sentence(text: str) -> str:
    """A text that begins like a sentence, and ends like one."""
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")
