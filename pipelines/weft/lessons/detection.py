"""What a user says of lessons that were injected: contradiction, confirmation, failure (LES-5).

A sentence counts where it says so by an explicit phrase of the settings and names what one lesson is about, and no
other lesson as much. "You forgot the migrations" names what one lesson wants done, and nothing else. Quotations, code,
questions and conditions do not count. Precision comes before recall: more than half of what people say is missed, since
it is said in other words.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from math import log1p
from typing import TYPE_CHECKING

from weft.domain.lesson import Lesson, LessonResult
from weft.wording.lexicon import sure_stem
from weft.wording.text import Text, is_denying, named
from weft.wording.words import words_of

if TYPE_CHECKING:
    from weft.lessons.settings import LessonSettings

_QUOTED = re.compile(
    r"```.*?(?:```|\Z)"  # code
    r"|^(?: {4}|\t)\S.*$"
    r"|^\s*>.*?(?:  |$)"  # a mail that is answered
    r"|<(?P<tag>quote|blockquote|q|cite|code|pre|log|output|example)\b[^>]*>.*?(?:</(?P=tag)>|\Z)"
    r"|«[^»]*»|“[^”]*”|‘[^’]*’|\"[^\"\n]*\""
    r"|(?<![\w])'[^'\n]*\s[^'\n]*\s[^'\n]*'(?!\w)"
    r"|`[^`\n]*\s[^`\n]*\s[^`\n]*`",
    re.DOTALL | re.MULTILINE,
)
_SENTENCE = re.compile(r"[^.!?\n]*(?:[.](?=\w)[^.!?\n]*)*(?:[.!?]+(?=\s|$)|\n|$|[.!?])")
_ANAPHORA = re.compile(r"\b(?:that|this|the|your) (?:\w+ )?(?:lesson|rule|advice|instruction)\b")
_OMITTED = frozenset(map(sure_stem, ("forget", "miss", "skip", "ignore", "overlook", "fail")))
_VERB = 0.5  # what a verb tells of a lesson, beside a thing: "use" and "set" stand in every second one


@dataclass(frozen=True, slots=True)
class Injection:
    """A lesson that was shown to the agent."""

    injection_id: str
    lesson: Lesson
    turn: int = 0  # of the conversation, before which it was shown


@dataclass(frozen=True, slots=True)
class Utterance:
    """What one side said at once."""

    text: str
    by_user: bool = True


@dataclass(frozen=True, slots=True)
class Detection:
    """An outcome of one lesson, and the words that say so."""

    result: LessonResult
    injection: Injection
    turn: int  # of the conversation
    start: int  # Of the span in that turn's text, in characters
    end: int
    span: str  # the text between them
    shared: float  # share of what the lesson is about that the span names, in [0, 1]

    @property
    def outcome_id(self) -> str:
        """As the event has it: detection may run twice, and counts once (LES-7)."""
        return outcome_id(self.injection.injection_id, self.injection.lesson.id, f"detected:{self.result}")


def outcome_id(injection_id: str, lesson_id: str, rule: str) -> str:
    """32 hex digits of an injection, a lesson and the rule by which an outcome was told.

    Examples:
        >>> outcome_id("i-1", "0ccf9adef0b78896", "detected:failure")
        'd6e9c8f19785cdc745626967b02a260e'
    """
    named = "\n".join(f"{len(part)}:{part}" for part in (injection_id, lesson_id, rule))
    return hashlib.sha256(named.encode()).hexdigest()[:32]


class Detector:
    """Tells outcomes of lessons from conversations; without state, shared by threads."""

    def __init__(self, settings: LessonSettings) -> None:
        self._settings = rules = settings.detection
        self._verbs = set(map(sure_stem, settings.atomicity.verbs))
        # In this order: "that is wrong, it is not missing" contradicts.
        self._rules: Mapping[LessonResult, re.Pattern[str]] = {
            LessonResult.CONTRADICTION: _any(rules.contradiction),
            LessonResult.CONFIRMATION: _any(rules.confirmation),
            LessonResult.FAILURE: _any(rules.failure),
        }
        self._excluded = _any(rules.excluded)

    def detect(self, turns: Sequence[Utterance], injections: Sequence[Injection]) -> list[Detection]:
        """Outcomes of the injected lessons, in the order in which they were said; each once an injection and result.

        What the agent says is no outcome.
        """
        detections: dict[str, Detection] = {}
        for turn, utterance in enumerate(turns):
            latest = {each.lesson.id: each for each in injections if each.turn <= turn}
            if utterance.by_user and latest:
                before = "" if turn == 0 or turns[turn - 1].by_user else turns[turn - 1].text
                for detection in self._of_turn(utterance.text, before, turn, list(latest.values())):
                    detections.setdefault(detection.outcome_id, detection)
        return list(detections.values())

    def _of_turn(self, text: str, before: str, turn: int, injections: Sequence[Injection]) -> list[Detection]:
        subjects = _Subjects([each.lesson for each in injections], self._verbs)
        sentences = [match for match in _SENTENCE.finditer(unquoted(text)) if match.group().strip()]
        detections = []
        for sentence, behind in zip_longest(sentences, sentences[1:]):
            lowered = sentence.group().casefold().replace("’", "'").strip()
            result = next((each for each, pattern in self._rules.items() if pattern.search(lowered)), None)
            if result is None or self._excluded.search(lowered):
                continue
            places = [(sentence.group(), sentence.end())]
            if _ANAPHORA.search(lowered):
                # "That rule is outdated" is about what the sentence behind it names, or the agent's words before.
                places += [(behind.group(), behind.end())] if behind else []
                places.append((before, sentence.end()))
            nearest = self._nearest(places, subjects)
            if nearest is None and result is LessonResult.FAILURE:
                nearest = subjects.left_out(sentence.group(), sentence.end())
            if nearest is None or (result is LessonResult.FAILURE and _obeyed(injections[nearest[0]].lesson, lowered)):
                continue
            place, shared, end = nearest
            span = text[sentence.start() : end]
            start = sentence.start() + len(span) - len(span.lstrip())
            span = span.strip()
            detections.append(Detection(result, injections[place], turn, start, start + len(span), span, shared))
        return detections

    def _nearest(self, places: Iterable[tuple[str, int]], subjects: _Subjects) -> tuple[int, float, int] | None:
        """The one lesson that the first words which name any are about, how much of it they name, and their end."""
        for words, end in places:
            shares = subjects.shares(words)
            best, second = sorted([*shares, 0.0, 0.0], reverse=True)[:2]
            if best >= self._settings.least and best - second >= self._settings.margin:
                return shares.index(best), best, end
            if best > 0.0:
                return None
        return None


def _obeyed(lesson: Lesson, lowered: str) -> bool:
    """Whether what was not done is what a lesson forbids."""
    return any(map(is_denying, words_of(lesson.content))) and any(map(is_denying, words_of(lowered)))


class _Subjects:
    """What lessons are about, among each other: what all of them name tells none of them."""

    def __init__(self, lessons: Sequence[Lesson], verbs: set[str]) -> None:
        self._lessons = lessons
        self._stems = [frozenset(named(f"{lesson.content} {lesson.missed or ''}")) for lesson in lessons]
        self._weights: dict[str, float] = {}
        for stem in frozenset().union(*self._stems):
            count = sum(stem in stems for stems in self._stems)
            self._weights[stem] = log1p(len(lessons) / count) * (_VERB if stem in verbs else 1.0)

    def shares(self, sentence: str) -> list[float]:
        """By lesson, the share of its weight that a sentence names; all of it where the id is named."""
        mentioned = frozenset(named(sentence))
        if any(lesson.id in sentence for lesson in self._lessons):
            return [float(lesson.id in sentence) for lesson in self._lessons]
        return [self._weight(stems & mentioned) / (self._weight(stems) or 1.0) for stems in self._stems]

    def left_out(self, sentence: str, end: int) -> tuple[int, float, int] | None:
        """The one lesson that wants done what a sentence says was forgotten, where it names nothing else."""
        mentioned = frozenset(named(sentence))
        about = mentioned - _OMITTED
        if not about or (about == mentioned and not any(map(is_denying, words_of(sentence)))):
            return None
        texts = [Text(lesson.content) for lesson in self._lessons]
        wanting = [
            at
            for at, text in enumerate(texts)
            if about & text.objects and about <= text.objects | text.deeds and not text.denial[0]
        ]
        return (wanting[0], self.shares(sentence)[wanting[0]], end) if len(wanting) == 1 else None

    def _weight(self, stems: frozenset[str]) -> float:
        return sum(self._weights[stem] for stem in sorted(stems))


def unquoted(text: str) -> str:
    """A text with blanks in the place of what is quoted and of code; every other character keeps its place.

    Examples:
        >>> unquoted('He wrote "this is wrong" and left.')
        'He wrote                 and left.'
    """
    return _QUOTED.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def _any(patterns: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns))
