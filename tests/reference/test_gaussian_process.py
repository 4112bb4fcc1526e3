"""LRN-8: quality over turns against scikit-learn's Gaussian process on the single observations."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from weft.learning.families.gaussian_process import Quality, matern52, quality_masses, turn_bin, turn_of
from weft.settings import load_settings

PRIOR = load_settings(environment={}).priors.quality
AHEAD = np.array([1.0, 5.0, 17.0, 40.0, 64.0, 90.0])


def kernel() -> object:
    return ConstantKernel(PRIOR.amplitude**2) * Matern(length_scale=PRIOR.length, nu=2.5)


def evidence(turns: np.ndarray, qualities: np.ndarray) -> Counter[str]:
    parts = [quality_masses(int(t), float(q)) for t, q in zip(turns, qualities, strict=True)]
    while len(parts) > 1:  # in pairs, which spares copying a growing sum over and over
        parts = [sum(parts[place : place + 2], Counter()) for place in range(0, len(parts), 2)]
    return sum(parts, Counter())


def conversations(seed: int, count: int, truth, *, last: int = 64) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    turns = rng.integers(1, last + 1, count)
    return turns, np.clip(truth(turns) + rng.normal(0.0, 0.2, count), 0.0, 1.0)


def declining(turns: np.ndarray) -> np.ndarray:
    return 0.75 - 0.35 / (1.0 + np.exp(-(turns - 35.0) / 4.0))


def test_the_kernel_is_matern_five_halves() -> None:
    """LRN-8."""
    assert matern52(AHEAD, AHEAD, PRIOR) == pytest.approx(kernel()(AHEAD[:, None]), abs=1e-12)


def test_without_evidence_it_is_the_prior() -> None:
    """LRN-8: prior mean 0.8 − 0.001 · turn, within the kernel's amplitude."""
    mean, deviation = Quality(PRIOR).predict(AHEAD)
    assert mean == pytest.approx(0.8 - 0.001 * AHEAD)
    assert deviation == pytest.approx(np.full(len(AHEAD), PRIOR.amplitude))


@pytest.mark.parametrize("count", [1, 30, 500])
def test_evidence_aggregated_by_turn_says_what_single_observations_say(count: int) -> None:
    """LRN-8: exact: means of turns with noise σ²/n against scikit-learn on every observation with noise σ²."""
    turns, qualities = conversations(count, count, declining)
    belief = Quality(PRIOR).given(evidence(turns, qualities))
    reference = GaussianProcessRegressor(kernel(), alpha=belief.noise, optimizer=None)
    reference.fit(turns[:, None], qualities - (0.8 - 0.001 * turns))
    mean, deviation = reference.predict(AHEAD[:, None], return_std=True)
    ours = belief.predict(AHEAD)
    assert ours[0] == pytest.approx(mean + 0.8 - 0.001 * AHEAD, abs=1e-6)
    assert ours[1] == pytest.approx(deviation, abs=1e-6)


def test_the_noise_is_found_from_differences_within_turns() -> None:
    """LRN-8: Σq² tells it, whatever the shape of the curve."""
    turns = np.tile(np.arange(1, 41), 50)
    rng = np.random.default_rng(2)
    belief = Quality(PRIOR).given(evidence(turns, 0.5 + 0.2 * np.sin(turns) + rng.uniform(-0.15, 0.15, len(turns))))
    assert belief.noise == pytest.approx(0.3**2 / 12, rel=0.1)


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """LRN-8: 90 % intervals at six turns over 60 curves drawn from the prior."""
    rng = np.random.default_rng(3)
    grid = np.arange(1.0, 101.0)
    hits = []
    for _ in range(60):
        curve = Quality(PRIOR).sample(grid, rng)
        turns = rng.integers(1, 65, 400)
        observed = np.clip(curve[turns - 1] + rng.normal(0.0, 0.1, 400), 0.0, 1.0)
        low, high = Quality(PRIOR).given(evidence(turns, observed)).interval(AHEAD, 0.9)
        at = AHEAD.astype(int) - 1
        hits += [lo <= curve[i] <= hi for lo, hi, i in zip(low, high, at, strict=True) if 0.2 < curve[i] < 0.8]
    assert 0.85 <= np.mean(hits) <= 0.95


def test_the_turn_to_hand_off_is_where_expected_quality_falls_below_the_threshold() -> None:
    """LRN-8: the simulated truth falls below 0.6 at turn 36."""
    belief = Quality(PRIOR).given(evidence(*conversations(4, 3000, declining)))
    falls = 1 + int(np.flatnonzero(declining(np.arange(1, 100)) < 0.6)[0])
    assert belief.hand_off(0.6, horizon=100) == pytest.approx(falls, abs=2)
    assert belief.hand_off(0.1, horizon=50) is None
    assert Quality(PRIOR).hand_off(0.75, horizon=100) == 51  # 0.8 − 0.001 · 51 is the first below


def test_later_turns_share_bins_and_are_told_apart_as_far_as_bins_do() -> None:
    """LRN-8: above a turn count, bins act as inducing points: bounded in number, and close to the exact process."""
    assert [turn_bin(turn) for turn in (1, 64, 65)] == [1, 64, 65]
    bins = [turn_bin(turn) for turn in range(1, 20_000)]
    assert bins == sorted(bins)
    assert len(set(bins)) < 64 + 64
    for turn in (65, 200, 5000):
        assert turn_of(turn_bin(turn)) == pytest.approx(turn, rel=0.0625)

    def slow(turns: np.ndarray) -> np.ndarray:
        return 0.7 - 0.15 * np.tanh(turns / 400.0)

    belief = Quality(PRIOR).given(evidence(*conversations(5, 4000, slow, last=600)))
    at = np.array([100.0, 250.0, 400.0])
    assert belief.predict(at)[0] == pytest.approx(slow(at), abs=0.05)


def test_an_agent_is_shifted_by_what_its_own_turns_say() -> None:
    """LRN-8: by the posterior mean of a constant, N(0, offset²) given its residuals."""
    belief = Quality(PRIOR).given(evidence(*conversations(6, 4000, declining)))
    turns, qualities = conversations(7, 200, lambda turns: declining(turns) - 0.1)
    agent = belief.with_offset(evidence(turns, qualities))
    residual = qualities - belief.predict(turns.astype(float))[0]
    precision = 1.0 / PRIOR.offset**2 + len(turns) / belief.noise
    shift = residual.sum() / belief.noise / precision
    assert agent.predict(AHEAD)[0] - belief.predict(AHEAD)[0] == pytest.approx(shift, abs=1e-6)
    assert -0.13 < shift < -0.07
    unseen = belief.with_offset(Counter())
    assert unseen.predict(AHEAD)[0].tolist() == belief.predict(AHEAD)[0].tolist()
    assert unseen.predict(AHEAD)[1] == pytest.approx(np.sqrt(belief.predict(AHEAD)[1] ** 2 + PRIOR.offset**2))


@pytest.mark.parametrize("own", [0, 5, 50])
def test_intervals_of_an_agent_hold_its_quality_as_often_as_they_say(own: int) -> None:
    """LRN-8: however much is known of its model; of the agent it is what its own turns say."""
    rng = np.random.default_rng(10)
    held = []
    for _ in range(100):
        offsets = np.clip(rng.normal(0.0, PRIOR.offset, 10), -0.15, 0.15)  # qualities end at 1
        of_others = [evidence(rng.integers(1, 30, 100), rng.uniform(0.55, 0.85, 100) + each) for each in offsets[1:]]
        of_agent = evidence(rng.integers(1, 30, own), rng.uniform(0.55, 0.85, own) + offsets[0])
        agent = Quality(PRIOR).given(sum(of_others, of_agent)).with_offset(of_agent)
        (low,), (high,) = agent.interval(np.array([10.0]), 0.9)
        held.append(low <= 0.7 + offsets[0] <= high)
    assert np.mean(held) >= 0.84  # of 100 agents, .90 less two standard deviations


def test_draws_have_the_posterior_covariance() -> None:
    """LRN-8."""
    belief = Quality(PRIOR).given(evidence(*conversations(8, 40, declining)))
    rng = np.random.default_rng(9)
    draws = np.array([belief.sample(AHEAD, rng) for _ in range(1_000)])
    mean, deviation = belief.predict(AHEAD)
    assert draws.mean(axis=0) == pytest.approx(mean, abs=0.01)
    assert draws.std(axis=0) == pytest.approx(deviation, rel=0.06)
