"""FBK-10: the examination model recovers how simulated users really look at ranks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from weft.domain.documents import Domain
from weft.domain.events import ShownResult
from weft.learning.evidence import MICRO, Evidence
from weft.learning.observe.examination import Examination, read_examination
from weft.learning.observe.impressions import SHOWN, Cell, ImpressionBuckets, cell_key
from weft.learning.observe.tallies import Tally
from weft.learning.recency import Discount
from weft.settings import load_settings

PRIOR = load_settings(environment={}).priors.examination
HASHES = [f"{rank:064x}" for rank in range(10)]
Look = Callable[[np.random.Generator, np.ndarray], np.ndarray]
"""From what looks right, bool (answers, ranks), to what is looked at."""


def positions(theta: np.ndarray) -> Look:
    """The position-based model: each rank is looked at with its own probability."""
    return lambda rng, right: rng.random(right.shape) < theta[: right.shape[1]]


def cascade(persistence: float, after_click: float) -> Look:
    """The cascade: read from the top; after a click, or after anything else, one reads on with these probabilities."""

    def look(rng: np.random.Generator, right: np.ndarray) -> np.ndarray:
        reads_on = rng.random(right.shape) < np.where(right, after_click, persistence)
        return np.hstack([np.ones((len(right), 1), dtype=bool), np.logical_and.accumulate(reads_on, axis=1)[:, :-1]])

    return look


def browsed(look: Look, *, seed: int, answers: int, ranks: int = 10) -> tuple[Evidence, np.ndarray]:
    """Evidence of answers ranked by score, which tells chances of being right; and how often each rank is looked at."""
    rng = np.random.default_rng(seed)
    # Some questions have good answers and some have none, so that equal scores stand at different ranks.
    topic = rng.uniform(0.2, 0.7, (answers, 1))
    scores = -np.sort(-np.clip(rng.normal(topic, 0.2, (answers, ranks)), 0.0, 1.0), axis=1)
    right = rng.random(scores.shape) < 0.6 * scores
    looked = look(rng, right)
    return counted(scores, looked & right), looked.mean(axis=0)


def counted(scores: np.ndarray, clicked: np.ndarray) -> Evidence:
    """Evidence of answers with these scores by rank, and what of them was clicked."""
    tally, page = Tally(), ImpressionBuckets(0, "*", "*")
    for of_answer, clicks in zip(scores.tolist(), clicked, strict=True):
        results = [
            ShownResult(content_hash=HASHES[rank], rank=rank + 1, domain=Domain.CODE, score=score, signals={})
            for rank, score in enumerate(of_answer)
        ]
        tally.show(page, results)
        for rank in np.flatnonzero(clicks):
            tally.click(page, results[rank], results)
    return tally.freeze()


def learned(evidence: Evidence) -> Examination:
    return read_examination(PRIOR, evidence, Discount(0, 30.0))[Domain.CODE]


def error(belief: Examination, truth: np.ndarray) -> float:
    return max(abs(belief.probability(rank) - each / truth[0]) for rank, each in enumerate(truth, start=1))


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 1.5])
def test_positions_are_recovered(exponent: float) -> None:
    """FBK-10: within .04 at each of ten ranks from 20,000 answers, whether ranks fall off fast or not at all."""
    theta = np.arange(1.0, 11.0) ** -exponent
    evidence, _ = browsed(positions(theta), seed=1, answers=20_000)
    assert error(learned(evidence), theta) < 0.04


def naive(belief: Examination, truth: np.ndarray) -> float:
    """The error of the rate of clicks by rank, relative to the first."""
    clicks, results = (np.bincount(belief.rank, each)[:10] for each in (belief.clicked, belief.shown))
    rates = clicks / results
    return float(np.abs(rates / rates[0] - truth / truth[0]).max())


def test_clicks_by_rank_alone_would_not_recover_them() -> None:
    """FBK-10: the naive rate takes better results for more looks."""
    theta = np.arange(1.0, 11.0) ** -0.5
    belief = learned(browsed(positions(theta), seed=1, answers=20_000)[0])
    assert naive(belief, theta) > 5.0 * error(belief, theta)


@pytest.mark.parametrize(("persistence", "after_click"), [(0.9, 0.0), (0.8, 0.5), (0.95, 0.7)])
def test_a_cascade_is_recovered_as_how_often_its_users_look(persistence: float, after_click: float) -> None:
    """FBK-10: a cascade is no position model: where the own score is high, more was clicked, and left, above. What
    it has for marginal examination is found within .12 at each rank all the same, twice as close as by clicks alone.
    """
    evidence, truth = browsed(cascade(persistence, after_click), seed=2, answers=20_000)
    belief = learned(evidence)
    assert error(belief, truth) < 0.12
    assert naive(belief, truth) > 2.0 * error(belief, truth)


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """FBK-10: coverage of 90 % intervals over nine ranks in 60 worlds drawn from the prior, 500 answers each."""
    stated = np.array([PRIOR.mean(rank) for rank in range(2, 11)])
    held = []
    for world in range(60):
        rng = np.random.default_rng(world)
        exponent = rng.normal(0.0, PRIOR.exponent_spread)
        drawn = stated * np.exp(rng.normal(-exponent * np.log(np.arange(2, 11)), PRIOR.deviation))
        theta = np.concatenate([[1.0], np.minimum(drawn, 1.0)])
        belief = learned(browsed(positions(theta), seed=world, answers=500)[0])
        intervals = [belief.interval(rank, 0.9) for rank in range(2, 11)]
        held += [low <= each <= high for (low, high), each in zip(intervals, theta[1:], strict=True)]
    assert 0.85 <= np.mean(held) <= 0.95


def test_without_clicks_it_is_the_prior_and_who_never_clicks_is_left_out() -> None:
    """FBK-10: an agent that cannot click says nothing about ranks, however much it was shown."""
    shown = [Cell(0, "code", "*", "bot", rank, 2, 4) for rank in range(1, 11)]
    belief = learned(Evidence({cell_key(cell, SHOWN): 1000 * MICRO for cell in shown}))
    assert belief.observations(1) == 0.0
    assert [belief.probability(rank) for rank in (1, 4, 16, 400)] == pytest.approx([1, 1 / 2, 10**-0.5, 10**-0.5])
