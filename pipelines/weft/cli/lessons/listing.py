"""`weft lessons list|review|show|prompt`: what agents are told, how sure that is, and what came of it (LES-10).

Who asks a running service imports no settings, and nothing that is believed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Annotated, Any

import typer

from weft.cli.console.options import Bootstrap, Limit, Principal, ServedOptions, command
from weft.cli.console.output import Result, Shown, rows
from weft.cli.console.terminal import moment, visible
from weft.client import calls
from weft.client.calls import MOST_LISTED, MOST_REVIEWED
from weft.domain.lesson import LessonResult, LessonStatus, one_line
from weft.runtime.process import speaker_of

LessonArgument = Annotated[str, typer.Argument(help="Id of a lesson; its first digits are enough.")]
Session = Annotated[
    str | None, typer.Option("--session", help="The conversation that it was said in; default one of the lesson's own.")
]
Status = Annotated[LessonStatus | None, typer.Option("--status", help="Only those of this status.")]

_COLUMNS = ("id", "status", "P(good)", "±", "said", "shown", "+", "−", "section", "content")


def _here() -> ModuleType:
    """What reads the store."""
    from weft.cli.lessons import reading  # noqa: PLC0415  1 s, which who asks a service does without

    return reading


@command
def list_lessons(
    options: ServedOptions,
    status: Status = None,
    section: Annotated[str | None, typer.Option("--section", help="Only those of this section.")] = None,
    limit: Limit = 100,
) -> Result:
    """Every lesson that has a text, the surest first."""
    if (client := options.service({"--limit": limit > MOST_LISTED})) is not None:
        with client:
            stated = {"status": status and status.value, "section": section, "limit": limit}
            documents, total = client.send(calls.lessons(stated))
    else:
        documents, total = _here().listed(_here().beliefs_of(options.settings()), status, section, limit)
    return rows(
        documents,
        document=lambda each: each,
        columns=_COLUMNS,
        texts=_texts,
        after=[f"{total:,} lessons"],
    )


@command
def review(options: ServedOptions, limit: Limit = 20) -> Result:
    """Lessons that a person could decide on, the least sure first, of equals the newest; then pairs about the same."""
    if (client := options.service({"--limit": limit > MOST_REVIEWED})) is not None:
        with client:
            open_ = client.send(calls.review(limit))
    else:
        settings = options.settings()
        open_ = _here().reviewed(_here().beliefs_of(settings), settings, limit)
    documents = [{**each, "can": _can(each)} for each in open_["lessons"]]
    pairs = open_["pairs"]

    def shown() -> Iterator[Shown]:
        for each in documents:
            yield visible(f"{each['id']}  {each['content']}")
            yield visible(f"    {each['reason']}; {_outcomes(each)}; from {each['source']}")
            yield f"    {'  |  '.join(each['can'])}"
        for pair in pairs:
            yield visible(f"{pair['id']}  {pair['content']}")
            yield visible(f"    {pair['says']} {pair['other']}  {pair['other_content']}: {pair['why']}")
            yield f"    {'  |  '.join(pair['can'])}"
        yield f"{open_['open']:,} lessons and {open_['open_pairs']:,} pairs to review"

    return Result([*documents, *pairs], shown())


@command
def show(lesson: LessonArgument, options: ServedOptions) -> Result:
    """A lesson, what is believed of it and why, and its whole history: when, by whom, from which conversation."""
    if (client := options.service()) is not None:
        with client:
            facts = client.lesson(lesson)
    else:
        facts = _here().lesson_page(_here().beliefs_of(options.settings()), lesson)
    return Result([facts], _page(facts))


def _page(facts: Mapping[str, Any]) -> Iterator[Shown]:
    has_text = "content" in facts
    shown = f"{facts['section']}: {facts['content']}" if has_text else "(its text was forgotten, or nobody said it)"
    yield visible(f"{facts['id']}  {shown}")
    if has_text:
        yield visible(f"  {facts['kind']}, priority {facts['priority']}, {_conditions(facts.get('conditions', {}))}")
    low, high = facts["interval"]
    sure = f"P(good) {facts['p_good']:.2f} [{low:.2f}, {high:.2f}], first {facts['first_confidence']:.2f}"
    yield visible(f"  {facts['status']}: {facts['reason']}; {sure}")
    yield visible(f"  said {_times(facts['said'])}, injected {_times(facts['injected'])}, {_outcomes(facts)}")
    yield from (visible(_story(each, facts["id"])) for each in facts["history"])


@command
def prompt(
    options: ServedOptions,
    *,
    tool: Annotated[str, typer.Option("--tool", help="Tool that is about to be used.")] = "",
    file: Annotated[list[str] | None, typer.Option("--file", help="File that it touches; repeatable.")] = None,
    context: Annotated[str, typer.Option("--context", help="What is done, and why.")] = "",
    budget: Annotated[int | None, typer.Option("--budget", min=0, help="Tokens at most.")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Say of each why it is there.")] = False,
    record: Annotated[bool, typer.Option("--record", help="Tell the topic that they were injected.")] = False,
    seed: Annotated[int | None, typer.Option("--seed", help="Of what is drawn of lessons on trial.")] = None,
    principal: Principal = None,
    session: Session = None,
    bootstrap: Bootstrap = None,
) -> Result:
    """What an agent is told before it uses a tool, within a budget of tokens; nothing where nothing fits."""
    own = {"--bootstrap": bootstrap, "--seed": seed is not None}
    if (client := options.service(own, feedback=record)) is not None:
        stated = {"tool": tool, "files": file or [], "context": context, "budget": budget, "record": record}
        with client:
            facts = client.send(
                calls.lesson_prompt({**stated, "principal": speaker_of(principal), "session_id": session})
            )
    else:
        facts = _here().prompt_here(
            options.settings(bootstrap=bootstrap),
            _here().ToolUse(tool, tuple(file or ()), context),
            budget=budget,
            rng=random.Random(seed),  # noqa: S311 - it draws what is tried, and keeps no secret
            saying=(principal, session) if record else None,
        )
    whys = [visible(f"{each['lesson_id']}: {each['why']}") for each in facts["lessons"] if explain]
    return Result([facts], [*([facts["text"]] if facts["text"] else []), *whys])


def _texts(facts: Mapping[str, Any]) -> Sequence[str]:
    low, high = facts["interval"]
    came = facts["outcomes"]
    helpful = sum(came.get(each.value, 0) for each in (LessonResult.SUCCESS, LessonResult.CONFIRMATION))
    counts = (facts["said"], facts["injected"], helpful, sum(came.values()) - helpful)
    numbers = (f"{facts['p_good']:.2f}", f"{(high - low) / 2:.2f}", *map(str, counts))
    return (facts["id"], facts["status"], *numbers, facts["section"], facts["content"])


def _times(count: int) -> str:
    return {0: "never", 1: "once"}.get(count, f"{count} times")


def _outcomes(facts: Mapping[str, Any]) -> str:
    came = ", ".join(f"{count} {result}" for result, count in facts["outcomes"].items() if count)
    return f"came of it: {came or 'nothing yet'}"


def _can(facts: Mapping[str, Any]) -> list[str]:
    return [f"weft lessons {what} {facts['id']}" for what in ("validate", "contradict", "retire", "show")]


def _conditions(stated: Mapping[str, Sequence[str]]) -> str:
    named = (f"{name} {', '.join(values)}" for name, values in stated.items())
    return "for " + "; ".join(named) if stated else "wherever its words fit"


_LINKS = {"alias": "is one with", "apart": "is not one with", "revise": "is said instead of"}


def _story(note: Mapping[str, Any], shown: str) -> str:
    source, origin, why = note.get("source"), note.get("origin"), note.get("why")
    sure = note.get("sure", 1.0)
    about = [source and f"from {source}", origin and f"told by {origin}{'' if sure == 1.0 else f', {sure:.2f} sure'}"]
    if note["what"] in _LINKS:
        about.insert(0, f"{note.get('lesson', '')} {_LINKS[note['what']]} {note.get('other', '')}")
    elif note.get("lesson", "") != shown:
        about.insert(0, f"of {note.get('lesson', '')}")
    sayings = [note.get("span") and f"“{note['span']}”", why and one_line(why)]
    details = "; ".join(each for each in (*about, f"conversation {note['session']}", *sayings) if each)
    return f"  {moment(note['at'])}  {note['what']} by {note['by']}: {details}"


COMMANDS: Mapping[str, Callable[..., None]] = {"list": list_lessons, "review": review, "show": show, "prompt": prompt}
"""By their names."""
