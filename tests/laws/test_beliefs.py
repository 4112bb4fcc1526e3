"""Laws of what is read from evidence: shares, order, monotony, recency."""

import math
import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from tests.support.examples import examples
from tests.support.outcomes import outcome_evidence
from weft.domain.documents import Domain
from weft.domain.ids import ContentHash
from weft.domain.ranking import Scope, Signal
from weft.learning.beliefs import read_beliefs
from weft.learning.evidence import MICRO, Evidence, EvidenceKey
from weft.learning.pooling.agreement import Agreement, read_agreement
from weft.learning.pooling.weights import discriminant
from weft.learning.recency import recency
from weft.settings import load_settings

PRIORS = load_settings(environment={}).priors
NOW = 86_400.0 * 10
UNTAUGHT = read_beliefs(PRIORS, Evidence(), now=NOW)
shares = st.floats(0.0, 1.0)
scopes = st.builds(Scope, st.sampled_from(list(Domain)), st.sampled_from(["*", "m"]), st.sampled_from(["*", "a"]))
outcomes = st.fixed_dictionaries(
    {
        "day": st.integers(0, 10),
        "scope": scopes,
        "intent": st.just("*"),
        "signals": st.fixed_dictionaries({signal.value: shares for signal in Signal}),
        "score": shares,
        "content_hash": st.sampled_from(["a" * 64, "b" * 64]).map(ContentHash),
        "good": st.booleans(),
        "weight": st.floats(0.0, 50.0),
    }
)
histories = st.lists(outcomes, max_size=5)
active_signals = st.sets(st.sampled_from(list(Signal)), min_size=1)


def _agreement(agreement: Agreement, scope: Scope) -> dict[Signal, float]:
    """How often each signal agrees with outcomes, as is believed at a scope."""
    posterior = agreement.posterior(agreement.node(scope), agreement.intent(scope))
    rates = posterior.a / (posterior.a + posterior.b)
    return dict(zip(Signal, rates.mean(axis=1).tolist(), strict=True))


def _total(history: list[dict]) -> Evidence:
    return Evidence.sum(outcome_evidence(**outcome) for outcome in history)


@settings(max_examples=examples(35), deadline=None)
@given(histories, scopes, active_signals, st.integers(0, 2**32))
def test_weights_are_shares_of_the_active_signals(history: list[dict], scope: Scope, active: set, seed: int) -> None:
    """RET-14: believed and sampled weights sum to 1 and never round above it; intervals hold their mean."""
    beliefs = read_beliefs(PRIORS, _total(history), now=NOW)
    believed = beliefs.weights(scope, active)
    sampled = beliefs.sampled_weights(scope, active, np.random.default_rng(seed))
    assert believed.keys() == sampled.keys() == active
    for weights in ([belief.mean for belief in believed.values()], list(sampled.values())):
        assert min(weights) >= 0.0
        assert math.fsum(weights) <= 1.0
        assert math.isclose(math.fsum(weights), 1.0, abs_tol=1e-12)
    assert all(0.0 <= belief.low <= belief.mean <= belief.high <= 1.0 for belief in believed.values())
    assert all(belief.n_effective >= 0.0 for belief in believed.values())


@settings(max_examples=examples(25), deadline=None)
@given(histories, scopes, st.randoms(use_true_random=False))
def test_equal_evidence_reads_as_the_same_bits(history: list[dict], scope: Scope, chance: random.Random) -> None:
    """ARC-1, ARC-9: the order in which evidence was gathered leaves no trace, not even in the last bit."""
    shuffled = chance.sample(history, len(history))
    first, second = (read_beliefs(PRIORS, _total(each), now=NOW) for each in (history, shuffled))
    assert first.weights(scope, list(Signal)) == second.weights(scope, list(Signal))
    hashes = [ContentHash("a" * 64), ContentHash("b" * 64)]
    assert np.array_equal(*(each.content_signals(hashes).usage for each in (first, second)))


@settings(max_examples=examples(35), deadline=None)
@given(histories, scopes, st.sampled_from(list(Signal)), st.sampled_from(["good", "bad"]), st.floats(0.1, 100.0))
def test_more_agreement_never_lowers_what_is_believed_of_it(
    history: list[dict], scope: Scope, signal: Signal, outcome: str, mass: float
) -> None:
    """LRN-4: mass for a signal at a scope raises the belief in its agreement there, or leaves it."""
    key = EvidenceKey(10, scope.domain.value, scope.model, scope.agent, "*", f"signal.{signal}.{outcome}", "for")
    # With κ held, so that only what was observed moves: a re-estimated κ may shift belief between levels.
    held = PRIORS.pooling.model_copy(update={"minimum": 20.0, "initial": 20.0, "maximum": 20.0})
    priors = PRIORS.model_copy(update={"pooling": held})
    before = _total(history)
    after = before + Evidence({key: round(mass * MICRO)})
    less, more = (_agreement(read_agreement(priors, each, 10), scope)[signal] for each in (before, after))
    assert more >= less - 1e-12


@st.composite
def spreads(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Log-odds (1, n) and a covariance (n, n)."""
    size = draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    factors = rng.normal(size=(size, draw(st.integers(1, 8))))
    return rng.normal(size=(1, size)), factors @ factors.T / 10.0 + 0.02 * np.eye(size)


@settings(max_examples=examples(60), deadline=None)
@given(spreads(), st.floats(0.0, 3.0), st.integers(0, 5))
def test_weights_are_the_best_that_none_is_negative_of(
    case: tuple[np.ndarray, np.ndarray], more: float, place: int
) -> None:
    """LRN-4: as non-negative least squares finds them; and more agreement of a signal never lowers its own weight."""
    odds, spread = case
    weights = discriminant(odds, spread)
    root = np.linalg.cholesky(spread)
    expected, _ = nnls(root.T, np.linalg.solve(root, odds[0]), maxiter=1000)
    assert np.allclose(weights[0], expected, rtol=1e-4, atol=1e-4 * (1.0 + expected.max()))
    at = place % odds.shape[1]
    raised = discriminant(odds + more * np.eye(odds.shape[1])[at], spread)
    assert raised[0, at] >= weights[0, at] - 1e-6 * (1.0 + weights.max())


@given(st.integers(-100, 10_000), st.integers(0, 1000), st.floats(0.5, 1000.0))
def test_recency_lies_in_zero_to_one_and_never_grows_with_age(age: int, older: int, half_life: float) -> None:
    """LRN-2: above 0 as far as a float reaches, 2^(−1074)."""
    assert 0.0 <= recency(age + older, half_life) <= recency(age, half_life) <= 1.0
    assert recency(age, half_life) > 0.0 or age / half_life > 1074


@given(st.sampled_from(list(Domain)), st.floats(0.0, 1e6), st.floats(0.0, 1e6))
def test_freshness_lies_in_zero_to_one_and_never_grows_with_age(domain: Domain, age: float, older: float) -> None:
    """LRN-6."""
    assert 0.0 < UNTAUGHT.freshness(domain, age + older) <= UNTAUGHT.freshness(domain, age) <= 1.0
