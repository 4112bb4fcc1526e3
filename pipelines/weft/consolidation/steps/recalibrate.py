"""Does a score mean what it says? Refit the calibration where there is evidence for it, and measure both (CON-8)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from weft.consolidation.night import NightContext, StepResult, When
from weft.consolidation.settings import FOLDS, SEED, CalibrationSettings
from weft.domain.matching import MatchFeatures
from weft.learning.calibration.fit import Look, ShownResults, calibrate_matches, carried_over
from weft.learning.calibration.matching import MatchBins, MatchCalibration, Probe, answering_from, match_bins
from weft.learning.calibration.reliability import Band, Predictions, Reliability, bands, reliability
from weft.learning.calibration.scores import UNCHANGED, ScoreBins, ScoreCalibration, calibrate, score_bins
from weft.learning.observe.allowances import within_allowances
from weft.learning.parameters import RELEVANCE_BINS
from weft.learning.priors import VerdictPrior

_PER_OUTCOME = 5  # good and bad outcomes each: a calibration needs both
_BANDS = (0.6, 0.7, 0.8, 0.9, 1.0)  # bounds of the bands that a report has: confidences that people act on (CON-8)
_BAND_MINIMUM = 20  # items in a band, below which it is marked insufficient
_DEVIATION_LIMIT = 0.15  # of a band's outcome from its prediction, beyond which a report asks for recalibration (CON-8)
_LEVEL = 0.9  # of the intervals around observed shares, as in the intervals of weights
_SMOOTHING = 1.0  # outcomes at the overall rate in each bin: no bin is certain for lack of outcomes


@dataclass(frozen=True, slots=True)
class Measured:
    """How far one calibration can be relied on."""

    measures: Reliability
    diagram: Sequence[Band]  # predicted against observed in bins of equal width, empty ones left out
    bands: Sequence[Band]  # the confidences that people act on, highest first


@dataclass(frozen=True, slots=True)
class Recalibration:
    """What became of the calibration."""

    # what the candidate carries; None where evidence is too little, or the raw score predicts as well
    calibration: ScoreCalibration | None
    refitted: bool  # whether it is a new one
    reason: str  # why, or why not
    before: Measured | None = None  # the former calibration on all observations, or the raw score where there was none
    # `calibration`, each observation predicted by a fit that had not seen it; the raw score where it is none
    after: Measured | None = None


class Recalibrate:
    """Refits the calibration, where there is evidence for it, and the curves of matches."""

    name: ClassVar[str] = "recalibrate"
    says: ClassVar[str] = "checking what confidences are worth"
    when: ClassVar[When] = When.JUDGED

    def run(self, context: NightContext) -> StepResult:
        """See `NightStep`."""
        night, rules, priors = context.night, context.settings.consolidation.calibration, context.settings.priors
        former = context.candidate.live.part(ScoreCalibration)
        evidence = within_allowances(context.learned.evidence, alone=priors.robustness.alone)
        outcomes = score_bins(evidence, priors.recency, now=night.now)
        scores = recalibrate(outcomes, former, rules)
        curves = curves_of(match_bins(evidence, priors, now=night.now), priors.verdicts, rules, night.look)
        calibration = with_matches(scores, curves, former, night.probe, rules)
        return StepResult(part=calibration.calibration, note=calibration.reason, outcome=calibration)


def recalibrate(outcomes: ScoreBins, former: ScoreCalibration | None, settings: CalibrationSettings) -> Recalibration:
    """Fit a calibration to the outcomes and take it if it predicts held-out ones better than the raw score does.

    It must predict them as well as the former one, too, as far as that one is better than the raw score. Better is a
    lower log loss. Too little evidence keeps the former one, and says so.
    """
    lacking = _lacking(outcomes, settings)
    if outcomes.observations < 1.0:
        return Recalibration(former, refitted=False, reason=lacking)
    raw = measured(None, outcomes)
    before = raw if former is None else measured(former, outcomes)
    if lacking:
        return Recalibration(former, refitted=False, reason=lacking, before=before, after=before)
    fit = calibrate(outcomes, folds=FOLDS, seed=SEED, smoothing=_SMOOTHING)
    after = _measured(fit.held_out)
    loss, former_loss, raw_loss = (one.measures.log_loss for one in (after, before, raw))
    losses = f"held-out log loss {loss:.4f}, before {former_loss:.4f}, raw score {raw_loss:.4f}"
    if former is not None and former_loss < min(loss, raw_loss):
        reason = f"the former calibration predicts better: {losses}"
        return Recalibration(former, refitted=False, reason=reason, before=before, after=before)
    if loss >= raw_loss:
        reason = f"no calibration goes live, for the raw score predicts as well or better: {losses}"
        return Recalibration(None, refitted=False, reason=reason, before=before, after=raw)
    reason = f"{fit.calibration.method} calibration on {outcomes.observations:,.0f} observations: {losses}"
    return Recalibration(fit.calibration, refitted=True, reason=reason, before=before, after=after)


def curves_of(
    verdicts: MatchBins, prior: VerdictPrior, settings: CalibrationSettings, look: Look | None = None
) -> MatchCalibration | None:
    """The curves that verdicts make of matches; None where they are too few."""
    good, bad = float(verdicts.good.sum()), float(verdicts.bad.sum())
    if good + bad < settings.minimum_observations or min(good, bad) < _PER_OUTCOME:
        return None
    shown = ShownResults() if look is None else look()
    fit = calibrate_matches(verdicts, prior, folds=FOLDS, seed=SEED, least_gain=settings.least_gain, shown=shown.pages)
    return carried_over(fit.calibration, shown.alone, least=settings.minimum_observations)


def with_matches(
    scored: Recalibration,
    curves: MatchCalibration | None,
    former: ScoreCalibration | None,
    probe: Probe | None,
    settings: CalibrationSettings,
) -> Recalibration:
    """The same with the curves of matches, and the threshold from which on an answer counts as one (RET-15).

    Without curves the former ones stay; where scores have no calibration, they come with one that leaves scores as they
    are. Without probes there is no threshold, nor with too few, which the reason says.
    """
    former_match = None if former is None else former.match
    if curves is None and former_match is None:
        return scored
    scores = scored.calibration or ScoreCalibration(UNCHANGED)
    if curves is None:
        return replace(scored, calibration=replace(scores, match=former_match))
    kinds = [] if probe is None else probe()
    answering = answering_from(kinds, bound=settings.answering_bound, confidence=settings.answering_confidence)
    with_curves = replace(scores, match=replace(curves, answering=answering))
    lacks = kinds and answering is None
    reason = f"{scored.reason}; {_lacking_probes(kinds, settings)}" if lacks else scored.reason
    return replace(scored, calibration=with_curves, reason=reason)


def _lacking_probes(kinds: Sequence[Sequence[MatchFeatures]], settings: CalibrationSettings) -> str:
    least = math.ceil(math.log(1.0 - settings.answering_confidence) / math.log(1.0 - settings.answering_bound))
    problem = f"no threshold of answers: expected {least} queries without an answer of each kind at least"
    if min(len(kind) for kind in kinds) >= least:
        return f"{problem}, of which it is known how well they match, found some of which it is not"
    return f"{problem}, found {' and '.join(str(len(kind)) for kind in kinds)}"


def unreliable(measured: Measured) -> list[Band]:
    """Bands with enough observations whose outcomes are further from the prediction than the limit."""
    return [band for band in measured.bands if band.sufficient and band.deviation > _DEVIATION_LIMIT]


def _lacking(outcomes: ScoreBins, settings: CalibrationSettings) -> str:
    good, bad = float(outcomes.good.sum()), float(outcomes.bad.sum())
    if good + bad >= settings.minimum_observations and min(good, bad) >= _PER_OUTCOME:
        return ""
    return (
        f"insufficient evidence: {good:.1f} good and {bad:.1f} bad outcomes, expected {settings.minimum_observations:g}"
        f" in all and {_PER_OUTCOME:g} of each; the former calibration stays"
    )


def measured(calibration: ScoreCalibration | None, outcomes: ScoreBins) -> Measured:
    """A calibration, or the raw score without one, on outcomes."""
    return _measured(_predictions(calibration, outcomes))


def _predictions(calibration: ScoreCalibration | None, outcomes: ScoreBins) -> Predictions:
    probability = outcomes.score if calibration is None else calibration.probabilities(outcomes.score)
    return Predictions(probability, outcomes.good, outcomes.bad)


def _measured(predictions: Predictions) -> Measured:
    edges = [index / RELEVANCE_BINS for index in range(RELEVANCE_BINS + 1)]
    diagram = bands(predictions, edges, minimum=0.0, level=_LEVEL)
    acted_on = bands(predictions, _BANDS, minimum=_BAND_MINIMUM, level=_LEVEL)
    return Measured(
        reliability(predictions, bins=RELEVANCE_BINS),
        [band for band in diagram if band.observations > 0.0],
        acted_on[::-1],
    )
