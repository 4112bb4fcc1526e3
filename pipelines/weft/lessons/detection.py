"""What a user says of lessons that were injected: contradiction, confirmation, failure (LES-5).

A sentence counts where it says so by a phrase of the settings and names what one lesson is about, and no other lesson
as much. What is quoted, code, questions, conditions and what others did is no word about a lesson. Precision comes
before recall: what is missed can be said once more, and what is wrong retires a lesson that was right.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log1p
from typing import TYPE_CHECKING

from weft.domain.lesson import Lesson, LessonResult
from weft.wording.lexicon import sure_stem
from weft.wording.text import is_denying, named
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
_ASKED = re.compile(r"(?:[\w' ]+[,.!:;]+ (?:(?:please|now|then|next|also|and) )*)(?P<verb>\w+)")
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
        self._settings = settings.detection
        self._bare = frozenset(settings.atomicity.verbs)
        self._verbs = set(map(sure_stem, settings.atomicity.verbs))
        rules = settings.detection
        # In this order: "that is wrong, it is not missing" contradicts.
        self._rules: Mapping[LessonResult, re.Pattern[str]] = {
            LessonResult.CONTRADICTION: _any(rules.contradiction),
            LessonResult.CONFIRMATION: _any(rules.confirmation),
            LessonResult.FAILURE: _any(rules.failure),
        }
        self._excluded = _any(rules.excluded)
        self._prohibitions = _any(rules.prohibitions)
        self._done = _any(rules.done)
        self._anaphora = _any(rules.anaphora)

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
        for at, sentence in enumerate(sentences):
            lowered = sentence.group().casefold().replace("’", "'").strip()
            results = [result for result, pattern in self._rules.items() if pattern.search(lowered)]
            done = self._done.search(lowered) is not None
            if self._excluded.search(lowered) or not (results or done):
                continue
            stands_for = self._anaphora.search(lowered) is not None
            behind = sentences[at + 1] if stands_for and at + 1 < len(sentences) else None
            praises = results[:1] == [LessonResult.CONFIRMATION]
            nearest = self._nearest(sentence, behind, before if stands_for else "", subjects)
            if nearest is None and praises:
                nearest = self._praised(sentence, before, subjects)
            if nearest is None:
                continue
            place, shared, end = nearest
            result = self._result(results, lowered, injections[place].lesson, done=done)
            if result is not None:
                span = text[sentence.start() : end]
                start = sentence.start() + len(span) - len(span.lstrip())
                span = span.strip()
                detection = Detection(result, injections[place], turn, start, start + len(span), span, shared)
                detections.append(detection)
        return detections

    def _result(
        self, results: Sequence[LessonResult], lowered: str, lesson: Lesson, *, done: bool
    ) -> LessonResult | None:
        """What a sentence says of a lesson; None where it says nothing of it.

        Of a lesson that forbids something, a prohibition is a reminder, what was not done is as it should be, and what
        was done is a failure.
        """
        forbids = any(map(is_denying, words_of(lesson.content)))
        result = results[0] if results else None
        asked = _ASKED.match(lowered)
        if result is LessonResult.CONFIRMATION and asked and asked["verb"] in self._bare:
            return None  # "Yes, install the packages" asks for something
        if not forbids:
            return result
        if result is LessonResult.CONTRADICTION and self._prohibitions.search(lowered):
            return None
        if result is LessonResult.CONFIRMATION or result is LessonResult.CONTRADICTION:
            return result
        denied = any(map(is_denying, words_of(lowered))) and "supposed" not in lowered
        return LessonResult.FAILURE if (done or result is not None) and not denied else None

    def _nearest(
        self, sentence: re.Match[str], behind: re.Match[str] | None, before: str, subjects: _Subjects
    ) -> tuple[int, float, int] | None:
        """The one lesson that a sentence is about, how much of it is named, and where that ends in the text.

        A sentence that names nothing of any lesson, "that rule is outdated", is about what the sentence behind it
        names, or the agent's words before.
        """
        for words, end in [
            (sentence.group(), sentence.end()),
            (behind.group() if behind else "", behind.end() if behind else 0),
            (before, sentence.end()),
        ]:
            shares = subjects.shares(words)
            best, second = sorted([*shares, 0.0, 0.0], reverse=True)[:2]
            if best >= self._settings.least and best - second >= self._settings.margin:
                return shares.index(best), best, end
            if best > 0.0:
                return None
        return None

    def _praised(self, sentence: re.Match[str], before: str, subjects: _Subjects) -> tuple[int, float, int] | None:
        """The one lesson that praise names a part of, where the agent's words before it name that one."""
        hinted, together = subjects.shares(sentence.group()), subjects.shares(f"{before}\n{sentence.group()}")
        place = hinted.index(max(hinted))
        hint, share = hinted.pop(place), together.pop(place)
        margin = self._settings.margin
        sure = hint - max(hinted, default=0.0) >= margin and share - max(together, default=0.0) >= margin
        if sure and hint >= self._settings.hint and share >= self._settings.least:
            return place, share, sentence.end()
        return None


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
