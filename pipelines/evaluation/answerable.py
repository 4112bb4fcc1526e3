"""Do probabilities hold on queries that nobody judged, and is what has no answer left unanswered? (RET-15)"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipelines.domain.matching import Match, best_match
from pipelines.domain.ranking import Answer, RankedResult
from pipelines.evaluation.beir import Qrels
from pipelines.learning.matching import Answering, MatchBins, MatchCalibration
from pipelines.learning.reliability import Predictions, Reliability, reliability

VIEWS: Mapping[str, Collection[str]] = {
    "both channels": ("meaning", "words"),
    "dense alone": ("meaning",),
    "lexical alone": ("words",),
}
"""What is known of a match over each set of channels."""


@dataclass(frozen=True, slots=True)
class Held:
    """What a calibration is worth on held-out queries.

    Attributes:
        reliability: By view, over the results shown; None where good and bad do not separate.
        from_verdicts: The same of probabilities that verdicts of readers gave, over the results as shown then.
        answered: Share of the held-out queries that count as answered.
        answered_without: The same of queries that have no answer, by where they come from.
        threshold: Nearness from which on an answer counts as one, or cosine where tokens are not kept; None without
            enough probes.
    """

    reliability: Mapping[str, Reliability | None]
    from_verdicts: Mapping[str, Reliability | None]
    answered: float
    answered_without: Mapping[str, float]
    threshold: float | None


def held(
    calibration: MatchCalibration,
    from_verdicts: MatchCalibration,
    answers: Sequence[Answer],
    qrels: Qrels,
    without: Mapping[str, Sequence[Answer]],
    *,
    bins: int,
    names: Mapping[str, Sequence[str]],
    learned: Sequence[Answer] | None = None,
) -> Held:
    """Measure a calibration on answers to queries it has not seen.

    Args:
        without: Answers to queries that have none, by where they come from.
        bins: Of equal width, for the calibration error.
        names: Ids that judgements name each content by, by its hash.
        learned: Answers to the same queries under what the readers' feedback changed; None where it changed nothing.
    """
    shown, shown_then = (
        [
            (result, _is_good(result, qrels[answer.query.query_id], names))
            for answer in some
            for result in answer.results
        ]
        for some in (answers, answers if learned is None else learned)
    )
    answering = calibration.answering
    return Held(
        {name: _reliability(calibration, shown, known, bins) for name, known in VIEWS.items()},
        {name: _reliability(from_verdicts, shown_then, known, bins) for name, known in VIEWS.items()},
        _answered(answering, answers),
        {name: _answered(answering, found) for name, found in without.items()},
        None if answering is None else answering.meaning if answering.near is None else answering.near,
    )


def judged_bins(answers: Sequence[Answer], qrels: Qrels, names: Mapping[str, Sequence[str]]) -> MatchBins:
    """What judgements say about everything that was shown: no reader stopped before the end of a page."""
    shown = [
        (result.match, _is_good(result, qrels[answer.query.query_id], names))
        for answer in answers
        for result in answer.results
        if result.match is not None
    ]
    unknown = float("nan")
    matches = [[unknown if value is None else value for value in (match.meaning, match.words)] for match, _ in shown]
    good = np.array([is_good for _, is_good in shown], dtype=np.float64)
    return MatchBins(np.array(matches, dtype=np.float64).reshape(-1, 2), good, 1.0 - good, np.ones_like(good))


def _is_good(result: RankedResult, grades: Mapping[str, int], names: Mapping[str, Sequence[str]]) -> bool:
    return any(grades.get(name, 0) > 0 for name in names[result.content_hash])


def _reliability(
    calibration: MatchCalibration, shown: Sequence[tuple[RankedResult, bool]], known: Collection[str], bins: int
) -> Reliability | None:
    chances = [calibration.probability(_seen(result.match, known)) for result, _ in shown]
    if any(chance is None for chance in chances):
        return None
    good = np.array([is_good for _, is_good in shown], dtype=np.float64)
    return reliability(Predictions(np.array(chances, dtype=np.float64), good, 1.0 - good), bins=bins)


def _seen(match: Match | None, known: Collection[str]) -> Match | None:
    if match is None:
        return None
    return Match(meaning=match.meaning if "meaning" in known else None, words=match.words if "words" in known else None)


def _answered(answering: Answering | None, answers: Sequence[Answer]) -> float:
    if answering is None:
        return 1.0 if answers else 0.0
    best = [best_match(result.match for result in answer.results) if answer.results else None for answer in answers]
    compared = [answering.compared(match) for match in best]
    passed = [each is not None and each[0] > each[1] for each in compared]
    return float(np.mean(passed)) if passed else 0.0
