"""RET-15: from how well results match to the probability that they are good, and to saying that nothing is."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import beta

from tests.support.examples import examples
from tests.support.matching import match_key
from weft.consolidation.settings import FOLDS, SEED
from weft.domain.documents import Domain
from weft.domain.errors import StoreError
from weft.domain.matching import MatchFeatures
from weft.learning.calibration.fit import calibrate_matches
from weft.learning.calibration.matching import (
    Answering,
    MatchBins,
    MatchCalibration,
    MatchCurve,
    answering_from,
    match_bins,
)
from weft.learning.calibration.reliability import Predictions, reliability
from weft.learning.calibration.scores import Isotonic, ScoreCalibration
from weft.learning.evidence import MICRO, Evidence
from weft.settings import load_settings

SETTINGS = load_settings(environment={})
DAY = 100
NOW = DAY * 86_400.0
TRUTH = MatchCurve(6.0, 3.0, -5.0)


def rows_of(meaning: NDArray[np.float64], words: NDArray[np.float64]) -> NDArray[np.float64]:
    """Matches (n, 3) of which the nearness is not known."""
    return np.stack([meaning, words, np.full(len(words), np.nan)], axis=1)


def seen(rng: np.random.Generator, verdicts: int, truth: MatchCurve = TRUTH) -> MatchBins:
    """Verdicts of users who were asked and say what is so, as they come back from evidence."""
    meaning = rng.uniform(0.1, 0.9, verdicts)
    words = np.clip(meaning + rng.normal(0.0, 0.2, verdicts), 0.0, 0.95)
    good = rng.random(verdicts) < truth.probabilities(rows_of(meaning, words))
    matches = (MatchFeatures(dense=float(m), lexical=float(w)) for m, w in zip(meaning, words, strict=True))
    told = (
        Evidence({match_key(DAY, Domain.GENERAL, match, rank=1, good=bool(is_good), asked=0.02): MICRO})
        for match, is_good in zip(matches, good, strict=True)
    )
    return match_bins(Evidence.sum(told), SETTINGS.priors, now=NOW)


def fitted(bins: MatchBins) -> MatchCalibration:
    rules = SETTINGS.consolidation.calibration
    prior = SETTINGS.priors.verdicts
    return calibrate_matches(bins, prior, folds=FOLDS, seed=SEED, least_gain=rules.least_gain).calibration


def test_verdicts_come_back_as_they_were_counted() -> None:
    """RET-15, LRN-1: every verdict once, in the middle of its bins; what is not known stays so."""
    bins = seen(np.random.default_rng(1), 50)
    assert bins.observations == pytest.approx(50.0)
    alone = Evidence({match_key(DAY, Domain.CODE, MatchFeatures(lexical=0.99), rank=7, good=False): MICRO // 2})
    found = match_bins(alone, SETTINGS.priors, now=NOW)
    assert np.isnan(found.match[0, 0])
    assert (found.match[0, 1], found.bad[0]) == (0.975, 0.5)
    assert found.rank[0] == pytest.approx(7.0, rel=0.2)


@pytest.mark.parametrize("told", [("dense", "lexical"), ("dense",), ("lexical",)], ids=" and ".join)
def test_the_probability_means_the_same_over_any_channels(told: tuple[str, ...]) -> None:
    """RET-15: learned with both channels, and calibrated for results of which only one is known, too."""
    curves, rng = fitted(seen(np.random.default_rng(2), 3000)), np.random.default_rng(3)
    meaning = rng.uniform(0.1, 0.9, 5000)
    words = np.clip(meaning + rng.normal(0.0, 0.2, 5000), 0.0, 0.95)
    good = rng.random(5000) < TRUTH.probabilities(rows_of(meaning, words))
    known = [
        {name: value for name, value in (("dense", float(m)), ("lexical", float(w))) if name in told}
        for m, w in zip(meaning, words, strict=True)
    ]
    chances = np.array([curves.probability(MatchFeatures(**each)) for each in known], dtype=np.float64)
    measured = reliability(Predictions(chances, good.astype(np.float64), 1.0 - good), bins=20)
    assert measured.ece < 0.03


def test_nearness_tells_where_it_was_learned_and_the_cosine_where_not() -> None:
    """RET-15: good is what is near, whatever its cosine; where tokens are not compared the probability still holds."""
    rng = np.random.default_rng(6)
    meaning = rng.uniform(0.1, 0.9, 4000)
    near = np.clip(meaning + rng.normal(0.0, 0.2, 4000), 0.0, 1.0)
    good = rng.random(4000) < expit(10.0 * near - 5.0)
    matches = [
        MatchFeatures(dense=float(m), lexical=0.5, late_interaction=float(n))
        for m, n in zip(meaning, near, strict=True)
    ]
    told = (
        Evidence({match_key(DAY, Domain.GENERAL, match, rank=1, good=bool(is_good), asked=0.02): MICRO})
        for match, is_good in zip(matches[:2000], good, strict=False)
    )
    curves = fitted(match_bins(Evidence.sum(told), SETTINGS.priors, now=NOW))
    is_good, losses = good[2000:].astype(np.float64), []
    for seen_as in (matches[2000:], [MatchFeatures(dense=match.dense, lexical=0.5) for match in matches[2000:]]):
        chances = np.array([curves.probability(match) for match in seen_as], dtype=np.float64)
        measured = reliability(Predictions(chances, is_good, 1.0 - is_good), bins=20)
        assert measured.ece < 0.04
        losses.append(measured.log_loss)
    assert losses[0] < losses[1] - 0.02
    never = replace(curves, near_words=None)
    assert never.probability(matches[0]) == curves.probability(MatchFeatures(dense=matches[0].dense, lexical=0.5))


def test_nothing_is_told_where_good_and_bad_do_not_separate() -> None:
    """RET-15: no number, rather than the overall rate in disguise."""
    curves = fitted(seen(np.random.default_rng(4), 2000, MatchCurve(0.0, 0.0, -1.0)))
    assert curves.probability(MatchFeatures(dense=0.9, lexical=0.9)) is None
    assert fitted(seen(np.random.default_rng(5), 3)).probability(MatchFeatures(dense=0.9, lexical=0.9)) is None
    assert curves.probability(None) is None


@settings(max_examples=examples(20), deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([0.05, 0.1, 0.3]), st.sampled_from([0.5, 0.9]))
def test_the_bound_on_answering_what_has_no_answer_holds(seed: int, bound: float, confidence: float) -> None:
    """RET-15: for as many draws of probes as stated, queries like them pass no more often than stated; and the least
    threshold with which that is so is taken: with the next lower one it fails.
    """
    rng = np.random.default_rng(seed)
    shape, draws = rng.uniform(0.3, 3.0, 2), 300
    kept, kept_below = np.zeros(draws, dtype=bool), np.zeros(draws, dtype=bool)
    for at in range(draws):
        drawn = np.sort(rng.beta(*shape, size=59))
        probes = [MatchFeatures(dense=value) for value in drawn.tolist()]
        found = answering_from([probes], bound=bound, confidence=confidence)
        assert found is not None
        assert found.meaning is not None
        lower = drawn[np.searchsorted(drawn, found.meaning) - 1]
        kept[at], kept_below[at] = (beta.sf(each, *shape) <= bound for each in (found.meaning, lower))
    slack = 4.0 * np.sqrt(confidence * (1.0 - confidence) / draws)
    assert kept.mean() >= confidence - slack
    assert kept_below.mean() <= confidence + slack


def test_too_few_probes_bound_nothing() -> None:
    """RET-15: a bound of one in twenty that nine in ten stores keep takes 45, since .95^45 < .1, of every kind."""
    some = [MatchFeatures(dense=0.1, lexical=0.2)] * 45
    for kinds in ([some[:44]], [some, some[:44]], []):
        assert answering_from(kinds, bound=0.05, confidence=0.9) is None
    assert answering_from([some], bound=0.05, confidence=0.9) == Answering(0.1, 0.2, 0.05, 45, confidence=0.9)


def test_of_several_kinds_of_probes_the_highest_threshold_holds() -> None:
    """RET-15: so that the bound holds for queries like any of them; what is not known of all bounds nothing."""
    low, high = [MatchFeatures(dense=0.1, lexical=0.4)] * 60, [MatchFeatures(dense=0.3)] * 50
    found = answering_from([low, high], bound=0.05, confidence=0.9)
    assert found == Answering(0.3, None, 0.05, 50, confidence=0.9)
    assert found.compared(MatchFeatures(dense=0.2, lexical=0.9)) == (0.2, 0.3)
    assert found.compared(MatchFeatures(lexical=0.9)) is None
    assert found.compared(None) is None


def test_a_calibration_keeps_its_curves() -> None:
    """CON-8, RET-15: through JSON and back; anything else is refused."""
    curves = MatchCalibration(TRUTH, None, MatchCurve(0.0, 2.0, -1.0), Answering(0.1, 0.2, 0.05, 100))
    for match in (curves, None):
        calibration = ScoreCalibration(Isotonic((0.0, 1.0), (0.0, 1.0)), match)
        assert ScoreCalibration.from_table(calibration.to_table()) == calibration
    with pytest.raises(StoreError):
        MatchCalibration.from_json_value({"both": {"slope": 1.0}})
