"""Which turns of a session belong together: a question with its answer (ING-8)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise

from weft.chunking.conversation.dialogue import TurnPlace, unindented
from weft.chunking.units.splitting import TopicRules

_ASKING_ROLES = frozenset({"user", "human", "customer", "interviewer", "question", "q"})
_QUESTION_MARKS = ("?", "？", "؟")
_SENTENCE = re.compile(r"(?<=[.!?？؟])\s+|\n+")
_PICTURE = "[shares image: "


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question with its answer, or turns that neither ask nor answer."""

    start: int  # Bytes; the exchanges of a session cover it
    end: int
    turns: tuple[int, int]  # its turns' numbers in the session, from 0, half-open
    places: tuple[TurnPlace, ...]  # its turns
    asked: str = ""  # speaker and question that stand unanswered before it: its first turn replies to them
    topic: str | None = None  # the name of a topic that begins here, "" for one without; None where none begins


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Turns between two explicit boundaries."""

    start: int  # where it begins, its marker included
    first: int  # number of its first turn
    topic: str | None
    places: list[TurnPlace] = field(default_factory=list)


def exchanges(source: bytes, places: Sequence[TurnPlace], rules: TopicRules | None) -> list[Exchange]:
    """Exchanges of a session, in order; none lies on both sides of an explicit boundary.

    Where a speaker's name is a role that asks, such as "user", an exchange runs from its turn to its next. Elsewhere it
    is what two speakers say in a row; a turn that does not ask stands alone where the next one asks.
    """
    stretches = _stretches(source, places, rules.phrases if rules else ())
    paired = [exchange for stretch in stretches for exchange in _paired(source, stretch)]
    ends = [*(exchange.start for exchange in paired[1:]), len(source)]
    return [replace(each, end=end) for each, end in zip(paired, ends, strict=True)]


def turn_text(source: bytes, place: TurnPlace) -> str:
    """What a turn says."""
    return unindented(source[place.body : place.end].decode("utf-8", "replace"))


def question_of(text: str) -> str:
    """The last sentence of a text that asks; nothing where none does.

    Examples:
        >>> question_of("I ran. How are you? And the dog? Tell me.")
        'And the dog?'
    """
    if _PICTURE in text and text.rstrip().endswith("]"):  # a picture ends it
        text = text[: text.rfind(_PICTURE)]
    questions = (each.strip() for each in reversed(_SENTENCE.split(text)) if each.rstrip().endswith(_QUESTION_MARKS))
    return next(questions, "")


def _stretches(source: bytes, places: Sequence[TurnPlace], phrases: Sequence[str]) -> list[_Stretch]:
    listed = "|".join(re.escape(phrase) for phrase in phrases)
    begins = re.compile(rf"\W*(?:{listed})\b" if listed else r"(?!)", re.IGNORECASE)
    stretches: list[_Stretch] = []
    number, marked = 0, -1
    topic: str | None = None
    for place in places:
        if place.topic is not None:
            marked, topic = (place.start if marked < 0 else marked), place.topic or topic or ""
            continue
        if marked >= 0 or not stretches or begins.match(turn_text(source, place)):
            first = 0 if not stretches else place.start
            stretches.append(_Stretch(marked if marked >= 0 else first, number, topic if marked >= 0 else ""))
            marked, topic = -1, None
        stretches[-1].places.append(place)
        number += 1
    if not stretches:
        stretches.append(_Stretch(0, 0, topic))
    return stretches


def _paired(source: bytes, stretch: _Stretch) -> list[Exchange]:
    texts = [turn_text(source, place) for place in stretch.places]
    paired: list[Exchange] = []
    for first, last in _ranges([place.speaker for place in stretch.places], texts):
        places = tuple(stretch.places[first:last])
        opening = not paired
        paired.append(
            Exchange(
                stretch.start if opening else places[0].start,
                places[-1].end if places else stretch.start,
                (stretch.first + first, stretch.first + last),
                places,
                "" if opening else _asked(stretch.places[first - 1], texts[first - 1]),
                stretch.topic if opening else None,
            )
        )
    return paired


def _asked(place: TurnPlace, text: str) -> str:
    question = question_of(text)
    return f"{place.speaker}: {question}" if question and place.speaker else question


def _ranges(speakers: Sequence[str], texts: Sequence[str]) -> list[tuple[int, int]]:
    """Half-open ranges of turns that belong together."""
    roles = [speaker.casefold() in _ASKING_ROLES for speaker in speakers]
    if any(roles) and not all(roles):
        starts = [number for number, asks in enumerate(roles) if number == 0 or (asks and not roles[number - 1])]
    else:
        starts = _turn_starts(speakers, texts)
    return list(pairwise([*starts, len(speakers)])) if starts else [(0, 0)]


def _turn_starts(speakers: Sequence[str], texts: Sequence[str]) -> list[int]:
    runs = []
    for _, run in groupby(range(len(speakers)), key=lambda number: speakers[number]):
        numbers = list(run)
        runs.append((numbers[0], any(question_of(texts[number]) for number in numbers)))
    starts, at = [], 0
    while at < len(runs):
        start, asks = runs[at]
        starts.append(start)
        alone = at + 1 == len(runs) or (not asks and runs[at + 1][1])
        at += 1 if alone else 2
    return starts
