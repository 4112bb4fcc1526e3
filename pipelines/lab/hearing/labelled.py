"""Labelled turns by manner of speaking, and the examples that heads are trained on.

A line of `turns/<manner>.jsonl`: `lessons` that were injected, `turns` of [role, text], `outcomes` of each lesson, null
or [outcome, turn, words that say so], and `teaches`, null, [turn, words that teach, kind, a good wording], or
"unlabelled".
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft.domain.texts import ReadText
from weft.lessons.hearing import OUTCOMES, FeatureReader, SpokenTurn, Utterance, turns_of

TURNS = Path(__file__).parent / "turns"
_SPEAKERS = {"user": "user", "assistant": "agent", "tool": "tool"}
_KINDS = {"rule": 1, "correction": 2, "repeated": 2, "inference": 3}  # in the order of `TEACHINGS`
_ELSEWHERE = 0.5  # share of what is said of a lesson that is shown with another one
_SILENT = 3  # turns of a conversation that say nothing, beside its last one, which are enough


@dataclass(frozen=True, slots=True)
class LabelledTurn:
    """What a head reads, and what it is to say."""

    manner: str
    texts: Sequence[ReadText]
    facts: Sequence[float]
    label: int  # its place in `OUTCOMES`, or in `TEACHINGS`


def manners() -> Sequence[str]:
    """The manners of the labelled set."""
    return sorted(path.stem for path in TURNS.glob("*.jsonl"))


def rows_of(manner: str) -> Iterator[Mapping[str, Any]]:
    """The labelled conversations of one manner."""
    with (TURNS / f"{manner}.jsonl").open(encoding="utf-8", newline="\n") as lines:
        yield from map(json.loads, lines)


def utterances_of(turns: Sequence[Sequence[str]]) -> list[Utterance]:
    """What was said; what a system states is said by nobody."""
    return [Utterance(text if role in _SPEAKERS else "", _SPEAKERS.get(role, "tool")) for role, text in turns]


def outcome_examples(reading: FeatureReader, rng: random.Random) -> Iterator[LabelledTurn]:
    """Of each lesson the turn that says what came of it, and some that do not.

    What is said of one lesson says nothing of another one, which half of what is said is shown with, too.
    """
    for manner in manners():
        rows = list(rows_of(manner))
        drawn = [lesson for row in rows for lesson in row["lessons"]]
        for row in rows:
            turns = list(turns_of(utterances_of(row["turns"])))
            at_places = {turn.place: turn for turn in turns}
            for lesson, outcome in zip(row["lessons"], row["outcomes"], strict=True):
                others = [each for each in row["lessons"] if each != lesson]
                at = None if outcome is None else outcome[1]
                for turn in _some(turns, at, rng):
                    label = 0 if turn.place != at else [each and each.value for each in OUTCOMES].index(outcome[0])
                    yield LabelledTurn(manner, *reading.of_lesson(turn, turn.spoken, lesson, others), label)
                if at in at_places and rng.random() < _ELSEWHERE and (other := rng.choice(drawn)) not in row["lessons"]:
                    turn = at_places[at]
                    yield LabelledTurn(manner, *reading.of_lesson(turn, turn.spoken, other, ()), 0)


def teaching_examples(reading: FeatureReader, rng: random.Random) -> Iterator[LabelledTurn]:
    """The turn of each conversation that teaches, and some that do not."""
    for manner in manners():
        for row in (row for row in rows_of(manner) if row["teaches"] != "unlabelled"):
            turns = list(turns_of(utterances_of(row["turns"])))
            at, _, kind, _ = row["teaches"] or (None, "", "", "")
            for turn in _some(turns, at, rng):
                label = _KINDS[kind] if turn.place == at else 0
                yield LabelledTurn(manner, *reading.of_turn(turn, turn.spoken), label)


def _some(turns: Sequence[SpokenTurn], wanted: int | None, rng: random.Random) -> Iterator[SpokenTurn]:
    """The wanted turn, the last one, and a few of the others."""
    silent = [turn for turn in turns[:-1] if turn.place not in {wanted, 0}]
    yield from (turn for turn in turns if turn.place == wanted or turn is turns[-1])
    yield from rng.sample(silent, min(_SILENT, len(silent)))
