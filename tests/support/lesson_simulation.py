"""Lessons whose true rates are known, and what is believed of them outcome by outcome (LES-4).

python -m tests.support.lesson_simulation
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from tests.support.feedback_events import SETTINGS
from tests.support.lesson_words import TODAY, believed
from weft.domain.lesson import Lesson, LessonPriority, LessonResult, LessonSource, LessonStatus
from weft.learning.evidence import MICRO, Evidence
from weft.learning.lessons.beliefs import STATUSES
from weft.learning.lessons.rows import outcome_bin, statement_bin
from weft.learning.uses import UsageKey

PRIOR = SETTINGS.priors.lessons
PEOPLE = 20
A_DAY = 2
"""Outcomes of one lesson, each by another person."""

World = Callable[[random.Random, LessonSource], float]
"""Draws how often a lesson of a source is right."""


def _as_stated(rng: random.Random, source: LessonSource) -> float:
    mean = PRIOR.sources[source]
    return rng.betavariate(PRIOR.strength * mean, PRIOR.strength * (1.0 - mean))


WORLDS: dict[str, World] = {
    "as stated": _as_stated,
    "any rate": lambda rng, _: rng.random(),
    "mostly good": lambda rng, _: rng.betavariate(8.0, 2.0),
    "good or bad": lambda rng, _: 0.9 if rng.random() < 0.7 else 0.2,
}


@dataclass(frozen=True)
class AlarmInput:
    """Of one lesson: its true rate, and by outcomes seen P(good) and its status."""

    rate: float
    p_good: Sequence[float]
    status: Sequence[LessonStatus]

    def first(self, *wanted: LessonStatus) -> int | None:
        """After how many outcomes it first had one of some statuses; None where it never had."""
        return next((seen for seen, status in enumerate(self.status) if status in wanted), None)


def watched(world: World, *, lessons: int, outcomes: int, seed: int) -> list[AlarmInput]:
    """Lessons of all sources, read after each of so many outcomes; what is dormant or retired has outcomes, too."""
    rng = random.Random(seed)
    named, rates = [], []
    usage: dict[UsageKey, int] = {}
    start = TODAY - outcomes // A_DAY
    for number in range(lessons):
        lesson = Lesson(section="s", content=f"Do {number}", source=rng.choice(list(LessonSource)))
        named.append(lesson)
        rates.append(world(rng, lesson.source))
        usage[UsageKey(start, lesson.id, statement_bin(lesson.source, LessonPriority.MEDIUM), "ada")] = MICRO
    read: list[list[tuple[float, LessonStatus]]] = [[] for _ in named]
    for seen in range(outcomes + 1):
        day = start + seen // A_DAY
        beliefs = believed(Evidence(usage=usage), today=day)
        for number, lesson in enumerate(named):
            place = beliefs.counts.place[lesson.id]
            p_good = beliefs.believed_share(lesson.id).mean
            read[number].append((p_good, STATUSES[beliefs.status[place]]))
            result = LessonResult.SUCCESS if rng.random() < rates[number] else LessonResult.FAILURE
            key = UsageKey(day, lesson.id, outcome_bin(result, "report"), f"p{(number + seen) % PEOPLE}")
            usage[key] = usage.get(key, 0) + MICRO
    return [AlarmInput(rate, *map(list, zip(*each, strict=True))) for rate, each in zip(rates, read, strict=True)]


def deviation(pairs: Sequence[tuple[float, float]], bands: int = 10) -> float:
    """The mean distance, by band of what was said, between it and what was true; bands weigh by what is in them."""
    held: list[list[tuple[float, float]]] = [[] for _ in range(bands)]
    for said, true in pairs:
        held[min(bands - 1, int(said * bands))].append((said, true))
    return sum(abs(sum(said - true for said, true in band)) for band in held) / len(pairs)


def calibrated(some: Sequence[AlarmInput], *, least: int) -> float:
    """Mean deviation of P(good) by band from so many outcomes on."""
    return deviation([(each.p_good[seen], each.rate) for each in some for seen in range(least, len(each.p_good))])


@dataclass(frozen=True)
class Retirement:
    """Of lessons of one rate: the share ever retired, and after how many outcomes, as the median; None of none."""

    share: float
    after: float | None


def retirement(rate: float, *, lessons: int, outcomes: int, seed: int) -> Retirement:
    """What becomes of lessons that are right so often, among others of which as many are right .8 of the time.

    Sources are learned: alone, lessons of one rate would say that all others are as they are.
    """
    mixed = watched(
        lambda rng, _: rate if rng.random() < 0.5 else 0.8, lessons=2 * lessons, outcomes=outcomes, seed=seed
    )
    ends = [each.first(LessonStatus.RETIRED) for each in mixed if each.rate == rate]
    retired = [end for end in ends if end is not None]
    return Retirement(len(retired) / len(ends), median(retired) if retired else None)


def main() -> None:
    """Prints every figure."""
    for name, world in WORLDS.items():
        runs = [calibrated(watched(world, lessons=1_000, outcomes=40, seed=seed), least=20) for seed in range(3)]
        sys.stdout.write(f"{name:>12}: mean deviation by band {fmean(runs):.3f}\n")
    for rate in (0.1, 0.2, 0.3, 0.8, 0.9):
        found = retirement(rate, lessons=1_000, outcomes=40, seed=1)
        sys.stdout.write(f"right {rate:.1f} of the time: {found.share:.3f} retired, median after {found.after}\n")


if __name__ == "__main__":
    main()
