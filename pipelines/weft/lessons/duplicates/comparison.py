"""Whether two lessons are one, said in other words (LES-13).

Vectors cannot tell: "always squash" and "never squash" lie as near as two ways to say one thing. So texts are taken
apart. Two are the same where they name the same, deny the same, and agree in numbers, flags and order. Where they
are about the same and disagree in one of these, they are in conflict. Of the rest, those that differ in what might be
another word for the same are proposed to a person.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING

from weft.domain.lesson import Conditions, Lesson, LessonId
from weft.lessons.duplicates.sentences import CLAUSES, affirmed, denials, directions, scopes, stated_order
from weft.lessons.wording import LessonWords, stem_of, words_of

if TYPE_CHECKING:
    from weft.lessons.settings import LessonSettings

_SLACK = 1e-9  # a share of words is no exact number
_NAME = re.compile(r"(?<=\s)[A-Z]\w+|\S*[_./()]\w\S*|\S*\d\S*|\w+[a-z][A-Z]\w*|\b[A-Z]{2,}\w*|`[^`]+`")
_LETTERS = re.compile(r"(?<=\s)[A-Z](?=\s|$)")  # "from A to B": the first of them tells which way

_COMMA = re.compile(r"[,;:]\s")
_PASSIVE = frozenset({"be", "been", "is", "are", "have", "has"})


class LessonRelation(StrEnum):
    """What two lessons are to each other."""

    SAME = "same"  # merged without asking
    PROPOSED = "proposed"  # a person is asked
    CONFLICT = "conflict"  # both cannot be followed: never merged, for review
    APART = "apart"


@dataclass(frozen=True, slots=True)
class Comparison:
    """How two lessons compare."""

    relation: LessonRelation
    shared: float  # share of the words of both that both name, in [0, 1] (Dice)
    reason: str  # what decided, for whoever reviews it


@dataclass(frozen=True, slots=True)
class ParsedLesson:
    """A lesson's text taken apart; made once, and compared with many."""

    stems: frozenset[str]  # of everything it names
    all_stems: frozenset[str]  # of every word
    names: frozenset[str]  # Stems that no other word stands for; units belong to their numbers
    numbers: frozenset[str]
    flags: frozenset[str]
    denies: bool  # whether the whole is denied: "never", "avoid"
    denied: frozenset[str]  # stems that are denied by contrast: "rather than", "without"
    earlier: frozenset[str]  # Stems of what is to come first, and of what is to come second, where an order is stated
    later: frozenset[str]
    directions: frozenset[tuple[str, str]]  # stems with "to" between them
    deciding: frozenset[str]  # small words that change what is said: "only" and what it is said of, "some", "may"
    neighbours: frozenset[frozenset[str]]  # pairs of stems that stand side by side in a clause
    arrangement: WordOrder  # in which order its words stand
    written: Mapping[str, str]  # by stem, the first word that has it
    conditions: Conditions


def parse_lesson(lesson: Lesson, words: LessonWords) -> ParsedLesson:
    """The text of a lesson, taken apart."""
    text = affirmed(lesson.content)
    denies, denied = denials(text, words)
    earlier, later = stated_order(text, words)
    tokens = words_of(text)
    return ParsedLesson(
        stems=frozenset(words.subject(text)),
        all_stems=frozenset(words.stem(word) for word in tokens),
        names=frozenset(words.stem(word) for name in _NAME.findall(text) for word in words_of(name)),
        numbers=words.amounts(tokens),
        flags=frozenset(words.stem(word) for word in tokens if word.startswith("-")),
        denies=denies,
        denied=denied,
        earlier=earlier,
        later=later,
        directions=frozenset(directions(tokens, words)),
        deciding=words.deciding.intersection(tokens)
        | frozenset(_LETTERS.findall(text)[:1])
        | frozenset(scopes(tokens, words)),
        neighbours=frozenset(
            frozenset(pair) for clause in CLAUSES.split(text) for pair in pairwise(words.subject(clause))
        ),
        arrangement=WordOrder.of(text, words),
        written={words.stem(word): word for word in reversed(tokens)},
        conditions=lesson.conditions,
    )


@dataclass(frozen=True, slots=True)
class LessonWording:
    """The words of a lesson's text, which tell most lessons apart before they are taken apart."""

    stems: frozenset[str]  # of everything it names
    all_stems: frozenset[str]  # of every word

    @classmethod
    def of(cls, content: str, words: LessonWords) -> LessonWording:
        """Of a text."""
        tokens = words_of(content)
        return cls(frozenset(words.naming(tokens)), frozenset(map(words.stem, tokens)))

    def may_be_about(self, other: LessonWording, words: LessonWords, least: float) -> bool:
        """Whether both may name `least` of their words, opposites with them; where not, `compare` finds them apart."""
        both = len(self.stems & other.stems)
        if 2 * both >= least * (len(self.stems) + len(other.stems)) - _SLACK:
            return True
        theirs = other.all_stems
        return any(not words.excluding(stem).isdisjoint(theirs) for stem in self.all_stems - theirs)


def compare(one: ParsedLesson, other: ParsedLesson, words: LessonWords, settings: LessonSettings) -> Comparison:
    """What two lessons are to each other; the same whichever comes first."""
    opposites = _opposites(one, other, words)
    shared = _shared(one, other, opposites)
    if shared < settings.duplicates.proposed:
        return Comparison(LessonRelation.APART, shared, "they are about other things")
    if conflict := _conflict(one, other, opposites):
        return Comparison(LessonRelation.CONFLICT, shared, conflict)
    ours, theirs = one.stems - other.stems, other.stems - one.stems
    if difference := _difference(one, other, settings):
        return Comparison(LessonRelation.APART, shared, difference)
    if ours or theirs:
        return Comparison(
            LessonRelation.PROPOSED, shared, f"one of them says more: {_listed(ours | theirs, one, other)}"
        )
    if doubt := _doubt(one, other, settings):
        return Comparison(LessonRelation.PROPOSED, shared, doubt)
    return Comparison(LessonRelation.SAME, shared, "the same words, denials, numbers and order")


class LessonTexts:
    """Texts of lessons, each taken apart once, when it is first asked for."""

    def __init__(self, words: LessonWords) -> None:
        self._words = words
        self._wordings: dict[LessonId, LessonWording] = {}
        self._parsed: dict[LessonId, ParsedLesson] = {}

    def wording(self, lesson: Lesson) -> LessonWording:
        """The words of a lesson."""
        cached = self._wordings.get(lesson.id)
        if cached is None:
            cached = self._wordings[lesson.id] = LessonWording.of(lesson.content, self._words)
        return cached

    def parsed(self, lesson: Lesson) -> ParsedLesson:
        """What a lesson says."""
        cached = self._parsed.get(lesson.id)
        if cached is None:
            cached = self._parsed[lesson.id] = parse_lesson(lesson, self._words)
        return cached


class ConflictChecker:
    """Tells which lessons cannot both be followed; each is taken apart once."""

    def __init__(self, words: LessonWords, least: float, settled: Container[frozenset[str]] = frozenset()) -> None:
        self._words, self._least, self._settled = words, least, settled
        self._texts = LessonTexts(words)

    def __call__(self, one: Lesson, other: Lesson) -> bool:
        """Whether they are about the same and contradict one another, and nobody said that both hold."""
        if frozenset({one.id, other.id}) in self._settled:
            return False
        ours, theirs = (self._texts.wording(each) for each in (one, other))
        if not ours.may_be_about(theirs, self._words, self._least):
            return False
        left, right = (self._texts.parsed(each) for each in (one, other))
        opposites = _opposites(left, right, self._words)
        return _shared(left, right, opposites) >= self._least and _conflict(left, right, opposites) is not None


def _shared(one: ParsedLesson, other: ParsedLesson, opposites: Sequence[tuple[str, str]]) -> float:
    """Share of the words of both that both name, an opposite as one of them (Dice)."""
    both = len(one.stems & other.stems) + len(opposites)
    return min(1.0, 2 * both / max(1, len(one.stems) + len(other.stems)))


def _doubt(one: ParsedLesson, other: ParsedLesson, settings: LessonSettings) -> str | None:
    """Why two lessons of the same words may yet be two."""
    if one.deciding != other.deciding:
        return f"one of them says: {_listed(one.deciding ^ other.deciding, one, other)}"
    if bool(one.later) != bool(other.later) or bool(one.directions) != bool(other.directions):
        return "one of them alone says in which order or direction"
    # "Commit often, push rarely" has the words of "push often, commit rarely".
    pairs = len(one.neighbours) + len(other.neighbours)
    if pairs and 2 * len(one.neighbours & other.neighbours) < settings.duplicates.bound * pairs:
        return "the same words stand beside others"
    if not one.arrangement.agrees(other.arrangement):
        return "the same words stand in another order"
    if _apart(one.conditions, other.conditions):
        return "the same words, under conditions that exclude each other"
    return None


def _difference(one: ParsedLesson, other: ParsedLesson, settings: LessonSettings) -> str | None:
    """What one names in the place of something else, so that the two are about different things."""
    ours, theirs = one.stems - other.stems, other.stems - one.stems
    if one.numbers != other.numbers or one.flags != other.flags:
        differing = one.numbers ^ other.numbers | one.flags ^ other.flags
        return f"numbers or flags differ: {_listed(differing, one, other)}"
    if (ours & one.names) or (theirs & other.names):
        return f"names differ: {_listed(ours | theirs, one, other)}"
    if ours and theirs and not _verbs_alone(ours, theirs, settings):
        return f"words differ: {_listed(ours, one)} and {_listed(theirs, other)}"
    return None


def _opposites(one: ParsedLesson, other: ParsedLesson, words: LessonWords) -> list[tuple[str, str]]:
    """Words of the one in whose place the other says the opposite; each counts as a thing that both are about."""
    ours, theirs = one.all_stems - other.all_stems, other.all_stems - one.all_stems
    return [(left, right) for left in sorted(ours) for right in sorted(theirs & words.excluding(left))]


def _conflict(one: ParsedLesson, other: ParsedLesson, opposites: Sequence[tuple[str, str]]) -> str | None:
    """What two lessons about the same disagree in."""
    crossed = (one.denied & (other.stems - other.denied)) | (other.denied & (one.stems - one.denied))
    # Where no other word differs, another number is another answer to the same question.
    counted = one.stems ^ other.stems <= one.numbers | other.numbers | one.flags | other.flags
    reasons = {
        f"opposites: {' and '.join(_written(opposites[0], one, other)) if opposites else ''}": bool(opposites),
        "one denies what the other says": one.denies != other.denies or bool(crossed),
        "the order is another": bool(one.later & other.earlier and one.earlier & other.later)
        or (_moved(one, other) and _moved(other, one)),
        "the direction is another": any((right, left) in other.directions for left, right in one.directions),
        "numbers or flags differ": counted and (one.numbers, one.flags) != (other.numbers, other.flags),
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def _moved(one: ParsedLesson, other: ParsedLesson) -> bool:
    """Whether what comes first in one comes second in the other, and the rest is not ordered in both."""
    there = one.earlier & other.later
    back = one.later & other.earlier
    return bool((there and not one.earlier & other.earlier) or (back and not one.later & other.later))


def _apart(one: Conditions, other: Conditions) -> bool:
    pairs = ((one.tools, other.tools), (one.files, other.files))
    return any(left and right and not set(left) & set(right) for left, right in pairs)


def _verbs_alone(ours: frozenset[str], theirs: frozenset[str], settings: LessonSettings) -> bool:
    """Whether only verbs stand for each other, which have more ways to say the same than things have."""
    verbs = {stem_of(verb) for verb in settings.atomicity.verbs}
    return ours <= verbs and theirs <= verbs


def _listed(stems: frozenset[str], *lessons: ParsedLesson) -> str:
    return ", ".join(_written(sorted(stems), *lessons))


def _written(stems: Sequence[str], *lessons: ParsedLesson) -> list[str]:
    """The words of which some stems are, as one of the lessons has them."""
    words = {stem: word for lesson in reversed(lessons) for stem, word in lesson.written.items()}
    return [words.get(stem, stem) for stem in stems]


@dataclass(frozen=True, slots=True)
class WordOrder:
    """The order of a text's stems."""

    orders: tuple[tuple[str, ...], ...]  # as they stand, and with the parts around a comma turned around
    passive: bool  # whether what is done may stand behind what it is done to

    @classmethod
    def of(cls, text: str, words: LessonWords) -> WordOrder:
        """Of a text.

        Examples:
            >>> from weft.settings import load_settings
            >>> words = LessonWords(load_settings(environment={}).lessons.words)
            >>> WordOrder.of("Before merging, squash commits", words).orders
            (('merg', 'squash', 'commit'), ('squash', 'commit', 'merg'))
        """
        parts = [(text[: comma.start()], text[comma.end() :]) for comma in _COMMA.finditer(text)]
        turned = [(*words.subject(back), *words.subject(front)) for front, back in parts]
        orders = dict.fromkeys([tuple(words.subject(text)), *turned])
        return cls(tuple(orders), not _PASSIVE.isdisjoint(words_of(text)))

    def agrees(self, other: WordOrder) -> bool:
        """Whether both order their words alike, a part in front or behind, a deed first or in the passive."""
        return any(
            ours == theirs
            or (other.passive and theirs in _deed_behind(ours))
            or (self.passive and ours in _deed_behind(theirs))
            for ours in self.orders
            for theirs in other.orders
        )


def _deed_behind(order: tuple[str, ...]) -> list[tuple[str, ...]]:
    first, rest = order[:1], order[1:]
    return [(*rest[:at], *first, *rest[at:]) for at in range(1, len(rest) + 1)]
