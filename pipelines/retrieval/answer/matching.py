"""How likely each result is to be good, and whether any is likely enough to be an answer (RET-15)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from msgspec import structs

from pipelines.domain.matching import EvidenceGap, Match, best_match
from pipelines.domain.ranking import RankedResult, Signal
from pipelines.learning.calibration.matching import Answering
from pipelines.retrieval.snapshot.ports import Calibration

UNLEARNED = "no calibration has been learned yet: there were too few verdicts on results"
INSEPARABLE = "good and bad results do not separate by how well they match the query over these channels"

_DRAWN = 6  # bytes of a digest that are a draw in [0, 1): a float holds them exactly


def match_of(cosine: float | None, bm25: float | None, terms: int, tokens: float | None = None) -> Match:
    """How well a candidate matches, on scales that nothing else found moves.

    Args:
        cosine: Of its vector to the query's; None where the dense channel did not answer.
        bm25: Its score; None where the lexical channel did not answer.
        terms: How many the query has, as the channels saw it, at least 1.
        tokens: How well the query's tokens are met, a mean of cosines; None where they are not compared.
    """
    meaning = words = near = None
    if cosine is not None:
        meaning = _share(cosine)
        near = None if tokens is None else (meaning + _share(tokens)) / 2.0
    if bm25 is not None:
        score = max(0.0, bm25)
        words = score / (score + terms)
    return Match(meaning=meaning, words=words, near=near)


def _share(cosine: float) -> float:
    return min(1.0, max(0.0, cosine))


def chance(match: Match, calibration: Calibration | None) -> float | None:
    """P(good) of a match, where verdicts say how matches turn out; None where not, and where they do not separate."""
    curves = None if calibration is None else calibration.match
    return None if curves is None else curves.probability(match)


def asking(results: Sequence[RankedResult], query_id: str, chance: float) -> tuple[RankedResult, ...]:
    """The results, one of which a verdict is asked for now and then, whatever it is and wherever it stands.

    People judge what they came to: further up, and where nothing above was good enough. Who is asked about a result
    drawn at random speaks for all that is shown. The draw is the query's own, so that an answer repeats to the bit.
    Where the same was asked before, what came of it brought the right results here, and how well they match says less:
    nobody is asked.

    Args:
        chance: That any one of them is asked about; of a page longer than 1 / chance, an equal share.
    """
    if not results or not chance:
        return tuple(results)
    each = min(chance, 1.0 / len(results))
    digest = hashlib.sha256(f"ask:{query_id}".encode("utf-8", "surrogatepass")).digest()
    asked = int(int.from_bytes(digest[:_DRAWN], "big") / 256**_DRAWN / each)
    if asked >= len(results) or any(Signal.PRECEDENT in result.signals for result in results):
        return tuple(results)
    return tuple(structs.replace(result, asked=each) if at == asked else result for at, result in enumerate(results))


def doubtful(match: Match | None, calibration: Calibration | None) -> bool:
    """Whether a match is no better than those of queries without an answer; False also where that cannot be told."""
    compared = None if (answering := _answering(calibration)) is None else answering.compared(match)
    return compared is not None and compared[0] <= compared[1]


def gap_in(results: Sequence[RankedResult], calibration: Calibration | None) -> EvidenceGap | None:
    """Set where no result is a good enough match to be an answer; None also where that cannot be told."""
    answering = _answering(calibration)
    if answering is None:
        return None
    compared = answering.compared(
        best_match(result.match for result in results) if results else Match(meaning=0.0, words=0.0, near=0.0)
    )
    if compared is None or compared[0] > compared[1]:
        return None
    return EvidenceGap(*compared, answering.bound)


def _answering(calibration: Calibration | None) -> Answering | None:
    return None if calibration is None or calibration.match is None else calibration.match.answering


def uncalibrated(results: Sequence[RankedResult], calibration: Calibration | None) -> str:
    """Why results carry no probability; empty where they do, or where there are none."""
    if not results or any(result.probability is not None for result in results):
        return ""
    return UNLEARNED if calibration is None or calibration.match is None else INSEPARABLE
