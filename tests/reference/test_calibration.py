"""CON-8: calibration against scikit-learn, against the truth of simulated scores, and its measures by hand."""

import json
import math

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss
from sklearn.metrics import log_loss as sklearn_log_loss

from tests.support.outcomes import outcome_evidence
from weft.domain.documents import Domain
from weft.domain.errors import StoreError
from weft.domain.ids import ContentHash
from weft.domain.ranking import Scope
from weft.learning.calibration.reliability import Predictions, bands, reliability
from weft.learning.calibration.scores import (
    BetaCurve,
    Isotonic,
    ScoreBins,
    ScoreCalibration,
    calibrate,
    score_bins,
)
from weft.learning.evidence import MICRO, Evidence, EvidenceKey
from weft.settings import load_settings

RECENCY = load_settings(environment={}).priors.recency
MIDDLES = (np.arange(20) + 0.5) / 20


def _simulated(truth, n: int, seed: int) -> ScoreBins:
    rng = np.random.default_rng(seed)
    shown = rng.multinomial(n, np.full(20, 1 / 20))
    good = rng.binomial(shown, truth(MIDDLES))
    kept = shown > 0
    return ScoreBins(MIDDLES[kept], good[kept].astype(float), (shown - good)[kept].astype(float))


def _expanded(bins: ScoreBins) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    scores = np.concatenate([bins.score, bins.score])
    outcomes = np.concatenate([np.ones_like(bins.good), np.zeros_like(bins.bad)])
    return scores, outcomes, np.concatenate([bins.good, bins.bad])


@pytest.mark.parametrize("seed", range(5))
def test_the_isotonic_curve_is_that_of_scikit_learn(seed: int) -> None:
    """CON-8."""
    bins = _simulated(lambda s: 0.2 + 0.5 * s, 300, seed)
    scores, outcomes, weights = _expanded(bins)
    theirs = IsotonicRegression(out_of_bounds="clip").fit(scores, outcomes, sample_weight=weights)
    between = np.linspace(0.0, 1.0, 201)
    assert np.allclose(Isotonic.fit(bins).probabilities_of(between), theirs.predict(between), atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_the_beta_curve_is_the_logistic_regression_on_log_scores(seed: int) -> None:
    """CON-8: where both slopes are free to be positive, it is an ordinary logistic fit in ln s and −ln(1 − s)."""
    bins = _simulated(lambda s: s**1.5 / (s**1.5 + (1 - s) ** 0.7), 4000, seed)
    scores, outcomes, weights = _expanded(bins)
    design = np.stack([np.log(scores), -np.log1p(-scores)], axis=1)
    theirs = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(design, outcomes, sample_weight=weights)
    ours = BetaCurve.fit(bins)
    assert np.allclose([ours.a, ours.b, ours.c], [*theirs.coef_[0], theirs.intercept_[0]], atol=0.01)


def test_measures_agree_with_scikit_learn() -> None:
    """CON-8: Brier score and log loss."""
    bins = _simulated(lambda s: s, 500, 1)
    scores, outcomes, weights = _expanded(bins)
    measured = reliability(Predictions(bins.score, bins.good, bins.bad), bins=10)
    assert math.isclose(measured.brier, brier_score_loss(outcomes, scores, sample_weight=weights))
    assert math.isclose(measured.log_loss, sklearn_log_loss(outcomes, scores, sample_weight=weights))


def test_the_calibration_error_weighs_bins_by_their_observations() -> None:
    """CON-8: 40 predicted .25 of which .50 come good, 60 predicted .75 of which .75 do."""
    predictions = Predictions(np.array([0.25, 0.75]), good=np.array([20.0, 45.0]), bad=np.array([20.0, 15.0]))
    assert math.isclose(reliability(predictions, bins=10).ece, 40 / 100 * 0.25)


def test_calibration_repairs_overconfident_scores() -> None:
    """CON-8: on outcomes it was not fitted to, and towards the known truth."""
    truth = lambda s: 0.1 + 0.5 * s**2  # noqa: E731
    bins = _simulated(truth, 3000, 4)
    fit = calibrate(bins, folds=5, seed=7, smoothing=1.0)
    raw = reliability(Predictions(bins.score, bins.good, bins.bad), bins=10)
    held_out = reliability(fit.held_out, bins=10)
    assert held_out.observations == 3000
    assert held_out.ece < raw.ece / 3
    assert held_out.log_loss < raw.log_loss
    assert np.mean(np.abs(fit.calibration.probabilities(MIDDLES) - truth(MIDDLES))) < 0.03


@pytest.mark.parametrize(
    ("truth", "winner"),
    [(lambda s: s**2 / (s**2 + (1 - s) ** 2), "beta"), (lambda s: np.where(s < 0.7, 0.1, 0.8), "isotonic")],
    ids=["a smooth rise", "a step"],
)
def test_the_family_that_predicts_better_wins(truth, winner: str) -> None:
    """CON-8."""
    fit = calibrate(_simulated(truth, 4000, 2), folds=5, seed=7, smoothing=1.0)
    assert fit.calibration.method == winner == min(fit.losses, key=fit.losses.__getitem__)


@pytest.mark.parametrize("good", [True, False])
def test_outcomes_of_one_kind_never_make_certainty(good: bool) -> None:
    """RET-15: twenty of twenty good is no proof of the next."""
    masses = np.array([20.0]), np.array([0.0])
    bins = ScoreBins(np.array([0.5]), *(masses if good else masses[::-1]))
    probability = calibrate(bins, folds=5, seed=7, smoothing=1.0).calibration.probability(0.5)
    assert 0.0 < probability < 1.0
    assert (probability > 0.9) == good


@pytest.mark.parametrize("curve", [BetaCurve(1.2, 0.3, -0.1), Isotonic((0.1, 1 / 3), (0.2, 0.7))])
def test_a_calibration_survives_json_exactly(curve: BetaCurve | Isotonic) -> None:
    """CON-8."""
    calibration = ScoreCalibration(curve)
    assert ScoreCalibration.from_table(calibration.to_table()) == calibration


@pytest.mark.parametrize("text", ["", "[]", json.dumps({"method": "oracle"}), json.dumps({"method": "beta", "a": 1})])
def test_what_is_no_calibration_is_refused(text: str) -> None:
    """CON-8."""
    with pytest.raises(StoreError, match="calibration: expected one of"):
        ScoreCalibration.from_table(text)


def test_bands_mark_what_too_few_observations_support() -> None:
    """CON-8: 25 in the top band at .95 with 20 good; 19 in the band below are insufficient."""
    predictions = Predictions(np.array([0.95, 0.85]), good=np.array([20.0, 10.0]), bad=np.array([5.0, 9.0]))
    table = bands(predictions, [0.6, 0.7, 0.8, 0.9, 1.0], minimum=20.0, level=0.9)
    assert [band.sufficient for band in table] == [False, False, False, True]
    assert math.isclose(table[3].deviation, 0.95 - 20 / 25)
    assert table[3].low < 20 / 25 < table[3].high
    assert [band.observations for band in table] == [0.0, 0.0, 19.0, 25.0]


def test_certainty_is_in_the_top_band() -> None:
    """CON-8: the last band holds its upper end."""
    table = bands(Predictions(np.array([1.0]), np.array([3.0]), np.array([0.0])), [0.9, 1.0], minimum=1.0, level=0.9)
    assert table[0].observations == 3.0


def test_bins_are_read_by_domain_and_by_recency() -> None:
    """CON-8, LRN-2: a month-old outcome counts half, and bins of another width keep their place."""

    def seen(day: int, score: float, good: bool, domain: Domain) -> Evidence:
        return outcome_evidence(
            day=day,
            scope=Scope(domain),
            intent="*",
            signals={},
            score=score,
            content_hash=ContentHash("a" * 64),
            good=good,
            weight=1.0,
        )

    wider = Evidence({EvidenceKey(30, "history", "*", "*", "*", "relevance", "03/10.good"): MICRO})
    evidence = Evidence.sum(
        [
            seen(0, 0.37, True, Domain.CODE),
            seen(30, 0.37, False, Domain.CODE),
            seen(30, 0.37, True, Domain.HISTORY),
            wider,
        ]
    )
    now = 30 * 86_400.0
    code = score_bins(evidence, RECENCY, now=now, domain=Domain.CODE)
    assert (code.score.tolist(), code.good.tolist(), code.bad.tolist()) == ([7.5 / 20], [0.5], [1.0])
    everything = score_bins(evidence, RECENCY, now=now)
    assert everything.score.tolist() == [3.5 / 10, 7.5 / 20]
    assert everything.observations == 0.5 + 1 + 1 + 1


def test_outcomes_that_count_less_than_one_are_held_out_too() -> None:
    """CON-8, LRN-2: what is measured on is all that is fitted to, however little of it each bin holds."""
    bins = _simulated(lambda s: s, 400, seed=5)
    old = ScoreBins(bins.score, bins.good / 64.0, bins.bad / 64.0)
    fit = calibrate(old, folds=5, seed=7, smoothing=1.0)
    assert float(fit.held_out.mass.sum()) == pytest.approx(old.observations)


def test_nothing_to_calibrate_on_is_said() -> None:
    """CON-8."""
    nothing = score_bins(Evidence(), RECENCY, now=0.0)
    with pytest.raises(ValueError, match="found none"):
        calibrate(nothing, folds=5, seed=7, smoothing=1.0)
