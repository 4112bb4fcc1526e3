"""Prints what the craft of lessons does on labelled sets: on the half that it was tuned on, and on the other.

python -m tests.support.lesson_figures
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from tests.support.feedback_events import lesson_added
from tests.support.lesson_words import believed as believed_of
from tests.support.lessons import LABELLED, a_lesson, believed, labelled, lines_of, settings
from weft.consolidation.probes import BUNDLED, probes
from weft.domain.lesson import Lesson, LessonSource
from weft.domain.lesson_match import BelievedLesson
from weft.domain.ranking import Query
from weft.embedding.encoders.encoder import Encoder, load_encoder
from weft.embedding.tokens import load_token_counter
from weft.lessons.duplicates import compare_lessons
from weft.lessons.finding import ConditionIndex, ToolUse
from weft.lessons.prompt import prompt_form
from weft.lessons.reflection import EpisodeStep
from weft.retrieval.answer.lessons import LessonRetriever
from weft.wording.comparison import TextRelation


def relation(one: Lesson, other: Lesson) -> TextRelation:
    """What two lessons are to each other."""
    return compare_lessons(one, other, settings().lessons.duplicates).relation


def steps_of(episode: dict[str, Any]) -> Iterator[EpisodeStep]:
    """The steps of a labelled episode."""
    for turn in episode["turns"]:
        if "tool" in turn:
            failed, output = turn.get("failed", False), turn.get("output", "")
            yield EpisodeStep(turn["input"], "tool", turn["tool"], failed=failed, output=output)
        elif "user" in turn:
            yield EpisodeStep(turn["user"])
        else:
            yield EpisodeStep(turn["agent"], "agent")


def duplicates(records: Sequence[dict[str, Any]]) -> str:
    """Relations by label."""
    counts = Counter(
        (pair["label"], relation(a_lesson(pair["left"]), a_lesson(pair["right"])).value) for pair in records
    )
    return ", ".join(f"{label} → {found}: {count}" for (label, found), count in sorted(counts.items()))


def of_uses() -> list[BelievedLesson]:
    """All labelled lessons."""
    return [
        believed(
            a_lesson(
                each["content"],
                tools=tuple(each["tools"]),
                files=tuple(each["files"]),
                actions=tuple(each["actions"]),
                words=tuple(each["words"]),
            )
        )
        for each in [*labelled("uses", held_out=True), *labelled("uses", held_out=False)]
    ]


def free_queries(
    encoder: Encoder, asked: Sequence[dict[str, Any]], unrelated: Sequence[str]
) -> tuple[list[float], list[float], list[bool]]:
    """How lessons are found by the questions stated with them, all lessons together.

    Returns:
        Of each question 1 / place of its lesson, 0 below ten, by meaning and words, and by words alone; and of
        each unrelated one, whether nothing is shown.
    """
    lessons = [
        replace(a_lesson(each["content"], words=tuple(each["words"])), source=LessonSource.USER_CORRECTION)
        for each in asked
    ]
    beliefs, given = believed_of(lesson_added(lesson) for lesson in lessons), settings()
    beside = LessonRetriever(
        given.priors.lessons.relevance,
        most=10,
        duplicates=given.lessons.duplicates,
        embed=encoder.encode,
        everyday=probes(BUNDLED),
    )

    def shown(text: str, *, embedded: bool = True) -> list[str]:
        vector = encoder.encode([text])[0] if embedded else None
        return [chosen.match.believed.lesson.content for chosen in beside.of(Query(text=text), beliefs, vector)]

    def places(*, embedded: bool) -> list[float]:
        found = [(shown(each["query"], embedded=embedded), each["content"]) for each in asked]
        return [1.0 / (1 + some.index(content)) if content in some else 0.0 for some, content in found]

    for _ in range(len(lessons)):  # until all are embedded
        shown("")
    return places(embedded=True), places(embedded=False), [not shown(text) for text in unrelated]


def meaning(*, held_out: bool) -> str:
    """What free queries find: of the set that was tuned on, and of one about other lessons."""
    asked = lines_of("questions" if held_out else "uses")
    unrelated = lines_of("unrelated_questions") if held_out else [{"query": text} for text in unrelated_questions()]
    found, by_words, silent = free_queries(
        load_encoder(settings().embedding), asked, [each["query"] for each in unrelated]
    )
    said = f"MRR@10 {fmean(found):.3f}{_kinds(asked, found)}, by words alone {fmean(by_words):.3f}"
    return f"{said}; nothing shown for {fmean(silent):.3f} of {len(silent)} unrelated{_kinds(unrelated, silent)}"


def unrelated_questions() -> list[str]:
    """Questions about the world."""
    texts: list[str] = json.loads((LABELLED / "unrelated.json").read_text(encoding="utf-8"))
    return texts


def _kinds(asked: Sequence[dict[str, Any]], figures: Sequence[float]) -> str:
    """Means by kind of question, where there are kinds."""
    by_kind: dict[str, list[float]] = defaultdict(list)
    for each, figure in zip(asked, figures, strict=True):
        by_kind[each.get("kind", "")].append(figure)
    return "" if "" in by_kind else f" ({', '.join(f'{kind} {fmean(some):.3f}' for kind, some in by_kind.items())})"


def conditions(*, held_out: bool) -> str:
    """Recall@5 among all labelled lessons."""
    lessons = of_uses()
    index = ConditionIndex(lessons, settings().priors.lessons.relevance)
    asked = labelled("uses", held_out=held_out)
    hits = 0
    for each in asked:
        use = ToolUse(each["use"]["tool"], tuple(each["use"]["files"]), each["use"]["text"])
        hits += each["content"] in [match.believed.lesson.content for match in index.find(use, limit=5)]
    return f"recall@5 {hits}/{len(asked)} = {hits / len(asked):.3f} among {len(lessons)}"


def prompt(*, held_out: bool) -> str:
    """Tokens of the prompt form as a share of those of the same in JSON."""
    every = [believed(a_lesson(pair["left"])) for pair in labelled("pairs", held_out=held_out)]
    count_tokens = load_token_counter(settings().embedding)
    form = prompt_form(every, budget=10**6, count_tokens=count_tokens)
    facts = {"p_good": 0.8, "status": "active", "helpful": 0, "harmful": 0}
    as_json = count_tokens(json.dumps([each.lesson.as_fields() | facts for each in every]))
    return f"{form.tokens} tokens of {as_json} in JSON = {form.tokens / as_json:.3f}"


def speed() -> str:
    """Processor time of a look-up among 10,000 lessons."""
    every = labelled("uses", held_out=True)
    lessons = [
        believed(a_lesson(f"{each['content']} {at}", tools=tuple(each["tools"]), words=tuple(each["words"])))
        for at, each in enumerate(every * (10_000 // len(every) + 1))
    ][:10_000]
    index = ConditionIndex(lessons, settings().priors.lessons.relevance)
    took = []
    for each in every:
        began = time.process_time()
        index.find(ToolUse(each["use"]["tool"], tuple(each["use"]["files"]), each["use"]["text"]), limit=20)
        took.append(time.process_time() - began)
    slowest = sorted(took)[int(0.95 * len(took))]
    return f"look-up p95 {1e3 * slowest:.1f} ms among {len(lessons)}"


def main() -> None:
    """Prints every figure."""
    halves = {"tuned half": labelled("pairs", held_out=False), "other half": labelled("pairs", held_out=True)}
    for which, records in (halves | {"fresh": lines_of("fresh_pairs")}).items():
        sys.stdout.write(f"duplicates {which}: {duplicates(records)}\n")
    for of_half in (conditions, meaning, prompt):
        for held_out in (False, True):
            which = "other half" if held_out else "tuned half"
            sys.stdout.write(f"{of_half.__name__:>10} {which}: {of_half(held_out=held_out)}\n")
    sys.stdout.write(f"{'speed':>10}: {speed()}\n")


if __name__ == "__main__":
    main()
