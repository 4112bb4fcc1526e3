"""Refitting the calibration, and when not to."""

from __future__ import annotations

import re

import numpy as np
import pytest

from weft.consolidation.steps.recalibrate import recalibrate, unreliable, with_matches
from weft.domain.matching import MatchFeatures
from weft.learning.calibration.matching import MatchCalibration, MatchCurve
from weft.learning.calibration.scores import Isotonic, ScoreBins, ScoreCalibration
from weft.settings import load_settings

SETTINGS = load_settings(environment={})
RULES = SETTINGS.consolidation.calibration
SCORES = (np.arange(20) + 0.5) / 20


def outcomes(rate: np.ndarray, *, per_bin: float) -> ScoreBins:
    return ScoreBins(SCORES, per_bin * rate, per_bin * (1.0 - rate))


def test_a_score_that_says_too_much_is_corrected() -> None:
    """CON-8: where a score s is good with probability s², the refitted calibration says about s²."""
    found = recalibrate(outcomes(SCORES**2, per_bin=500.0), None, RULES)
    assert found.refitted
    assert found.before is not None
    assert found.after is not None
    assert found.before.measures.ece == pytest.approx(float(np.mean(SCORES - SCORES**2)))
    assert found.after.measures.ece < 0.03
    assert found.calibration is not None
    assert found.calibration.probabilities(SCORES) == pytest.approx(SCORES**2, abs=0.05)
    assert unreliable(found.before)
    assert unreliable(found.after) == []


@pytest.mark.parametrize("per_bin", [0.0, 1.0])
def test_too_little_evidence_keeps_the_former_calibration(per_bin: float) -> None:
    """CON-8: 20 observations calibrate nothing, none even less, and both say so."""
    former = ScoreCalibration(Isotonic((0.0, 1.0), (0.0, 1.0)))
    found = recalibrate(outcomes(SCORES, per_bin=per_bin), former, RULES)
    assert (found.calibration, found.refitted) == (former, False)
    assert "insufficient evidence" in found.reason


def test_outcomes_of_one_kind_only_are_too_little() -> None:
    """CON-8: a thousand good results do not tell where bad ones begin."""
    found = recalibrate(outcomes(np.ones(20), per_bin=50.0), None, RULES)
    assert (found.calibration, found.refitted) == (None, False)


def test_a_former_calibration_that_predicts_better_stays() -> None:
    """CON-8: a refit on few outcomes does not replace the truth."""
    truth = ScoreCalibration(Isotonic(tuple(SCORES.tolist()), tuple((SCORES**2).tolist())))
    found = recalibrate(outcomes(SCORES**2, per_bin=5.0), truth, RULES)
    assert (found.calibration, found.refitted) == (truth, False)
    assert "predicts better" in found.reason


def test_a_calibration_that_is_no_better_than_the_raw_score_stays_out() -> None:
    """CON-8, OPS-15: where a score s is good with probability s, whatever is fitted to it only adds noise."""
    found = recalibrate(outcomes(SCORES, per_bin=20.0), None, RULES)
    assert (found.calibration, found.refitted) == (None, False)
    assert "the raw score predicts as well or better: held-out log loss" in found.reason
    assert found.after == found.before


def test_a_former_calibration_that_has_become_worse_than_the_raw_score_goes() -> None:
    """CON-8, OPS-15: it predicted s² once, and the score has come to mean what it says."""
    former = ScoreCalibration(Isotonic(tuple(SCORES.tolist()), tuple((SCORES**2).tolist())))
    found = recalibrate(outcomes(SCORES, per_bin=20.0), former, RULES)
    assert (found.calibration, found.refitted) == (None, False)
    assert found.after is not None
    assert found.before is not None
    assert found.after.measures.log_loss < found.before.measures.log_loss


@pytest.mark.parametrize("curves", [MatchCalibration(None, MatchCurve(8.0, 0.0, -4.0), None), None])
def test_curves_of_matches_do_not_need_a_calibration_of_scores(curves: MatchCalibration | None) -> None:
    """CON-8, RET-15: they come with scores that are left as they are; without new ones the former stay."""
    match = MatchCalibration(None, MatchCurve(4.0, 0.0, -2.0), None)
    former = ScoreCalibration(Isotonic(tuple(SCORES.tolist()), tuple((SCORES**2).tolist())), match)
    found = recalibrate(outcomes(SCORES, per_bin=20.0), former, RULES)
    calibration = with_matches(found, curves, former, None, RULES).calibration
    assert calibration is not None
    assert calibration.match == (curves or match)
    assert calibration.probabilities(SCORES) == pytest.approx(SCORES)


def test_bands_with_few_observations_are_marked() -> None:
    """CON-8: the reported bands are those people act on, and one with under 20 items says so."""
    found = recalibrate(outcomes(SCORES, per_bin=9.0), None, RULES)
    assert found.before is not None
    assert [(band.lower, band.upper) for band in found.before.bands] == [(0.9, 1.0), (0.8, 0.9), (0.7, 0.8), (0.6, 0.7)]
    assert [band.sufficient for band in found.before.bands] == [False] * 4  # two bins of 9 each


@pytest.mark.parametrize(
    ("kinds", "told"),
    [
        ([[MatchFeatures(dense=0.1)] * 45, [MatchFeatures(dense=0.2)] * 100], None),
        ([[MatchFeatures(dense=0.1)] * 44, [MatchFeatures(dense=0.2)] * 100], "expected 45 .* found 44 and 100"),
        ([[MatchFeatures()] * 45], "expected 45 .* of which it is not"),
    ],
)
def test_probes_that_bound_nothing_are_told_of(kinds: list[list[MatchFeatures]], told: str | None) -> None:
    """RET-15, CON-8: where no threshold can be had, the night says why."""
    fit = recalibrate(outcomes(SCORES**2, per_bin=500.0), None, RULES)
    curves = MatchCalibration(None, MatchCurve(8.0, 0.0, -4.0), None)
    found = with_matches(fit, curves, None, lambda: kinds, RULES)
    assert found.calibration is not None
    assert found.calibration.match is not None
    assert (found.calibration.match.answering is None) == (told is not None)
    assert found.reason == fit.reason if told is None else re.search(told, found.reason)
