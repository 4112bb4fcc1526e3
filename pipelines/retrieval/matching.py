"""How likely each result is to be good, and whether any is likely enough to be an answer (RET-15)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from pipelines.domain.matching import EvidenceGap, Match
from pipelines.domain.ranking import Channel, RankedResult
from pipelines.learning.matching import MatchCalibration
from pipelines.retrieval.candidates import Candidate
from pipelines.retrieval.ports import Calibration

UNLEARNED = "no calibration has been learned yet: there were too few verdicts on results"
INSEPARABLE = "good and bad results do not separate by how well they match the query over these channels"


def match_of(candidate: Candidate, channels: Collection[Channel], text: str) -> Match:
    """How well a candidate matches, on scales that nothing else found moves.

    Args:
        channels: Those that answered.
        text: The query as the channels saw it.
    """
    meaning = words = None
    if Channel.DENSE in channels:
        meaning = min(1.0, max(0.0, candidate.scores.get(Channel.DENSE, 0.0)))
    if Channel.LEXICAL in channels:
        score = max(0.0, candidate.scores.get(Channel.LEXICAL, 0.0))
        words = score / (score + max(1, len(text.split())))
    return Match(meaning=meaning, words=words)


def with_matches(results: Sequence[RankedResult], matches: Sequence[Match]) -> tuple[RankedResult, ...]:
    """Each result with its match."""
    return tuple(replace(result, match=match) for result, match in zip(results, matches, strict=True))


def judged(results: Sequence[RankedResult], calibration: Calibration | None) -> tuple[RankedResult, ...]:
    """The results with their probabilities, where verdicts say how matches turn out; without any where not."""
    if calibration is None or (curves := calibration.match) is None:
        return tuple(results)
    return tuple(_judged(result, curves) for result in results)


def doubtful(match: Match, calibration: Calibration | None) -> bool:
    """Whether a match is not likely enough to be an answer; False also where that cannot be told."""
    curves = None if calibration is None else calibration.match
    return curves is not None and _below(curves.probability(match), curves)


def _judged(result: RankedResult, curves: MatchCalibration) -> RankedResult:
    probability = curves.probability(result.match)
    return replace(result, probability=probability, doubtful=_below(probability, curves))


def _below(probability: float | None, curves: MatchCalibration) -> bool:
    return curves.answering is not None and probability is not None and probability <= curves.answering.threshold


def gap_in(results: Sequence[RankedResult], calibration: Calibration | None) -> EvidenceGap | None:
    """Set where no result is likely enough to be an answer; None also where that cannot be told."""
    answering = None if calibration is None or calibration.match is None else calibration.match.answering
    if answering is None or any(result.probability is None for result in results):
        return None
    best = max((result.probability or 0.0 for result in results), default=0.0)
    return EvidenceGap(best, answering.threshold, answering.bound) if best <= answering.threshold else None


def uncalibrated(results: Sequence[RankedResult], calibration: Calibration | None) -> str:
    """Why results carry no probability; empty where they do, or where there are none."""
    if not results or any(result.probability is not None for result in results):
        return ""
    return UNLEARNED if calibration is None or calibration.match is None else INSEPARABLE
