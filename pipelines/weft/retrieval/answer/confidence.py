"""How sure an answer is: of each result, of their order, and of there being one at all (RET-15, RET-18)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from msgspec import structs

from weft.domain.arrays import Flags, Floats, Ints
from weft.domain.documents import Domain
from weft.domain.matching import NO_MATCH, Coverage, EvidenceGap, MatchFeatures, best_match
from weft.domain.ranking import RankedResult
from weft.learning.calibration.matching import Answering
from weft.learning.calibration.scores import ScoreCalibration
from weft.retrieval.ranking.batch import SIGNALS, RankingBatch
from weft.retrieval.ranking.context import WeightDraws
from weft.retrieval.snapshot.documents import DOMAINS

UNLEARNED = "no calibration has been learned yet: there were too few verdicts on results"
INSEPARABLE = "good and bad results do not separate by how well they match the query over these channels"

_DRAWN = 6  # bytes of a digest that are a draw in [0, 1): a float holds them exactly


def chance(match: MatchFeatures, calibration: ScoreCalibration | None) -> float | None:
    """P(good) of a match, where verdicts say how matches turn out; None where not, and where they do not separate."""
    curves = None if calibration is None else calibration.match
    return None if curves is None else curves.probability(match)


def with_verdict_request(results: Sequence[RankedResult], query_id: str, chance: float) -> tuple[RankedResult, ...]:
    """The results, one of which a verdict is asked for now and then, whatever it is and wherever it stands.

    People judge what they came to: further up, and where nothing above was good enough. Who is asked about a result
    drawn at random speaks for all that is shown. The draw is the query's own, so that an answer repeats to the bit.
    Where the same was asked before, what came of it brought the right results here, and how well they match says less:
    nobody is asked.
    """
    if not results or not chance:
        return tuple(results)
    each = min(chance, 1.0 / len(results))
    digest = hashlib.sha256(f"ask:{query_id}".encode("utf-8", "surrogatepass")).digest()
    asked = int(int.from_bytes(digest[:_DRAWN], "big") / 256**_DRAWN / each)
    if asked >= len(results) or any(result.precedent is not None for result in results):
        return tuple(results)
    return tuple(structs.replace(result, asked=each) if at == asked else result for at, result in enumerate(results))


ActingThreshold = Callable[[Domain], float | None]
"""From reviews of a domain, the confidence from which on to act; None where there are none (LRN-7)."""


def reviewed(results: Sequence[RankedResult], threshold: ActingThreshold) -> tuple[RankedResult, ...]:
    """The results, those in doubt on which reviews of their domain would not have one act."""
    return tuple(
        structs.replace(result, doubtful=True) if _below(result, threshold(result.domain)) else result
        for result in results
    )


def doubtful_gap(results: Sequence[RankedResult], threshold: ActingThreshold) -> EvidenceGap | None:
    """Set where reviews would have one act on none of the results: the surest of them, and what it would take."""
    asked = [(result.confidence, threshold(result.domain)) for result in results]
    below = [(confidence, least) for confidence, least in asked if least is not None and confidence < least]
    return EvidenceGap(*max(below), None) if below and len(below) == len(asked) else None


def _below(result: RankedResult, least: float | None) -> bool:
    return least is not None and result.confidence < least


CoverageFunction = Callable[[Sequence[RankedResult]], Coverage]
"""How much of a query some results say."""


def answered(results: Sequence[RankedResult], answering: Answering | None, coverage: CoverageFunction) -> Answered:
    """P(answered), and the gap where that is low, or where no result is a good enough match to be an answer."""
    if answering is None:
        return Answered(None, None)
    match = best_match(result.match for result in results) if results else NO_MATCH
    curve = answering.curve
    asked = None if curve is None else answering.asked(match, coverage(results))
    if curve is not None and asked is not None:
        probability = curve.probability(asked)
        gap = EvidenceGap(probability, curve.least, answering.bound, asked.coverage.missing)
        return Answered(probability, None if probability > curve.least else gap)
    compared = answering.compared(match)
    if compared is None or compared[0] > compared[1]:
        return Answered(None, None)
    return Answered(None, EvidenceGap(*compared, answering.bound))


class Answered(NamedTuple):
    """P(answered) of a query, None where that cannot be told; and the gap, where there is one."""

    probability: float | None
    gap: EvidenceGap | None


def uncalibrated(results: Sequence[RankedResult], calibration: ScoreCalibration | None) -> str:
    """Why results carry no probability; empty where they do, or where there are none."""
    if not results or any(result.probability is not None for result in results):
        return ""
    return UNLEARNED if calibration is None or calibration.match is None else INSEPARABLE


@dataclass(frozen=True, slots=True, eq=False)
class ScoreComponents:
    """What scores of some results are made of."""

    values: Floats  # of each of `SIGNALS` that adds to a score with its learned weight, 0 of others, (n, signals)
    fixed: Floats  # what is added without a learned weight, (n,)
    learned: Flags  # whether any learned weight adds anything, (n,)
    domains: Sequence[Domain]  # whose weights rank each

    def of(self, lines: slice) -> ScoreComponents:
        """Some of the results."""
        return ScoreComponents(self.values[lines], self.fixed[lines], self.learned[lines], self.domains[lines])


def scored(candidates: RankingBatch) -> ScoreComponents:
    """The scores of candidates, a line each."""
    numbers, scores = candidates.number, candidates.scores
    addends = scores.values[numbers]
    amounts = addends * scores.weights[numbers]
    adds = ~np.isnan(amounts)
    weighed = [(at, SIGNALS.index(part.signal)) for at, part in enumerate(scores.parts) if part.signal is not None]
    places, signals = [at for at, _ in weighed], [signal for _, signal in weighed]
    values, fixed = np.zeros((len(candidates), len(SIGNALS))), np.zeros(len(candidates))
    values[:, signals] = np.where(adds[:, places], addends[:, places], 0.0)
    for at, part in enumerate(scores.parts):
        if part.signal is None:
            fixed += np.where(adds[:, at], amounts[:, at], 0.0)
    learned = np.logical_or.reduce(adds[:, places], axis=1)
    return ScoreComponents(values, fixed, learned, [DOMAINS[domain] for domain in candidates.domain.tolist()])


def rank_confidence(results: ScoreComponents, draws: WeightDraws) -> list[float | None]:
    """For each result, in their order, the probability that it belongs above the next.

    P(score_i > score_{i+1}), ties counted half, over draws from the posterior. Where the beliefs are right, of all
    neighbours with probability p a share of p stands in the order that the true weights would give. The last
    result, and results whose scores rest on no learned weight, have none.
    """
    count = len(results.fixed)
    if count < 2 or not results.learned.all():
        return [None] * count
    above = (results.fixed[:-1] - results.fixed[1:])[:, None] + _apart(results, draws)
    # Draws above less draws below, and all of them, are twice those above with half of the ties.
    balance = np.add.reduce(np.sign(above), axis=1)
    sure: list[float | None] = ((balance + above.shape[1]) / (2 * above.shape[1])).tolist()
    return [*sure, None]


def _apart(results: ScoreComponents, draws: WeightDraws) -> Floats:
    """By how much learned weights set each result above the next under each draw, (n − 1, draws)."""
    upper, lower, domains = results.values[:-1], results.values[1:], results.domains
    if len(set(domains)) == 1:
        # What two results have alike is gone before anything is rounded: those alike in everything tie in every draw.
        return np.asarray((upper - lower) @ draws(domains[0]))
    pairs = zip(upper, domains, lower, domains[1:], strict=False)
    return np.array(
        [
            (one - other) @ draws(its) if its is others else one @ draws(its) - other @ draws(others)
            for one, its, other, others in pairs
        ]
    )


def propensities(
    contenders: ScoreComponents, shown: Ints, draws: WeightDraws, would_show: Callable[[Floats], Ints]
) -> list[float]:
    """For each result of an exploring search the probability that it shows it at the rank that it has.

    The share of draws of the weights that give it the rank, the draw that was made among them: never 0, so that
    feedback can be weighed by its inverse (Horvitz and Thompson, JASA 1952). Where no learned weight ranks, nothing
    is explored and the probability is 1.
    """
    if not contenders.learned.all():
        return [1.0] * len(shown)
    # One signal after the other, so that equal results have equal scores: BLAS sums rows in different orders.
    scores = contenders.fixed[:, None]
    drawn = np.array([draws(domain) for domain in contenders.domains])  # (contenders, signals, draws)
    for at in range(len(SIGNALS)):
        scores = scores + contenders.values[:, at, None] * drawn[:, at]
    hits = (would_show(scores)[: len(shown)] == shown[:, None]).sum(axis=1)
    shares: list[float] = ((hits + 1.0) / (scores.shape[1] + 1.0)).tolist()
    return shares
