"""LES-5, LES-6: what is heard in an agent's transcript, as its JSON lines hold it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.lessons import a_lesson, settings
from weft.app.lessons.hearing import load_hearing
from weft.app.lessons.session_end import read_transcript, reflector_of
from weft.domain.lesson import LessonSource
from weft.lessons.hearing import Hearing, Injection, Utterance

LESSONS = [
    "Run the database migrations before starting the API",
    "The gateway listens on port 8443",
    "Use eager loading for order lines",
    "Ask before pushing to a remote branch",
]


def spoken(role: str, text: str) -> list[dict[str, Any]]:
    return [{"type": role, "message": {"role": role, "content": [{"type": "text", "text": text}]}}]


def used(command: str, output: str) -> list[dict[str, Any]]:
    call = {"type": "tool_use", "name": "Bash", "input": {"command": command}}
    result = {"type": "tool_result", "content": output}
    return [
        {"type": "assistant", "message": {"role": "assistant", "content": [call]}},
        {"type": "user", "message": {"role": "user", "content": [result]}},
    ]


RECORDS = [
    *spoken("user", "can you get the checkout service running locally"),
    *used("docker compose up -d checkout", "checkout started"),
    *spoken("assistant", "It's up on port 8080."),
    *spoken(
        "user", "it answers 500 on every request because the tables aren't there. the migrations weren't run before it"
    ),
    *used("alembic upgrade head", "Running upgrade a1 -> b2"),
    *spoken("assistant", "Migrations are applied, requests are fine now."),
    *spoken("user", "good. add a column discount to the order lines"),
    *spoken("assistant", "Added `discount: float`."),
    *spoken("user", "We never keep money in floats here, amounts are integer cents everywhere."),
    *spoken("assistant", "Changed to discount_cents: int."),
    *spoken("user", "nice, and run the linter"),
    *used("ruff check", "All checks passed!"),
    *spoken("assistant", "Clean."),
    *spoken("user", "why does the gateway not answer on 8443?"),
    *spoken("assistant", "My notes say the gateway listens on 8443."),
    *spoken("user", "not any more, since the move it's 9443"),
    *used("curl localhost:9443", "200"),
    *spoken("assistant", "9443 answers."),
    *spoken("user", "orders page takes 8 seconds"),
    *used("hey /orders", "p95 210ms"),
    *spoken("assistant", "I added eager loading for the lines."),
    *spoken("user", "from 8 s to 210 ms with the eager loading, great"),
    *spoken("assistant", "Shall I commit?"),
    *spoken("user", "yes, but ask me before you push, that rule is a good one"),
    *spoken("assistant", "Committed; tell me when I may push."),
    *spoken("user", "For the future: commit messages in this repo start with the ticket number."),
]


@pytest.fixture(scope="module")
def hearing() -> Hearing:
    loaded = load_hearing(settings())
    assert loaded is not None
    return loaded


def test_six_statements_in_a_working_session_are_heard(tmp_path: Path, hearing: Hearing) -> None:
    """LES-5, LES-6: four outcomes of four lessons, two lessons, and nothing else."""
    path = tmp_path / "transcript.jsonl"
    path.write_text("\n".join(map(json.dumps, RECORDS)), encoding="utf-8")
    steps = [turn.step for turn in read_transcript(str(path), pytest.fail)]
    utterances = [Utterance(step.output if step.speaker == "tool" else step.text, step.speaker) for step in steps]
    injections = [Injection(f"i-{at}", a_lesson(text)) for at, text in enumerate(LESSONS)]
    outcomes = hearing.outcomes(utterances, injections)
    assert [(each.injection.injection_id, each.result.value) for each in outcomes] == [
        ("i-0", "failure"),
        ("i-1", "contradiction"),
        ("i-2", "success"),
        ("i-3", "confirmation"),
    ]
    # At the next stop only what is new is listened to; what stands before is what it answers.
    new = [each for each in outcomes if each.turn >= outcomes[2].turn]
    assert hearing.outcomes(utterances, injections, since=new[0].turn) == new
    proposals = reflector_of(settings(), hearing).reflect(steps, [each.lesson for each in injections]).proposals
    assert [("cents" in each.content, "ticket number" in each.content) for each in proposals] == [
        (True, False),
        (False, True),
    ]
    assert proposals[1].source is LessonSource.USER_CORRECTION
