"""LES-6: a model in the place of the rules, held to the same."""

from __future__ import annotations

import json

import pytest

from tests.support.lessons import a_lesson, settings
from weft.lessons.reflection import EndpointReflector, EpisodeStep, HearingReflector

RULES = HearingReflector(None, settings().lessons)
EPISODE = [
    EpisodeStep("curl -u bob:Sup3rS3cret x", "tool", "Bash"),
    EpisodeStep("Always run the linter before pushing."),
]


def reflector(answer: str, asked: list[str] | None = None) -> EndpointReflector:
    def complete(instruction: str, text: str) -> str:
        (asked if asked is not None else []).append(text)
        return answer

    return EndpointReflector(complete, settings().lessons, RULES)


def test_an_answer_passes_the_same_gate_as_the_rules() -> None:
    """LES-6: what was injected, vague advice, secrets and wrong values are refused, one by one."""
    answer = [
        {"section": "git", "content": "Sign every commit", "kind": "requirement"},
        {"section": "git", "content": "Run the linter before pushing"},
        {"section": "work", "content": "Be more careful"},
        {"section": "work", "content": "Log in with password: hunter2!"},
        {"section": "No Slug", "content": "Tag releases"},
        "text",
    ]
    injected = [a_lesson("Run the linter before every push")]
    found = reflector(f"Here you are:\n```json\n{json.dumps(answer)}\n```").reflect(EPISODE, injected)
    assert [lesson.content for lesson in found.proposals] == ["Sign every commit"]
    assert [each.reason for each in found.refusals] == ["invalid", "invalid", "injected", "not_atomic", "sensitive"]
    assert "hunter2" not in repr(found)


def test_secrets_do_not_leave_for_the_endpoint() -> None:
    """LES-6: a step that holds one is left out of what is asked."""
    asked: list[str] = []
    reflector("[]", asked).reflect(EPISODE, [a_lesson("Sign every commit")])
    assert asked == ["told already: Sign every commit\ntool: (left out)\nuser : Always run the linter before pushing."]


@pytest.mark.parametrize("answer", ["", "no lessons", "[{", "]["])
def test_where_the_answer_cannot_be_read_the_rules_reflect(answer: str) -> None:
    """LES-6: a model that fails costs nothing."""
    assert reflector(answer).reflect(EPISODE, []) == RULES.reflect(EPISODE, [])
