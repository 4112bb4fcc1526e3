"""Lessons as an agent reads them: by section, best first, within a budget of tokens (LES-9)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from weft.domain.lesson import LessonId
from weft.domain.lesson_match import BelievedLesson

TokenCounter = Callable[[str], int]

MOST_LESSONS = 20
"""Looked at for one use: more than fit into the budget."""

_PIECES = re.compile(r"[A-Za-z]+|[0-9]|[^\sA-Za-z0-9]")
_LETTERS = 4


@dataclass(frozen=True, slots=True)
class PromptForm:
    """What goes into the context."""

    text: str  # empty where nothing fits
    shown: tuple[LessonId, ...]  # ids of the lessons in it, best first
    tokens: int  # length of the text by the counter it was made with; at most the budget


def line_of(believed: BelievedLesson) -> str:
    """One lesson: ✓ did more good than harm, ✗ more harm, ○ as much of both, or nothing yet.

    Examples:
        >>> from weft.domain.lesson import Lesson, LessonResult, LessonStatus
        >>> lesson = Lesson(section="git", content="Sign every commit")
        >>> line_of(BelievedLesson(lesson=lesson, p_good=0.8, lower=0.6, upper=0.9, status=LessonStatus.ACTIVE,
        ...                        counts={LessonResult.SUCCESS: 3}))
        '✓ [b3d49fccdfe2bce1] Sign every commit (+3/−0)'
    """
    net = believed.helpful - believed.harmful
    mark = "✓" if net > 0 else "✗" if net < 0 else "○"
    return f"{mark} [{believed.lesson.id}] {believed.lesson.content} (+{believed.helpful}/−{believed.harmful})"


def prompt_form(lessons: Sequence[BelievedLesson], *, budget: int, count_tokens: TokenCounter) -> PromptForm:
    """The lessons that fit, best first, under the heading of their section; sections in the order of their best.

    A lesson too long for what is left is passed over, and shorter ones behind it may still fit.
    """
    chosen: list[BelievedLesson] = []
    text, tokens = "", 0
    for believed in lessons:
        # What stands is counted whole: how pieces join may cost a token or save one.
        with_it = _written([*chosen, believed])
        if (length := count_tokens(with_it)) <= budget:
            chosen.append(believed)
            text, tokens = with_it, length
    return PromptForm(text, tuple(believed.lesson.id for believed in chosen), tokens)


def estimated_tokens(text: str) -> int:
    """Tokens of a text where no tokenizer is at hand: one for each sign, digit and four letters begun.

    Examples:
        >>> estimated_tokens("Run the migrations first.")
        8
    """
    return sum(-(-len(piece) // _LETTERS) for piece in _PIECES.findall(text))


def _written(lessons: Iterable[BelievedLesson]) -> str:
    sections: dict[str, list[str]] = {}
    for believed in lessons:
        sections.setdefault(believed.lesson.section, []).append(line_of(believed))
    return "\n".join(f"## {section}\n" + "\n".join(lines) for section, lines in sections.items())
