"""RET-15: probabilities from verdicts that were asked for at random, beside those that people gave unasked."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.feedback_events import shown
from tests.support.matching import match_key
from weft.consolidation.settings import FOLDS, SEED
from weft.domain.documents import Domain
from weft.domain.matching import MatchFeatures
from weft.domain.ranking import ANY
from weft.learning.calibration.fit import VerdictModel, calibrate_matches
from weft.learning.calibration.matching import MatchBins, MatchCurve, match_bins
from weft.learning.calibration.reliability import Predictions, reliability
from weft.learning.evidence import MICRO, Evidence, EvidenceKey
from weft.learning.observe.matches import ASKED, MATCH
from weft.learning.observe.outcomes import ASKED_FOR, VOLUNTEERED, OutcomeScope
from weft.learning.observe.tallies import Tally
from weft.settings import load_settings

SETTINGS = load_settings(environment={})
PRIOR = SETTINGS.priors.verdicts
RULES = SETTINGS.consolidation.calibration
DAY = 100
NOW = DAY * 86_400.0
TRUTH = MatchCurve(8.0, 4.0, -7.0)
UNDER = OutcomeScope(ANY, ANY, ANY, "")


def flat(matches: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cosine and words of results on pages as rows (n, 3), nearness not known."""
    rows = matches.reshape(-1, 2)
    return np.column_stack([rows, np.full(len(rows), np.nan)])


def pages(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Matches of results on pages of ten, the best first, (count, 10, 2), and which are good."""
    matches = rng.beta(3.0, 4.0, (count, 10, 2))
    order = np.argsort(-matches.sum(axis=2), axis=1)
    matches = np.take_along_axis(matches, order[:, :, None], axis=1)
    return matches, rng.random((count, 10)) < TRUTH.probabilities(flat(matches)).reshape(count, 10)


def said(
    rng: np.random.Generator, sessions: int, *, asked: float = 0.05, mistaken: float = PRIOR.mistaken
) -> MatchBins:
    """Verdicts of readers who judge what serves them far more often than what does not, and who answer where asked."""
    matches, good = pages(rng, sessions)
    found: list[Evidence] = []

    def note(page: int, place: int, chance: float | None) -> None:
        match = MatchFeatures(dense=float(matches[page, place, 0]), lexical=float(matches[page, place, 1]))
        is_good = bool(good[page, place]) != bool(rng.random() < mistaken)
        key = match_key(DAY, Domain.GENERAL, match, rank=place + 1, good=is_good, asked=chance)
        found.append(Evidence({key: MICRO}))

    for page in range(sessions):
        for place in range(10):
            if rng.random() < (0.5 if good[page, place] else 0.15):
                note(page, place, None)
        place = int(rng.random() / asked)
        if place < 10:
            note(page, place, asked)
    return match_bins(Evidence.sum(found), SETTINGS.priors, now=NOW)


def read_down(rng: np.random.Generator, sessions: int, *, chance: float = 0.05) -> MatchBins:
    """Verdicts of readers who stop at what is good, on pages that are ranked by more than the match."""
    found: list[Evidence] = []
    for _ in range(sessions):
        match, good = a_page(rng)

        def note(place: int, asked: float | None, match: np.ndarray = match, good: np.ndarray = good) -> None:
            where = {"rank": place + 1, "asked": asked}
            key = match_key(
                DAY, Domain.GENERAL, MatchFeatures(lexical=float(match[place])), good=bool(good[place]), **where
            )
            found.append(Evidence({key: MICRO}))

        for place in range(10):
            if rng.random() < 0.5:
                note(place, None)
            if good[place]:
                break
        if (place := int(rng.random() / chance)) < 10:
            note(place, chance)
    return match_bins(Evidence.sum(found), SETTINGS.priors, now=NOW)


def a_page(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Matches of ten results, those further up better ones on average, and at most one of them that is good."""
    match = np.clip(np.linspace(0.7, 0.3, 10) + rng.normal(0.0, 0.12, 10), 0.01, 0.99)
    chance = 0.5 * np.arange(1, 11) ** -1.3 * np.exp(2.0 * (match - 0.5))
    place = int(np.searchsorted(np.cumsum(chance / max(1.0, chance.sum())), rng.random()))
    return match, np.arange(10) == place


def error(curve: MatchCurve) -> float:
    """Calibration error on pages of others, every result counted."""
    matches, good = pages(np.random.default_rng(99), 3000)
    chances, is_good = curve.probabilities(flat(matches)), good.ravel().astype(np.float64)
    return reliability(Predictions(chances, is_good, 1.0 - is_good), bins=20).ece


def test_an_answer_to_a_request_is_counted_by_the_chance_it_was_made_with() -> None:
    """RET-15, FBK-1: only where the service asked about this very result, and the verdict answers that."""
    tally, match = Tally(), MatchFeatures(dense=0.62, lexical=0.33, late_interaction=0.51)
    asked_about, others = shown(3, match=match, asked=0.02), shown(4, match=match)
    tally.note(asked_about, UNDER, day=DAY, good=True, weight=1.0, judged=ASKED_FOR)
    tally.note(asked_about, UNDER, day=DAY, good=False, weight=0.5, judged=VOLUNTEERED)
    tally.note(others, UNDER, day=DAY, good=True, weight=0.25, judged=ASKED_FOR)
    counts = tally.freeze().counts
    told = {key: mass for key, mass in counts.items() if key.parameter in (MATCH, ASKED)}
    assert told == {
        match_key(DAY, Domain.CODE, match, rank=3, good=True, asked=0.02): MICRO,
        match_key(DAY, Domain.CODE, match, rank=3, good=False): MICRO // 2,
        match_key(DAY, Domain.CODE, match, rank=4, good=True): MICRO // 4,
    }


def test_what_was_known_of_a_question_says_nothing_about_matches() -> None:
    """RET-15: where the same was asked before, results stand there for that."""
    tally, match = Tally(), MatchFeatures(dense=0.62, lexical=0.33)
    known = shown(3, match=match, asked=0.02, signals={"vector": 0.5}, precedent=0.5)
    for judged in (ASKED_FOR, VOLUNTEERED):
        tally.note(known, UNDER, day=DAY, good=True, weight=1.0, judged=judged)
    assert not {key.parameter for key in tally.freeze().counts} & {MATCH, ASKED}


def test_what_was_asked_seldom_stands_for_more() -> None:
    """RET-15: each verdict for 1 / chance results; together they count what equal ones would that tell as much."""
    found = []
    for chance, good in ((0.5, True), (0.125, False)):
        key = match_key(DAY, Domain.CODE, MatchFeatures(dense=0.5, lexical=0.5), rank=2, good=good, asked=chance)
        found.append(Evidence({key: 10 * MICRO}))
    bins = match_bins(Evidence.sum(found), SETTINGS.priors, now=NOW)
    assert dict(zip(bins.good.tolist(), bins.stands_for.tolist(), strict=True)) == {10.0: 2.0, 0.0: 8.0}
    mass = bins.weight * (bins.good + bins.bad)
    assert mass.max() / mass.min() == pytest.approx(4.0)
    assert mass.sum() == pytest.approx((10 * 2 + 10 * 8) ** 2 / (10 * 4 + 10 * 64))
    assert bins.volunteered.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("chance", [1e-6, 5e-324])
def test_a_verdict_that_claims_to_stand_for_everything_stands_for_a_page(chance: float) -> None:
    """RET-15, FBK-11: the chance is the impression's word; one made-up event must not outweigh all honest ones."""
    honest = [
        match_key(DAY, Domain.CODE, MatchFeatures(dense=place / 20), rank=1, good=place > 10, asked=0.1)
        for place in range(20)
    ]
    forged = match_key(DAY, Domain.CODE, MatchFeatures(dense=0.0), rank=1, good=True, asked=chance)
    bins = match_bins(Evidence(dict.fromkeys(honest, 50 * MICRO) | {forged: MICRO}), SETTINGS.priors, now=NOW)
    assert bins.stands_for.max() == pytest.approx(PRIOR.stands_for)
    votes = bins.weight * (bins.good + bins.bad)
    assert votes[bins.stands_for == bins.stands_for.max()].sum() < 3.0
    assert votes.sum() > 990.0


def test_evidence_of_unasked_verdicts_is_told_apart() -> None:
    """LRN-1: keys that name no chance are of verdicts that nobody asked for."""
    key = EvidenceKey(DAY, "code", ANY, ANY, ANY, MATCH, "12.-/20.good.04")
    bins = match_bins(Evidence({key: MICRO}), SETTINGS.priors, now=NOW)
    assert np.array_equal(bins.match, [[0.625, np.nan, np.nan]], equal_nan=True)
    assert (bins.stands_for.tolist(), bins.weight.tolist(), bins.volunteered.tolist()) == ([0.0], [1.0], [1.0])
    assert bins.rank.tolist() == [4.0]


def test_asked_verdicts_make_probabilities_of_what_is_shown() -> None:
    """RET-15: calibration error under .03, where unasked verdicts alone, taken for what was shown, are far off."""
    rng = np.random.default_rng(1)
    bins = said(rng, 3000)
    model = VerdictModel.fit(bins, (0, 1), PRIOR)
    assert error(model.curve) < 0.03
    assert model.selection == pytest.approx(np.log(0.5 / 0.15), abs=0.4)
    unasked = bins.volunteered > 0.0
    some = MatchBins.of_shown(bins.match[unasked], bins.good[unasked], bins.bad[unasked])
    assert error(VerdictModel.fit(some, (0, 1), None).curve) > 0.05


def test_a_curve_is_as_steep_as_what_is_shown_and_not_as_what_is_read() -> None:
    """RET-15: verdicts come from the tops of pages, where results are better than their match says."""
    prior, rng = PRIOR.model_copy(update={"mistaken": 0.0}), np.random.default_rng(5)
    bins = read_down(rng, 2000)
    others = [a_page(rng) for _ in range(3000)]
    match, good = (np.concatenate([page[which] for page in others]) for which in (0, 1))
    rows = np.column_stack([np.full(len(match), np.nan), match, np.full(len(match), np.nan)])
    shown = [
        (rank, MatchFeatures(lexical=float(each)))
        for page, _ in others[:300]
        for rank, each in enumerate(page, start=1)
    ]
    told = {
        "looked up": VerdictModel.fit(bins, (1,), prior, shown),
        "as asked about": VerdictModel.fit(bins, (1,), prior),
        "wherever they stood": VerdictModel.fit(bins.without_rank(), (1,), prior),
    }
    of_all = VerdictModel.fit(MatchBins.of_shown(rows, good.astype(np.float64), 1.0 - good), (1,), None).curve
    errors = {
        name: reliability(
            Predictions(model.curve.probabilities(rows), good.astype(np.float64), 1.0 - good), bins=20
        ).ece
        for name, model in told.items()
    }
    assert max(errors["looked up"], errors["as asked about"]) < 0.02 < errors["wherever they stood"]
    assert told["looked up"].curve.words == pytest.approx(of_all.words, rel=0.2)
    assert told["wherever they stood"].curve.words < 0.8 * of_all.words
    assert told["looked up"].position > 0.5
    assert told["looked up"].reading > 0.0


def test_mistakes_of_a_stated_share_are_undone() -> None:
    """RET-15: a verdict that is wrong one time in five is one, and says less; taken at its word it says too much."""
    bins = said(np.random.default_rng(2), 6000, asked=0.1, mistaken=0.2)
    for stated, holds in ((0.2, True), (0.0, False)):
        model = VerdictModel.fit(bins, (0, 1), PRIOR.model_copy(update={"mistaken": stated}))
        assert (error(model.curve) < 0.03) == holds
        told = Predictions(model.verdict_probability(bins), bins.good, bins.bad)
        assert abs(float(np.sum(told.probability * told.mass) - bins.good.sum())) < 0.03 * bins.observations


def test_few_verdicts_stay_near_what_is_known_beforehand() -> None:
    """RET-15: a handful finds no offset of its own."""
    model = VerdictModel.fit(said(np.random.default_rng(3), 8), (0, 1), PRIOR)
    assert abs(model.selection - PRIOR.selection) < PRIOR.selection_spread


def test_a_curve_that_predicts_no_better_than_the_rates_is_none() -> None:
    """RET-15: that more unasked verdicts are good than asked ones is no separation by match."""
    rng = np.random.default_rng(4)
    match = np.array([[0.5, 0.5, np.nan]] * 2)
    bins = MatchBins(match, np.ones(2), np.array([100.0, 900.0]), np.array([900.0, 100.0]), np.array([20.0, 0.0]))
    fit = calibrate_matches(bins, PRIOR, folds=FOLDS, seed=SEED, least_gain=RULES.least_gain)
    assert fit.calibration.both is None
    separate = said(rng, 500)
    fit = calibrate_matches(separate, PRIOR, folds=FOLDS, seed=SEED, least_gain=RULES.least_gain)
    assert fit.calibration.both == fit.models["both"].curve


def test_verdicts_of_two_months_ago_are_held_out_as_those_of_today_are() -> None:
    """RET-15, LRN-2: each counts a quarter then; nearly all lie alone in their bin, and none is lost by rounding."""
    today = said(np.random.default_rng(6), 1000)
    old = today.with_counts(today.good / 4.0, today.bad / 4.0)
    fits = [
        calibrate_matches(bins, PRIOR, folds=FOLDS, seed=SEED, least_gain=RULES.least_gain) for bins in (today, old)
    ]
    assert float(fits[1].held_out["both"].mass.sum()) == pytest.approx(old.observations)
    assert fits[1].gains["both"] == pytest.approx(fits[0].gains["both"], abs=0.02)
    assert fits[1].calibration.both is not None
