"""What an episode teaches: what is heard in it, or stated as a rule in so many words (LES-6).

A lesson is said in the words of whoever taught it, with what it is about where they do not tell. What a person states
as a rule for good is a correction; all else is a proposal, which has to prove itself. A model behind an
OpenAI-compatible endpoint can take the place of the heads; who calls it is a port.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Protocol

from weft.domain.errors import InvalidLessonError
from weft.domain.lesson import ANYWHERE, Conditions, Lesson, LessonKind, LessonPriority, LessonSource
from weft.lessons.gate import RejectedLesson, pass_gate
from weft.lessons.hearing import NO_EARLIER_TURNS, EarlierTurns, Hearing, Utterance
from weft.lessons.sensitive import sensitive_parts, without_sensitive
from weft.wording.text import named

if TYPE_CHECKING:
    from weft.lessons.settings import LessonSettings

_BLOCK = re.compile(
    r"```(?:lesson|rule|knowledge)\n(?P<fenced>[^`]+?)\n?```"
    r"|(?:^|\n)(?:lesson(?: learned)?|rule|convention|knowledge|guideline|policy): (?P<stated>[^\n.]+(?:\.\w[^\n.]*)*)",
    re.IGNORECASE,
)
_URGENT = re.compile(r"\b(?:never|must|critical|compliance|security|production)\b|!", re.IGNORECASE)
_FOR_GOOD = frozenset({LessonSource.USER_CORRECTION, LessonSource.KNOWLEDGE_BLOCK})
_DENIES = ("never", "do not", "don't", "avoid")
_GENERAL = "general"  # the section of what is heard
_TELLING = 2  # things that a lesson names at least, to be understood by itself
_ASKED = 200  # characters of what was asked for that say what a lesson is about


@dataclass(frozen=True, slots=True)
class EpisodeStep:
    """One thing that happened."""

    text: str  # what the user or the agent said; of a tool, its input
    speaker: str = "user"  # "user", "agent" or "tool"
    tool: str = ""  # its name, of a tool
    files: tuple[str, ...] = ()  # paths that it touched
    failed: bool = False  # whether it failed
    output: str = ""  # what it gave back


@dataclass(frozen=True, slots=True)
class Reflection:
    """What came of an episode."""

    proposals: tuple[Lesson, ...]
    refusals: tuple[RejectedLesson, ...] = ()


class Reflector(Protocol):
    """Diagnoses an episode; called at its end, once or again with the same result."""

    def reflect(self, episode: Sequence[EpisodeStep], injected: Sequence[Lesson]) -> Reflection:
        """Lessons that the episode teaches, none of them injected."""
        ...


class HearingReflector:
    """The default reflector: what the heads hear, and blocks that state a rule; deterministic, and prefers silence."""

    def __init__(
        self, hearing: Hearing | None, settings: LessonSettings, earlier: EarlierTurns = NO_EARLIER_TURNS
    ) -> None:
        """Without a hearing, which takes the bundled encoder, blocks alone teach.

        Args:
            earlier: What was heard before; blocks state their rules once more, which counts once.
        """
        self._hearing, self._settings, self._earlier = hearing, settings, earlier

    def reflect(self, episode: Sequence[EpisodeStep], injected: Sequence[Lesson]) -> Reflection:
        """Lessons from blocks by anyone, and else from what is heard, in their order."""
        lessons: list[Lesson] = []
        refused: list[RejectedLesson] = []
        blocks = {place: _stated_in(step) for place, step in enumerate(episode)}
        spoken = [
            Utterance("" if blocks[place] else step.output if step.speaker == "tool" else step.text, step.speaker)
            for place, step in enumerate(episode)
        ]
        taught = self._hearing.teachings(spoken, self._earlier) if self._hearing is not None else []
        stated = [(place, rule, source) for place, candidates in blocks.items() for rule, source in candidates]
        for place, words, source in sorted(
            [*stated, *((each.turn, each.words, each.source) for each in taught)], key=lambda each: each[0]
        ):
            try:
                lessons.append(_lesson(words, source, episode[: place + 1]))
            except InvalidLessonError as error:
                refused.append(RejectedLesson("invalid", str(error)))
        passed, rejected = pass_gate(lessons, injected, self._settings)
        return Reflection(passed, (*refused, *rejected))


def _stated_in(step: EpisodeStep) -> list[tuple[str, LessonSource]]:
    """Rules that a step states in a block, or behind a word such as "Rule:"."""
    if step.speaker == "tool":
        return []
    source = LessonSource.KNOWLEDGE_BLOCK if step.speaker == "user" else LessonSource.AGENT_INFERENCE
    return [(block["fenced"] or block["stated"], source) for block in _BLOCK.finditer(step.text)]


def _lesson(words: str, source: LessonSource, until: Sequence[EpisodeStep]) -> Lesson:
    """A lesson in the words that teach it, the last thing that happened.

    Raises:
        InvalidLessonError: They make none.
    """
    span = without_sensitive(" ".join(words.split()))
    content = span.strip(" .!,;:-–—")
    before = [each for each in until[:-1] if each.text.strip()]
    asked = next((each.text for each in reversed(before) if each.speaker == "user"), "")
    if source is not LessonSource.KNOWLEDGE_BLOCK and asked and len(set(named(content))) < _TELLING:
        content = f"{without_sensitive(' '.join(asked.split()))[:_ASKED].strip(' .!,;:-–—')}: {content}"
    last = next((each for each in reversed(until) if each.speaker == "tool" and each.tool), None)
    denies = content.lower().startswith(_DENIES)
    return Lesson(
        section=_GENERAL,
        content=content[:1].upper() + content[1:],
        kind=LessonKind.WARNING if denies else LessonKind.REQUIREMENT,
        priority=LessonPriority.HIGH if source in _FOR_GOOD and _URGENT.search(span) else LessonPriority.MEDIUM,
        source=source,
        conditions=conditions_of(last) if last else ANYWHERE,
        reasoning=_REASONS[source],
        span=span,
    )


_REASONS: Mapping[LessonSource, str] = {
    LessonSource.KNOWLEDGE_BLOCK: "It was stated as a rule.",
    LessonSource.USER_CORRECTION: "A person stated it as a rule for good.",
    LessonSource.REPEATED_MISTAKE: "It was corrected before.",
    LessonSource.AGENT_INFERENCE: "It was true of one piece of work: that it holds beyond is inferred.",
}


def conditions_of(step: EpisodeStep) -> Conditions:
    """When a lesson about a step is of use: its tool, and files that end alike."""
    endings = {PurePosixPath(path.replace("\\", "/")).suffix for path in step.files}
    return Conditions(
        tools=(step.tool,) if step.tool else (), files=tuple(f"*{ending}" for ending in endings if ending)
    )


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
