"""What is heard and compared, measured on labelled texts: `weft evaluate --lessons DIR` (LES-5, LES-6, LES-13).

The folder holds some of `outcome_turns.jsonl`, `episodes.jsonl` and `lesson_pairs.jsonl`:

    {"injected": [{"id", "content"}], "turns": [{"role", "text"}], "label": [{"lesson", "outcome"}]}
    {"transcript": [{"role", "text"}], "lesson": {"content"} or null, "must_not_contain": [secret]}
    {"a", "b", "label": "same", "opposite", "related" or "unrelated"}

Roles are user, assistant, tool and system; what a system line shows as "[id] text" was injected.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from weft.app.lessons.hearing import lesson_vectors, load_hearing
from weft.domain.errors import InvalidLessonError, ModelUnavailableError, SourceError
from weft.domain.lesson import Lesson, LessonResult
from weft.embedding.text_states import load_text_states
from weft.lessons.duplicates import DuplicateIndex
from weft.lessons.hearing import Hearing, Injection, Utterance
from weft.lessons.reflection import EpisodeStep, HearingReflector
from weft.settings import Settings
from weft.wording.comparison import TextRelation

OUTCOMES, EPISODES, PAIRS = "outcome_turns.jsonl", "episodes.jsonl", "lesson_pairs.jsonl"
_SIGNS = {
    LessonResult.CONFIRMATION: 1,
    LessonResult.SUCCESS: 1,
    LessonResult.CONTRADICTION: -1,
    LessonResult.FAILURE: -1,
}
_SPEAKERS = {"user": "user", "assistant": "agent", "tool": "tool"}
_SHOWN = re.compile(r"\[[\w.-]+\]\s*(?P<lesson>[^\n]+)")
_LONGEST = 60  # tokens of a proposal that are compared
NEAR = 0.6
"""Cosine from which on a proposal means the lesson that was to be learned."""

Figures = Mapping[str, Mapping[str, float]]
"""By what was measured, the counts and shares by their names."""


def measured(folder: Path, settings: Settings) -> Figures:
    """The figures of every file that is there.

    Raises:
        SourceError: There is none, or a line is none.
        ModelUnavailableError: This machine lacks the bundled encoder.
    """
    hearing = load_hearing(settings)
    if hearing is None:
        raise ModelUnavailableError("expected the bundled encoder, found none: pip install 'weft-retrieval[index]'")
    read = {name: list(_records(folder / name)) for name in (OUTCOMES, EPISODES, PAIRS) if (folder / name).is_file()}
    if not read:
        raise SourceError(f"{folder}: expected {OUTCOMES}, {EPISODES} or {PAIRS}, found none: name another folder")
    figures: dict[str, Mapping[str, float]] = {}
    try:
        if OUTCOMES in read:
            figures["outcomes"] = _outcomes(read[OUTCOMES], hearing)
        if EPISODES in read:
            figures["episodes"] = _episodes(read[EPISODES], hearing, settings)
        if PAIRS in read:
            figures["pairs"] = _pairs(read[PAIRS], settings)
    except (KeyError, TypeError, AttributeError) as error:
        raise SourceError(f"{folder}: expected the fields that the documentation names, found no {error}") from error
    return figures


def _records(path: Path) -> Iterator[Mapping[str, Any]]:
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        if line.strip():
            try:
                yield json.loads(line)
            except ValueError as error:
                raise SourceError(f"{path}:{number}: expected a JSON object, found {error}") from error


def _utterances(turns: Sequence[Mapping[str, str]]) -> list[Utterance]:
    return [
        Utterance(each["text"] if each["role"] in _SPEAKERS else "", _SPEAKERS.get(each["role"], "tool"))
        for each in turns
    ]


def _outcomes(records: Sequence[Mapping[str, Any]], hearing: Hearing) -> Mapping[str, float]:
    """Of each lesson the surest outcome that was heard, against the one that was stated."""
    wanted = detected = signs = exact = 0
    for record in records:
        injections = [Injection(each["id"], _lesson(each["content"])) for each in record["injected"]]
        surest = {}
        for each in sorted(hearing.outcomes(_utterances(record["turns"]), injections), key=lambda each: each.sure):
            surest[each.injection.injection_id] = each.result
        for label in record["label"]:
            stated = None if label["outcome"] == "none" else LessonResult(label["outcome"])
            result = surest.get(label["lesson"])
            wanted += stated is not None
            detected += result is not None
            signs += result is not None and stated is not None and _SIGNS[result] == _SIGNS[stated]
            exact += result is not None and result is stated
    return {
        "stated": wanted,
        "heard": detected,
        "recall_by_sign": signs / max(1, wanted),
        "precision_by_sign": signs / max(1, detected),
        "recall_exact": exact / max(1, wanted),
    }


def _episodes(records: Sequence[Mapping[str, Any]], hearing: Hearing, settings: Settings) -> Mapping[str, float]:
    """Episodes of which a lesson is proposed; of those that teach one also where a proposal means it."""
    reflector, reader = HearingReflector(hearing, settings.lessons), load_text_states(settings.embedding)
    counts: Counter[str] = Counter()
    for record in records:
        turns = record["transcript"]
        steps = [
            EpisodeStep(each.text if each.speaker != "tool" else "", each.speaker, output=each.text)
            for each in _utterances(turns)
        ]
        shown = [
            match["lesson"] for each in turns if each["role"] == "system" for match in _SHOWN.finditer(each["text"])
        ]
        candidates = reflector.reflect(steps, [_lesson(each) for each in shown])
        stored = "".join(each.to_json() for each in candidates.proposals) + repr(candidates.refusals)
        counts["secrets"] += len(record.get("must_not_contain") or ())
        counts["secrets_stored"] += sum(each in stored for each in record.get("must_not_contain") or ())
        if record["lesson"] is None:
            counts["teach_nothing"] += 1
            counts["proposed_falsely"] += bool(candidates.proposals)
            continue
        meant = reader(record["lesson"]["content"], _LONGEST).vector
        counts["teach"] += 1
        counts["proposed"] += bool(candidates.proposals)
        counts["proposed_alike"] += any(
            float(reader(each.content, _LONGEST).vector @ meant) >= NEAR for each in candidates.proposals
        )
    names = ("teach", "proposed", "proposed_alike", "teach_nothing", "proposed_falsely", "secrets", "secrets_stored")
    return {name: counts[name] for name in names}


def _pairs(records: Sequence[Mapping[str, Any]], settings: Settings) -> Mapping[str, float]:
    """Of the pairs under each label, the shares that are merged, proposed to a person, or called a contradiction."""
    embed, counts = lesson_vectors(settings), Counter[tuple[str, str]]()
    for record in records:
        index = DuplicateIndex(settings.lessons.duplicates, embed)
        for text in (record["a"], record["b"]):
            index.add(_lesson(text))
        relation = next((comparison.relation for _, _, comparison in index.pairs()), TextRelation.OTHER)
        counts[record["label"], relation.value] += 1
    totals = Counter(record["label"] for record in records)
    names = {TextRelation.SAME: "merged", TextRelation.PROPOSED: "proposed", TextRelation.OPPOSITE: "contradict"}
    return {
        f"{label}_{name}": counts[label, relation.value] / totals[label]
        for label in sorted(totals)
        for relation, name in names.items()
    }


def _lesson(content: str) -> Lesson:
    try:
        return Lesson(section="general", content=" ".join(content.split()))
    except InvalidLessonError as error:
        raise SourceError(f"expected the text of a lesson, found {content[:80]!r}: {error}") from error
