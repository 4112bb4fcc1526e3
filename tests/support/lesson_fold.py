"""What events about lessons come to, read independently: with `json` and dicts alone (LES-7).

All of it is use of the lesson, a unit each, on the event's day, under who says so:
    of `add` and `revise`: the text, "lesson.text:" and its JSON without id and source; and
        "lesson.saying:<source>:<priority>"
    of `revise`: "lesson.revises" under the parent
    of `retire`, `restore`, and of outcomes that a person typed: "lesson.word:<word>:<ms>"
    of other outcomes: "lesson.<outcome>:<origin>", under the injection
    of `alias`, `apart`: "lesson.<op>:<ms>", under the other lesson
    of an injection: "lesson.injected:<propensity %>:<P(good) %>" of each lesson, under the injection
    of all but injections: "lesson.note:" and what happened
An id is the first 16 digits of SHA-256 over the JSON list of section, text, and the sorted values of each condition.
What is kept under an injection has the first 16 digits of the SHA-256 of its id in lower case with single blanks.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator
from typing import Any

from tests.support.feedback_words import fingerprint

DAY_MS = 86_400_000
TYPES = {"lesson", "injection", "lesson_outcome"}
CONDITIONS = ("tools", "files", "actions", "words")
RESULTS = ("success", "confirmation", "failure", "contradiction")


def lesson_uses(event: dict[str, Any]) -> Iterator[tuple[int, str, str, str, str]]:
    """Keys of use: day, lesson, bin, principal, question."""
    day, ms = divmod(event["at"], DAY_MS)
    who = fingerprint(event["principal"])
    if event["type"] == "injection":
        for each in {one["lesson_id"]: one for one in event["lessons"]}.values():
            good = "-" if each.get("p_good") is None else round(each["p_good"] * 100)
            shown = f"lesson.injected:{round(each.get('propensity', 1.0) * 100)}:{good}"
            yield day, each["lesson_id"], shown, who, _short(event["injection_id"])
        return
    if event["type"] == "lesson_outcome":
        about, what, origin = event["lesson_id"], event["outcome"], event.get("origin", "report")
        typed = origin == "person"
        bin_ = f"lesson.word:{what}:{ms:08d}" if typed else f"lesson.{what}:{origin}"
        of = event.get("injection_id")
        yield day, about, bin_, who, "" if of is None else _short(of)
        yield day, about, _note(event, what, origin=origin, span=event.get("span"), injection=of), who, ""
        return
    op, about, other, source, span = event["op"], event.get("lesson_id"), event.get("other"), None, None
    if op in {"add", "revise"}:
        said = event["lesson"]
        source, span, other = said.get("source", "other"), said.get("span"), about if op == "revise" else other
        about = lesson_id(said)
        yield day, about, "lesson.text:" + _json(_stated(said)), who, ""
        yield day, about, f"lesson.saying:{source}:{said.get('priority', 'medium')}", who, ""
        if op == "revise":
            yield day, about, "lesson.revises", who, event["lesson_id"]
    elif op in {"retire", "restore"}:
        yield day, about, f"lesson.word:{op}:{ms:08d}", who, ""
    else:
        yield day, about, f"lesson.{op}:{ms:08d}", who, other
    yield day, about, _note(event, op, source=source, span=span, other=other), who, ""


def lesson_id(said: dict[str, Any]) -> str:
    conditions = said.get("conditions", {})
    named = [said["section"], said["content"], *(sorted(conditions.get(name, [])) for name in CONDITIONS)]
    return hashlib.sha256(_json(named).encode()).hexdigest()[:16]


def lesson_event(rng: random.Random) -> dict[str, Any]:
    """Something said about one of a few lessons, or what came of it."""
    ids = [lesson_id(_lesson(number)) for number in range(6)]
    one, other = rng.sample(ids, 2)
    why = rng.choice(({}, {"why": "it was so"}))
    injected = {"lesson_id": one, "propensity": round(rng.random(), 2), "p_good": round(rng.random(), 2)}
    return rng.choice(
        (
            {"type": "lesson", "op": "add", "lesson": _lesson(rng.randrange(6)), **why},
            {"type": "lesson", "op": "revise", "lesson": _lesson(rng.randrange(6)), "lesson_id": other},
            {"type": "lesson", "op": rng.choice(("retire", "restore")), "lesson_id": one, **why},
            {"type": "lesson", "op": rng.choice(("alias", "apart")), "lesson_id": one, "other": other, **why},
            {
                "type": "injection",
                "injection_id": f"i-{rng.randrange(20)}",
                "lessons": [injected, {"lesson_id": other}],
            },
            {
                "type": "lesson_outcome",
                "lesson_id": one,
                "outcome": rng.choice(RESULTS),
                "origin": rng.choice(("person", "detection", "report", "silence")),
                **rng.choice(({}, {"injection_id": f"i-{rng.randrange(20)}", "span": "you forgot it"})),
                **why,
            },
            {"type": "lesson_outcome", "lesson_id": f"style-{rng.randrange(9)}", "outcome": rng.choice(RESULTS)},
        )
    )


def _lesson(number: int) -> dict[str, Any]:
    lesson: dict[str, Any] = {"section": "api", "content": f"Do step {number} first"}
    if number % 2:
        lesson |= {"source": "user_correction", "priority": "critical", "conditions": {"tools": ["Bash", "Edit"]}}
    return lesson


def _stated(said: dict[str, Any]) -> dict[str, Any]:
    kind, priority = said.get("kind", "pattern"), said.get("priority", "medium")
    named = {"section": said["section"], "content": said["content"], "kind": kind, "priority": priority}
    conditions = {"conditions": said["conditions"]} if said.get("conditions") else {}
    rest = {name: said[name] for name in ("missed", "reasoning", "span") if said.get(name)}
    return {**named, **conditions, **rest}


def _note(event: dict[str, Any], what: str, **facts: str | None) -> str:
    note = {"what": what, "at": event["at"], "by": event["principal"], "session": event["session_id"]}
    note["event"] = event["event_id"]
    facts["why"] = event.get("why")
    order = ("source", "origin", "why", "span", "injection", "other")
    return "lesson.note:" + _json(note | {name: facts[name] for name in order if facts.get(name)})


def _short(text: str) -> str:
    return hashlib.sha256(" ".join(text.casefold().split()).encode()).hexdigest()[:16]


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
