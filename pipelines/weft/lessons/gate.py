"""What no proposal passes, whoever made it: secrets, personal data, and what is no one exact instruction (LES-6)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft.domain.errors import InvalidLessonError
from weft.domain.lesson import Conditions, Lesson
from weft.lessons.duplicates import MOST_FORMS, LessonTexts, pattern_forms
from weft.lessons.sensitive import require_storable
from weft.wording.comparison import TextRelation
from weft.wording.lexicon import ABSOLUTES, AUXILIARIES, CONDITIONS, DECIDING, DENYING_VERBS, IDLE, NEGATIONS, ORDER
from weft.wording.words import words_of

if TYPE_CHECKING:
    from weft.lessons.settings import LessonSettings

# What follows gives a reason or an example, and no further instruction.
_REASON = re.compile(
    r"\b(?:because|since|so that|otherwise|e\.g\.|i\.e\.|for example|which|as (?:it|they|this|that))\b"
)
_SENTENCES = re.compile(r"(?<=[.!?])\s+(?=[A-Z`*_\d\"'(])|;\s+|\n+")
_JOINERS = re.compile(
    r",?\s+\b(?:and then|and also|and|then|additionally|as well as|also|plus|finally|next)\b,?\s+|,\s+"
)
_TWO = (["do", "not"], ["make", "sure"])
_TELLING = 2  # beside a phrase of no content: what to do, and with what
_CODE = re.compile(
    r"`[^`]+`|\S*[\w]\.\w+\S*|(?<!\w)--?\w[\w-]*|\w+\(\)|\w*_\w+|\b[A-Z]{2,}\b|\b\w+[a-z][A-Z]\w*|(?<!\w)/\w+|\d"
)


@dataclass(frozen=True, slots=True)
class Atomicity:
    """How whole and how exact a lesson is."""

    score: float  # in [0, 1]: 1 − what further instructions, words beyond a sentence and vagueness cost
    reasons: tuple[str, ...]  # what was subtracted, for whoever proposed it


def atomicity(text: str, settings: LessonSettings) -> Atomicity:
    """How far a text is one exact instruction."""
    stated = settings.atomicity
    score = 1.0
    reasons: list[str] = []
    further = len(_instructions(text, settings)) - 1
    if further > 0:
        score -= stated.further * further
        reasons.append(f"{further + 1} instructions, expected one: add each by itself")
    if (extra := len(text.split()) - stated.enough_words) > 0:
        score -= stated.long * extra
        reasons.append(f"{extra} words more than {stated.enough_words}: say it shorter")
    if vague(text, settings):
        score -= stated.vague
        reasons.append("names nothing to do: say what, where and how")
    return Atomicity(round(max(0.0, score), 6), tuple(reasons))


def vague(text: str, settings: LessonSettings) -> bool:
    """Whether a directive leaves nothing, beside what anyone would agree to, that could be followed or broken."""
    if _CODE.search(text):
        return False
    rest = whole = " ".join(words_of(text))
    for directive in sorted(settings.atomicity.directives, key=len, reverse=True):
        rest = re.sub(rf"\b{re.escape(directive)}\b", " ", rest)
    general = {*settings.atomicity.general, *IDLE, *NEGATIONS, *DENYING_VERBS, "don't"}
    telling = {word for word in rest.split() if word not in general and len(word) > 1 and not word.endswith("ly")}
    return len(telling) < (1 if rest == whole else _TELLING)


def _instructions(text: str, settings: LessonSettings) -> list[str]:
    """The instructions of a text: sentences, and clauses of theirs that begin with a verb of their own."""
    instructions: list[str] = []
    for sentence in _SENTENCES.split(text.strip()):
        head = _REASON.split(sentence, maxsplit=1)[0]
        clauses = [clause for clause in _JOINERS.split(head) if clause.strip()]
        starts = [_begins(clause, settings.atomicity.verbs) for clause in clauses]
        # The first clause of a text is an instruction however it begins: "In tests, freeze the clock".
        instructions.extend(
            clause
            for at, (clause, begins) in enumerate(zip(clauses, starts, strict=True))
            if begins or (at == 0 and not instructions and not any(starts))
        )
    return instructions


def _begins(clause: str, verbs: Collection[str]) -> bool:
    words = words_of(clause)
    return bool(words) and (words[0] in verbs or words[0] in {"don't", "always"} or words[:2] in _TWO)


if TYPE_CHECKING:
    from weft.lessons.settings import LessonSettings


@dataclass(frozen=True, slots=True)
class RejectedLesson:
    """A lesson that is not taken, and why: never with its text, which may hold a secret."""

    reason: str  # short stable code: "sensitive", "never_met", "not_atomic", "injected" or "invalid"
    detail: str  # what was expected, what was found, and what to do


def problem_of(lesson: Lesson, settings: LessonSettings) -> RejectedLesson | None:
    """What keeps a lesson out: anything that must not be stored, conditions that are never met, vagueness, several
    instructions in one.
    """
    try:
        require_storable(lesson)
    except InvalidLessonError as error:
        return RejectedLesson("sensitive", str(error))
    if unmet := next(never_met(lesson.conditions), None):
        return RejectedLesson("never_met", unmet)
    measure = atomicity(lesson.content, settings)
    if measure.score < settings.atomicity.least:
        return RejectedLesson("not_atomic", f"expected one exact instruction, found: {'; '.join(measure.reasons)}")
    return None


_NO_NAME = re.compile(r"[(){}|^$,]|\.[*+]")  # of a tool: a rule of permissions, a list or a regular expression
_NO_PATTERN = re.compile(r"^[!^]|\$$|\||\.[*+]\\|[@+!?*]\(|\{\d+\.\.\d+\}")  # another language of patterns
_CHOICE = re.compile(r"\{[^{}]*,[^{}]*\}")
_NEXT_PATTERN = re.compile(r",(?:\s|[*./])")


def never_met(conditions: Conditions) -> Iterator[str]:
    """Which conditions no tool use can meet, and the form that works.

    Examples:
        >>> next(never_met(Conditions(tools=("Bash(git *)",))))
        "tool: expected the name of one tool, found 'Bash(git *)': state Bash, and git as words of the context"
    """
    for tool in conditions.tools:
        if _NO_NAME.search(tool):
            yield f"tool: expected the name of one tool, found {tool!r}: {_working_tool(tool)}"
    for file in conditions.files:
        if _NO_PATTERN.search(file) or _NEXT_PATTERN.search(_CHOICE.sub("", file)):
            yield (
                f"file: expected one pattern such as *.py, src/** or *.{{ts,tsx}}, found {file!r}: "
                "state each by itself, with * for any part of a name"
            )
        elif len(pattern_forms(file)) == 1 and _CHOICE.search(file):
            yield f"file: expected at most {MOST_FORMS} choices of braces, found {file!r}: state several patterns"
    for name in ("actions", "words"):
        for word in getattr(conditions, name):
            if not words_of(word):
                yield f"{name.removesuffix('s')}: expected a word, found {word!r}: state one that the context names"


def _working_tool(tool: str) -> str:
    globbed = re.sub(r"\.[*+]", "*", tool)
    name, *rest = [part for part in re.split(r"[(){}|^$,\s]+", globbed) if part.strip("*:")] or ["its name"]
    if "(" in tool and rest:
        return f"state {name}, and {' '.join(part.strip('*:') for part in rest)} as words of the context"
    return f"state {' and '.join([name, *rest])}" + (", each by itself" if rest else "")


_ENGLISH = IDLE | NEGATIONS | DENYING_VERBS | ABSOLUTES | CONDITIONS | ORDER | AUXILIARIES | DECIDING
_SHARE = 0.2  # of a text's words that are small ones or verbs of instructions: one in five is, of the tersest English


def in_english(text: str, settings: LessonSettings) -> bool:
    """Whether a text is English by its words; opposites are recognised in no other language (LES-13)."""
    words = [word for word in words_of(text) if word.isalpha()]
    verbs = settings.atomicity.verbs
    return sum(word in _ENGLISH or word in verbs for word in words) >= _SHARE * len(words)


def pass_gate(
    lessons: Iterable[Lesson], injected: Sequence[Lesson], settings: LessonSettings
) -> tuple[tuple[Lesson, ...], tuple[RejectedLesson, ...]]:
    """Proposals that are lessons, each once, and why the others are none."""
    texts = LessonTexts()
    passed: dict[str, Lesson] = {}
    refused: list[RejectedLesson] = []
    for lesson in lessons:
        problem = problem_of(lesson, settings)
        compared = (texts.compare(lesson, each, settings.duplicates) for each in injected)
        relations = {each.relation for each in compared if not each.rivals}
        if problem is None and relations & {TextRelation.SAME, TextRelation.PROPOSED}:
            problem = RejectedLesson(
                "injected", "expected something new, found what an injected lesson says: confirm that"
            )
        if problem is None:
            passed.setdefault(lesson.id, lesson)
        else:
            refused.append(problem)
    return tuple(passed.values()), tuple(refused)
