"""What an episode teaches: what its user says explicitly, as a correction or as a rule (LES-6).

The rules are deterministic and prefer silence: one that was missed is said again. A clause is taken with its sentence,
or not at all: half of it says something else. What a person states as a rule for good is a correction; all else that
the rules make is a proposal, which has to prove itself. What commands that failed teach, and what people say in other
words, takes a model behind an OpenAI-compatible endpoint, which takes the place of the rules; who calls it is a port.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Protocol

from weft.domain.errors import InvalidLessonError
from weft.domain.lesson import ANYWHERE, Conditions, Lesson, LessonKind, LessonPriority, LessonSource
from weft.lessons.detection import unquoted
from weft.lessons.gate import RejectedLesson, pass_gate
from weft.lessons.sensitive import sensitive_parts
from weft.wording.text import named
from weft.wording.words import stem_of, words_of

if TYPE_CHECKING:
    from weft.lessons.settings import LessonSettings

_BREAKS = re.compile(r"(?<=[.!?])(?<!\.\w\.)\s+|\n+")  # "e.g." ends no sentence
_WRAPPED = re.compile(
    r"(?<=[\w,)])[ \t]*\n[ \t]*(?=[^\W\d_A-Z])|(?<=,)[ \t]*\n(?=[ \t]*\S)"
)  # one sentence on two lines
_URGENT = re.compile(r"\b(?:never|must|critical|compliance|security|production)\b|!", re.IGNORECASE)
_BEGINS = re.compile(r"^(?:no[,.!]? )?(?:please,? )?$", re.IGNORECASE)
_OBLIGES = re.compile(r"\b(?:must|needs?|should|shall|has to|have to)\b", re.IGNORECASE)
_FOR_GOOD = re.compile(
    r"\b(?:from now on|going forward|in (?:the )?future|for the future|as a rule|ever|whenever|(?:each|every) time"
    r"|in (?:this|our) (?:project|repo|repository|team|codebase))\b",
    re.IGNORECASE,
)
_OPENING = re.compile(r"^(?:(?:no|yes|ok|okay|please|and|but|so|also)\b[,.!]? +)+", re.IGNORECASE)
_ENDS_CLAUSE = (",", ";", ":")
# And what else goes without saying; "since" and the like only where a comma says that they give a reason.
_REASON = re.compile(
    r",? (?:because|so that|as we agreed)\b.*$|(?:[,;]| [-–—]) (?:otherwise|since|this is|it is|read it|fetch it)\b.*$"
    r"|,? (?:again|please)[\s.!]*$"
)
_GENERAL = "general"  # the section of what a user said


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


class RuleReflector:
    """The default reflector: without a model, deterministic."""

    def __init__(self, settings: LessonSettings) -> None:
        self._settings = settings
        stated = settings.reflection
        self._corrections = [re.compile(pattern, re.IGNORECASE) for pattern in stated.corrections]
        self._knowledge = [re.compile(pattern, re.IGNORECASE | re.DOTALL) for pattern in stated.knowledge]
        self._excluded = re.compile("|".join(f"(?:{pattern})" for pattern in stated.excluded), re.IGNORECASE)
        self._verbs = {stem_of(verb): verb for verb in reversed(settings.atomicity.verbs)}

    def reflect(self, episode: Sequence[EpisodeStep], injected: Sequence[Lesson]) -> Reflection:
        """Lessons from blocks of knowledge by anyone, and else from what the user says, in their order."""
        lessons: list[Lesson] = []
        refused: list[RejectedLesson] = []
        last: EpisodeStep | None = None
        for step in episode:
            if step.speaker == "tool":
                last = step
                continue
            try:
                blocks = self._knowledge_of(step)
                lessons += blocks
                if step.speaker == "user" and not blocks:
                    for sentence, written in _sentences(step.text):
                        lessons += self._of_sentence(sentence, written, last)
            except InvalidLessonError as error:
                refused.append(RejectedLesson("invalid", str(error)))
        passed, rejected = pass_gate(lessons, injected, self._settings)
        return Reflection(passed, (*refused, *rejected))

    def _knowledge_of(self, step: EpisodeStep) -> list[Lesson]:
        return [
            _lesson(
                block["rule"],
                block.group().strip(),
                source=LessonSource.KNOWLEDGE_BLOCK if step.speaker == "user" else LessonSource.AGENT_INFERENCE,
                reasoning="It was stated as a rule.",
            )
            for pattern in self._knowledge
            for block in pattern.finditer(step.text)
            if block.group().startswith("```") or self._imperative(block["rule"]) or _OBLIGES.search(block["rule"])
        ]

    def _of_sentence(self, sentence: str, written: str, last: EpisodeStep | None) -> list[Lesson]:
        """The lesson that a sentence states; none, or one.

        Args:
            sentence: With blanks in the place of what is quoted.
            written: As it stands.
        """
        if not sentence or self._excluded.search(sentence):
            return []
        for pattern in self._corrections:
            if (match := pattern.search(sentence)) and (rule := self._rule(match, written)):
                conditions = conditions_of(last) if last else ANYWHERE
                lasting = _FOR_GOOD.search(sentence) or rule.lower().startswith(("always ", "never "))
                source = LessonSource.USER_CORRECTION if lasting or "general" in _stated(match) else _ONCE
                missed = "past" in _stated(match)
                return [_lesson(rule, written, source=source, conditions=conditions, missed=missed)]
        return []

    def _rule(self, match: re.Match[str], written: str) -> str | None:
        """What a sentence says as an instruction; None where it is none, or only with what stands before it."""
        groups = {name: written[slice(*match.span(name))] for name in _stated(match)}
        if "general" in groups:
            return groups["general"]
        rule = groups["rule"].strip()
        if "deny" in groups:
            rule = f"{'Never' if groups['deny'].lower() == 'never' else 'Do not'} {self._base(rule)}"
        elif "always" in groups:
            rule = f"Always {self._base(rule)}"
        elif "past" in groups:
            rule = self._base(rule)
        # What follows "forgot to" is a verb by grammar, and so is what follows a denial that begins a sentence.
        before = match.string[match.start() : match.start("rule")].lower()
        sure = before.endswith(("forgot to ", "forget to ", "sure to ", "remember to ")) or (
            "deny" in groups and _BEGINS.search(match.string[: match.start("deny")])
        )
        if len(groups["rule"].split()) < 2 or not (sure or self._imperative(rule)):
            return None
        begins = next((match.start(name) for name in ("deny", "always") if name in groups), match.start())
        front = written[:begins].rstrip()
        if not named(front):
            return rule
        # "In tests, never sleep" holds in tests; "when you deployed, you forgot to …" is no instruction.
        return _OPENING.sub("", written) if front.endswith(_ENDS_CLAUSE) and "past" not in groups else None

    def _base(self, rule: str) -> str:
        """The instruction in "quoted the variables" and in "using tabs"."""
        first, _, rest = rule.strip().partition(" ")
        base = "use" if first.lower() in {"used", "using"} else self._verbs.get(stem_of(first), first)
        return f"{base} {rest}"

    def _imperative(self, rule: str) -> bool:
        tokens = words_of(rule)
        while tokens and tokens[0] in {"always", "never", "do", "not", "don't"}:
            tokens = tokens[1:]
        return len(tokens) > 1 and stem_of(tokens[0]) in self._verbs


_ONCE = LessonSource.AGENT_INFERENCE
"""What a person said of one piece of work: that it holds beyond is inferred."""


def _sentences(text: str) -> Iterator[tuple[str, str]]:
    """The sentences of a text, with blanks for what is quoted, and as they stand."""
    plain = _WRAPPED.sub(lambda match: " " * len(match.group()), unquoted(text))
    start = 0
    for stop, after in [*(match.span() for match in _BREAKS.finditer(plain)), (len(plain), len(plain))]:
        part = plain[start:stop]
        first, last = start + len(part) - len(part.lstrip()), start + len(part.rstrip())
        if first < last:
            yield plain[first:last], " ".join(text[first:last].split("\n"))
        start = after


def _stated(match: re.Match[str]) -> dict[str, str]:
    return {name: value for name, value in match.groupdict().items() if value is not None}


def _lesson(
    rule: str,
    span: str,
    *,
    source: LessonSource = LessonSource.USER_CORRECTION,
    conditions: Conditions = ANYWHERE,
    missed: bool = False,
    reasoning: str = "The user said so.",
) -> Lesson:
    content = _tidied(rule)
    denies = source is not LessonSource.KNOWLEDGE_BLOCK and content.lower().startswith(("never", "do not", "avoid"))
    return Lesson(
        section=_GENERAL,
        content=content,
        kind=LessonKind.WARNING if denies else LessonKind.CHECKLIST if missed else LessonKind.REQUIREMENT,
        priority=LessonPriority.HIGH if _URGENT.search(span) else LessonPriority.MEDIUM,
        source=source,
        conditions=conditions,
        missed=content if missed else None,
        reasoning=reasoning,
        span=span,
    )


def _tidied(rule: str) -> str:
    text = _REASON.sub("", rule.strip())
    text = text.strip(" .!,;:-–—")
    return text[:1].upper() + text[1:]


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
