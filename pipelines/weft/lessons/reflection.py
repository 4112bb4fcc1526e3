"""What an episode teaches: corrections, knowledge that is stated, mistakes and what mended them (LES-6).

The rules are deterministic and prefer silence: a lesson that should not be there is believed at once, and one that was
missed is said again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Protocol

from weft.domain.errors import InvalidLessonError
from weft.domain.lesson import ANYWHERE, Conditions, Lesson, LessonKind, LessonPriority, LessonSource
from weft.lessons.detection import unquoted
from weft.lessons.gate import RejectedLesson, pass_gate
from weft.wording.words import stem_of, words_of

if TYPE_CHECKING:
    from weft.lessons.settings import LessonSettings

_SENTENCES = re.compile(r"(?<=[.!?])\s+|\n+")
_BEGINS = re.compile(r"(?:^|please,? |[.!,;:] )$", re.IGNORECASE)
_OBLIGES = re.compile(r"\b(?:must|needs?|should|shall|has to|have to|is to|are to)\b", re.IGNORECASE)
_LONGEST_COMMAND = 120
_GENERAL = "general"  # the section of what no word of a section stands in


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


@dataclass(frozen=True, slots=True)
class _Idea:
    """A sentence that may be a lesson."""

    content: str
    source: LessonSource
    kind: LessonKind
    reasoning: str
    span: str
    conditions: Conditions = ANYWHERE
    missed: str | None = None


class RuleReflector:
    """The default reflector: without a model, deterministic."""

    def __init__(self, settings: LessonSettings) -> None:
        self._settings = settings
        self._rules = _Rules(settings)

    def reflect(self, episode: Sequence[EpisodeStep], injected: Sequence[Lesson]) -> Reflection:
        """Lessons from what the user says and from commands that failed and then succeeded, in their order."""
        lessons, refused = [], []
        for idea in [*self._rules.of_words(episode), *_of_commands(episode)]:
            try:
                lessons.append(self._lesson(idea))
            except InvalidLessonError as error:
                refused.append(RejectedLesson("invalid", str(error)))
        passed, rejected = pass_gate(lessons, injected, self._settings)
        return Reflection(passed, (*refused, *rejected))

    def _lesson(self, idea: _Idea) -> Lesson:
        urgent = re.search(r"\b(?:never|must|critical|compliance|security|production)\b|!", idea.span.lower())
        return Lesson(
            section=section_of(idea.content, self._settings),
            content=idea.content,
            kind=idea.kind,
            priority=LessonPriority.HIGH if urgent else LessonPriority.MEDIUM,
            source=idea.source,
            conditions=idea.conditions,
            missed=idea.missed,
            reasoning=idea.reasoning,
            span=idea.span,
        )


def section_of(content: str, settings: LessonSettings) -> str:
    """The first section of the settings of which a word stands in the text; else the general one."""
    stems = {stem_of(word) for word in words_of(content)}
    for section, named in settings.reflection.sections.items():
        if stems.intersection(map(stem_of, named)):
            return section
    return _GENERAL


class _Rules:
    """Sentences that say what holds, as the settings tell them."""

    def __init__(self, settings: LessonSettings) -> None:
        stated = settings.reflection
        self._corrections = [re.compile(pattern, re.IGNORECASE) for pattern in stated.corrections]
        self._knowledge = [re.compile(pattern, re.IGNORECASE | re.DOTALL) for pattern in stated.knowledge]
        self._excluded = re.compile("|".join(f"(?:{pattern})" for pattern in stated.excluded), re.IGNORECASE)
        self._verbs = {stem_of(verb): verb for verb in reversed(settings.atomicity.verbs)}

    def of_words(self, episode: Sequence[EpisodeStep]) -> Iterator[_Idea]:
        """Of the user's corrections, and of blocks of knowledge by anyone."""
        last: EpisodeStep | None = None
        for step in episode:
            if step.speaker == "tool":
                last = step
                continue
            blocks = self._knowledge_of(step)
            yield from blocks
            if step.speaker == "user" and not blocks:
                for sentence in _SENTENCES.split(unquoted(step.text)):
                    if idea := self._of_sentence(sentence.strip(), last):
                        yield idea

    def _of_sentence(self, sentence: str, last: EpisodeStep | None) -> _Idea | None:
        if not sentence or self._excluded.search(sentence):
            return None
        for pattern in self._corrections:
            if (match := pattern.search(sentence)) and (rule := self._rule(match)):
                return self._idea(rule, sentence, last, missed=bool(match.groupdict().get("past")))
        return None

    def _rule(self, match: re.Match[str]) -> str | None:
        """What a sentence says as an instruction; None where it is none."""
        groups = {name: value for name, value in match.groupdict().items() if value is not None}
        if "general" in groups:  # it holds for all of a kind, and stands as it was said
            return groups["general"].rstrip(".! ")
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
        if len(groups["rule"].split()) <= 1 or not (sure or self._imperative(rule)):
            return None
        return f"{rule.rstrip('.! ')} {groups['when'].lower()}" if "when" in groups else rule

    def _knowledge_of(self, step: EpisodeStep) -> list[_Idea]:
        return [
            _Idea(
                _tidied(block["rule"]),
                LessonSource.KNOWLEDGE_BLOCK,
                LessonKind.REQUIREMENT,
                "It was stated as a rule.",
                block.group().strip(),
            )
            for pattern in self._knowledge
            for block in pattern.finditer(step.text)
            if block.group().startswith("```") or self._imperative(block["rule"]) or _OBLIGES.search(block["rule"])
        ]

    def _idea(self, rule: str, span: str, last: EpisodeStep | None, *, missed: bool) -> _Idea:
        content = _tidied(rule)
        denies = content.lower().startswith(("never", "do not", "avoid"))
        kind = LessonKind.WARNING if denies else LessonKind.CHECKLIST if missed else LessonKind.REQUIREMENT
        return _Idea(
            content,
            LessonSource.USER_CORRECTION,
            kind,
            "The user said so.",
            span,
            conditions_of(last) if last else ANYWHERE,
            content if missed else None,
        )

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


def _tidied(rule: str) -> str:
    text = re.sub(
        r",? (?:otherwise|because|since|so that|as we agreed|please|again|this is|it is|read it|fetch it)\b.*$",
        "",
        rule.strip(),
    )
    text = text.strip(" .!,;:-–—")
    return text[:1].upper() + text[1:]


def conditions_of(step: EpisodeStep) -> Conditions:
    """When a lesson about a step is of use: its tool, and files that end alike."""
    endings = {PurePosixPath(path.replace("\\", "/")).suffix for path in step.files}
    return Conditions(
        tools=(step.tool,) if step.tool else (), files=tuple(f"*{ending}" for ending in endings if ending)
    )


def _of_commands(episode: Sequence[EpisodeStep]) -> Iterator[_Idea]:
    """Of a command that failed and was mended: by another form of it, or by another command before it."""
    tools = [step for step in episode if step.speaker == "tool" and step.text.strip()]
    failures: dict[str, int] = {}
    for at, step in enumerate(tools[:-1]):
        if not step.failed or len(step.text) > _LONGEST_COMMAND:
            continue
        failures[step.text] = failures.get(step.text, 0) + 1
        following = tools[at + 1 :]
        source = LessonSource.REPEATED_MISTAKE if failures[step.text] > 1 else LessonSource.AGENT_INFERENCE
        if idea := _mended(step, following, source):
            yield idea


def _mended(step: EpisodeStep, following: Sequence[EpisodeStep], source: LessonSource) -> _Idea | None:
    after, later = following[0], following[1] if len(following) > 1 else None
    if after.failed or after.tool != step.tool or after.text == step.text or len(after.text) > _LONGEST_COMMAND:
        return None
    conditions = Conditions(tools=(step.tool,) if step.tool else (), actions=tuple(_command_words(step.text)))
    why = f"It failed: {step.output.strip()[:200] or 'without a word'}"
    span = f"{step.text} → {after.text}"
    if later is not None and not later.failed and later.text == step.text:
        content = f"Run `{after.text}` before `{step.text}`"
        return _Idea(content, source, LessonKind.PATTERN, why, span, conditions)
    if _variant(step.text, after.text):
        content = f"Use `{after.text}` instead of `{step.text}`"
        return _Idea(content, source, LessonKind.PATTERN, why, span, conditions)
    return None


def _variant(failed: str, mended: str) -> bool:
    """Whether a command is another form of one: most of the parts of the shorter stand in the longer."""
    one, other = failed.split(), mended.split()
    shorter, longer = sorted((one, other), key=len)
    joined = " ".join(longer)
    return sum(part in longer or part in joined for part in shorter) >= max(1, (len(shorter) + 1) // 2)


def _command_words(command: str) -> list[str]:
    return [word for word in words_of(command) if word.isalpha() and len(word) > 2][:4]
