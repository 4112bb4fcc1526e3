"""Do probabilities hold on queries that nobody judged, and is what has no answer left unanswered? (RET-15)"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from weft.domain.matching import MatchFeatures, best_match
from weft.domain.ranking import Answer, RankedResult
from weft.evaluation.measures.beir import Qrels
from weft.learning.calibration.matching import Answering, MatchBins, MatchCalibration
from weft.learning.calibration.reliability import Predictions, Reliability, error_by_chance, reliability
from weft.learning.observe.matches import MEASURED, MEASURES
from weft.learning.parameters import RELEVANCE_BINS

_DRAWS = 400  # of signs: the error by chance is known to within a hundredth of itself


@dataclass(frozen=True, slots=True)
class ProbabilityQuality:
    """How far probabilities of results can be relied on."""

    reliability: Reliability
    chance: float  # the calibration error that a curve which is right would be measured to have on so few queries

    @property
    def ece(self) -> float:
        """Expected calibration error."""
        return self.reliability.ece


@dataclass(frozen=True, slots=True)
class ProbabilityReport:
    """What a calibration is worth on held-out queries."""

    # by way to search, over the results shown; None where good and bad do not separate
    from_judgements: Mapping[str, ProbabilityQuality | None]
    from_verdicts: Mapping[str, ProbabilityQuality | None]  # the same of probabilities that verdicts of readers gave
    # by way to search, by how much at most the probability of a result is another than in the first way, where
    # that shows it, too
    moved: Mapping[str, float]
    answered: float  # share of the held-out queries that count as answered
    answered_without: Mapping[str, float]  # the same of queries that have no answer, by where they come from
    # nearness from which on an answer counts as one, or cosine where tokens are not kept; None without enough
    # probes
    threshold: float | None


def probability_report(
    calibration: MatchCalibration,
    from_verdicts: MatchCalibration,
    answers: Mapping[str, Sequence[Answer]],  # to the same queries, by way to search; the first is as it should be
    qrels: Qrels,
    without: Mapping[str, Sequence[Answer]],  # answers to queries that have none, by where they come from
    *,
    names: Mapping[str, Sequence[str]],  # ids that judgements name each content by, by its hash
) -> ProbabilityReport:
    """Measure a calibration on answers to queries it has not seen."""
    shown = {name: _shown(some, qrels, names) for name, some in answers.items()}
    first, answering = next(iter(answers)), calibration.answering
    return ProbabilityReport(
        {name: _worth(calibration, some) for name, some in shown.items()},
        {name: _worth(from_verdicts, some) for name, some in shown.items()},
        {name: _moved(from_verdicts, shown[first], some) for name, some in shown.items()},
        _answered(answering, answers[first]),
        {name: _answered(answering, some) for name, some in without.items()},
        None if answering is None else answering.meaning if answering.near is None else answering.near,
    )


def judged_bins(answers: Sequence[Answer], qrels: Qrels, names: Mapping[str, Sequence[str]]) -> MatchBins:
    """What judgements say about everything that was shown: no reader stopped before the end of a page."""
    shown = [each for each in _shown(answers, qrels, names) if each.match is not None]
    measured = [[getattr(each.match, name) for name in MEASURED] for each in shown]
    matches = [[float("nan") if value is None else value for value in values] for values in measured]
    good = np.array([each.good for each in shown], dtype=np.float64)
    return MatchBins.of_shown(np.array(matches, dtype=np.float64).reshape(-1, MEASURES), good, 1.0 - good)


def _is_good(result: RankedResult, grades: Mapping[str, int], names: Mapping[str, Sequence[str]]) -> bool:
    return any(grades.get(name, 0) > 0 for name in names[result.content_hash])


class _Shown(NamedTuple):
    """One result: the place of its query, what it is, how well it matches, and whether it is good."""

    query: int
    content: str
    match: MatchFeatures | None
    good: bool


def _shown(answers: Sequence[Answer], qrels: Qrels, names: Mapping[str, Sequence[str]]) -> list[_Shown]:
    return [
        _Shown(place, str(result.content_hash), result.match, _is_good(result, qrels[answer.query.query_id], names))
        for place, answer in enumerate(answers)
        for result in answer.results
    ]


def _moved(calibration: MatchCalibration, first: Sequence[_Shown], other: Sequence[_Shown]) -> float:
    earlier = {(each.query, each.content): calibration.probability(each.match) for each in first}
    both = [(earlier.get((each.query, each.content)), calibration.probability(each.match)) for each in other]
    return max((abs(was - now) for was, now in both if was is not None and now is not None), default=0.0)


def _worth(calibration: MatchCalibration, shown: Sequence[_Shown]) -> ProbabilityQuality | None:
    chances = [calibration.probability(each.match) for each in shown]
    if any(chance is None for chance in chances):
        return None
    good = np.array([each.good for each in shown], dtype=np.float64)
    predictions = Predictions(np.array(chances, dtype=np.float64), good, 1.0 - good)
    queries = np.array([each.query for each in shown], dtype=np.int64)
    by_chance = error_by_chance(predictions, queries, bins=RELEVANCE_BINS, draws=_DRAWS, rng=np.random.default_rng(0))
    return ProbabilityQuality(reliability(predictions, bins=RELEVANCE_BINS), by_chance)


def _answered(answering: Answering | None, answers: Sequence[Answer]) -> float:
    if answering is None:
        return 1.0 if answers else 0.0
    best = [best_match(result.match for result in answer.results) if answer.results else None for answer in answers]
    compared = [answering.compared(match) for match in best]
    passed = [each is not None and each[0] > each[1] for each in compared]
    return float(np.mean(passed)) if passed else 0.0
