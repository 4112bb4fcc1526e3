"""A reflector behind an OpenAI-compatible endpoint, in the place of the rules; who calls it is a port (LES-6)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from weft.domain.errors import InvalidLessonError
from weft.domain.lesson import Lesson
from weft.lessons.gate import RejectedLesson, pass_gate
from weft.lessons.reflection import EpisodeStep, Reflection, Reflector
from weft.lessons.sensitive import sensitive_parts

if TYPE_CHECKING:
    from weft.lessons.settings import LessonSettings

Complete = Callable[[str, str], str]
"""Instruction and text to a model's answer; an OSError or a ValueError where there is none."""

INSTRUCTION = (
    "You read what a coding agent did and what its user said. State the lessons it teaches: each one exact instruction "
    "of one sentence that holds beyond this episode. Leave out what the agent was told already, vague advice, "
    'secrets and personal data. Answer with a JSON array, empty where there is no lesson, of objects {"section": one '
    'lower-case word, "content": the instruction, "kind": "checklist", "pattern", "warning" or "requirement", '
    '"priority": '
    '"critical", "high", "medium" or "low", "source": "user_correction" where the user said so, or else '
    '"agent_inference", "conditions": {"tools": [], "files": [], "actions": [], "words": []}, "reasoning": why, '
    '"span": the words it comes from}.'
)

_LONGEST = 24_000  # characters of an episode: its end, where users correct


class EndpointReflector:
    """Asks a model, and holds its answer to what every proposal is held to."""

    def __init__(self, complete: Complete, settings: LessonSettings, otherwise: Reflector) -> None:
        self._complete = complete
        self._settings = settings
        self._otherwise = otherwise

    def reflect(self, episode: Sequence[EpisodeStep], injected: Sequence[Lesson]) -> Reflection:
        """Lessons of the model's answer; of the other reflector where there is no answer that can be read."""
        text = "\n".join([*(f"told already: {lesson.content}" for lesson in injected), *map(_line, episode)])[
            -_LONGEST:
        ]
        try:
            answer = self._complete(INSTRUCTION, text)
            stated = json.loads(answer[answer.index("[") : answer.rindex("]") + 1])
        except (OSError, ValueError, RecursionError):
            return self._otherwise.reflect(episode, injected)
        lessons, refused = _lessons_of(stated)
        passed, rejected = pass_gate(lessons, injected, self._settings)
        return Reflection(passed, (*refused, *rejected))


def _line(step: EpisodeStep) -> str:
    """A step as the model reads it; what holds a secret does not leave this machine."""
    written = f"{step.speaker} {step.tool}{' failed' if step.failed else ''}: {step.text} {step.output}".strip()
    return f"{step.speaker}: (left out)" if sensitive_parts(written) else written


def _lessons_of(stated: object) -> tuple[list[Lesson], list[RejectedLesson]]:
    lessons, refused = [], []
    for each in stated if isinstance(stated, list) else []:
        try:
            if not isinstance(each, Mapping):
                raise InvalidLessonError(
                    [f"expected an object, found {type(each).__name__}: state section and content"]
                )
            lessons.append(Lesson.from_fields({name: value for name, value in each.items() if name != "id"}))
        except InvalidLessonError as error:
            names = ", ".join(problem.split(":")[0] for problem in error.problems)
            refused.append(RejectedLesson("invalid", f"wrong values: {names}"))
    return lessons, refused
