"""LRN-5: partial pooling against a loop-by-loop implementation, and against the truth of simulated populations."""

import math

import numpy as np
import pytest
from scipy.special import betaincinv

from tests.support.pooling_by_hand import node_by_node
from weft.domain.documents import Domain
from weft.domain.ranking import Scope, Signal
from weft.learning.beliefs import read_beliefs
from weft.learning.evidence import MICRO, Evidence, EvidenceKey
from weft.learning.pooling.hierarchy import Level, Pooled, pool
from weft.learning.pooling.shrinkage import intraclass_correlation
from weft.settings import load_settings

PRIORS = load_settings(environment={}).priors
POOLING = PRIORS.pooling


def _beta(rng: np.random.Generator, mean, kappa: float):
    return rng.beta(kappa * mean, kappa * (1.0 - mean))


def _root(hits: np.ndarray, misses: np.ndarray, kappa: float = 40.0) -> Pooled:
    return Pooled(np.full((1, hits.shape[1]), 0.5), np.full((1, hits.shape[1]), kappa), hits, misses)


def _population(seed: int, shape: tuple[int, int, int], kappa: float, most: int) -> tuple[list[Level], np.ndarray]:
    """Levels with all evidence at the agents, and the true rate of every agent; one parameter."""
    rng = np.random.default_rng(seed)
    domains, models, agents = shape
    truth_domain = _beta(rng, np.full(domains, 0.6), kappa)
    truth_model = _beta(rng, np.repeat(truth_domain, models), kappa)
    truth_agent = _beta(rng, np.repeat(truth_model, agents), kappa)
    n = rng.integers(0, most, truth_agent.size)
    hits = rng.binomial(n, truth_agent)
    nothing = lambda size: np.zeros((size, 1))  # noqa: E731
    levels = [
        Level(np.zeros(domains, dtype=np.int64), nothing(domains), nothing(domains)),
        Level(np.repeat(np.arange(domains), models), nothing(domains * models), nothing(domains * models)),
        Level(np.repeat(np.arange(domains * models), agents), hits[:, None].astype(float), (n - hits)[:, None] * 1.0),
    ]
    return levels, truth_agent


@pytest.mark.parametrize("kappa", [5.0, 30.0, 150.0], ids="siblings that differ by kappa {}".format)
@pytest.mark.parametrize("most", [3, 4, 5, 8, 30, 120, 600], ids="less than {} observations".format)
def test_partial_pooling_beats_no_pooling_and_complete_pooling(kappa: float, most: int) -> None:
    """LRN-5: smaller mean squared error against the true rates of 400 agents in 20 populations."""
    errors = {"partial": [], "none": [], "complete": []}
    for seed in range(20):
        levels, truth = _population(seed, (4, 4, 25), kappa, most)
        hits, misses = levels[2].hits, levels[2].misses
        totals = hits.sum(axis=0, keepdims=True), misses.sum(axis=0, keepdims=True)
        pooled = pool(_root(*totals), levels, POOLING)[3]
        alone = (hits + 1.0) / (hits + misses + 2.0)  # each agent for itself, from a uniform prior
        errors["partial"].append(np.mean((pooled.mean[:, 0] - truth) ** 2))
        errors["none"].append(np.mean((alone[:, 0] - truth) ** 2))
        errors["complete"].append(np.mean((totals[0] / (totals[0] + totals[1]) - truth) ** 2))
    mean = {name: float(np.mean(each)) for name, each in errors.items()}
    assert mean["partial"] < mean["none"]
    assert mean["partial"] < mean["complete"]


@pytest.mark.parametrize("kappa", [10.0, 30.0, 100.0], ids="siblings that differ by kappa {}".format)
@pytest.mark.parametrize("most", [8, 20, 60, 400], ids="up to {} observations".format)
def test_intervals_hold_the_truth_as_often_as_they_say(most: int, kappa: float) -> None:
    """LRN-5: coverage of 90 % intervals of the rates of 400 agents in 20 populations."""
    held = []
    for seed in range(20):
        levels, truth = _population(seed, (4, 4, 25), kappa, most)
        totals = levels[2].hits.sum(axis=0, keepdims=True), levels[2].misses.sum(axis=0, keepdims=True)
        pooled = pool(_root(*totals), levels, POOLING)[3]
        a, b = pooled.moment_matched
        low, high = (betaincinv(a[:, 0], b[:, 0], tail) for tail in (0.05, 0.95))
        held.append(np.mean((low <= truth) & (truth <= high)))
    assert 0.85 <= np.mean(held) <= 0.95


@pytest.mark.parametrize("kappa", [4.0, 20.0, 80.0])
def test_kappa_is_found_from_how_much_siblings_differ(kappa: float) -> None:
    """LRN-5: the method of moments recovers the simulated ρ = 1 / (κ + 1) from 2,000 siblings."""
    rng = np.random.default_rng(5)
    truth = _beta(rng, np.full(2000, 0.7), kappa)
    n = rng.integers(5, 60, 2000)
    hits = rng.binomial(n, truth)
    rho, freedom, _ = intraclass_correlation(
        np.repeat(np.arange(4), 500),
        4,
        prior_mean=np.full((2000, 1), 0.5),
        hits=hits[:, None] * 1.0,
        misses=(n - hits)[:, None] * 1.0,
    )
    assert freedom[0] == 4 * (500 - 1)
    assert math.isclose(rho[0], 1.0 / (kappa + 1.0), rel_tol=0.15)


@pytest.mark.parametrize("seed", range(4))
def test_all_at_once_equals_node_by_node(seed: int) -> None:
    """LRN-5: every posterior mean of a ragged tree with offsets, against loops over nodes and children."""
    rng = np.random.default_rng(seed)
    parents = [np.zeros(3, dtype=np.int64), rng.integers(0, 3, 7), rng.integers(0, 7, 30)]
    masses = [(rng.uniform(0, 20, (len(p), 2)), rng.uniform(0, 20, (len(p), 2))) for p in parents]
    masses[2][0][4], masses[2][1][4] = 0.0, 0.0  # a leaf without evidence
    offset = rng.normal(0.0, 0.3, (3, 2))
    factor = np.array([1.0, 2.0, 1.0])
    levels = [
        Level(parents[0], *masses[0], offset, factor),
        Level(parents[1], *masses[1]),
        Level(parents[2], *masses[2]),
    ]
    root = _root(np.array([[50.0, 3.0]]), np.array([[20.0, 9.0]]))
    pooled = pool(root, levels, POOLING)
    for parameter in range(2):
        expected = node_by_node(root, levels, parameter, POOLING)
        for depth in range(3):
            ours = pooled[depth + 1]
            for node, mean in enumerate(expected[depth]):
                assert math.isclose(ours.mean[node, parameter], mean, rel_tol=1e-9)


def _agreement(scope: Scope, signal: Signal, *, rate: float, mass: float) -> Evidence:
    """`mass` observations of a signal that agrees with good and with bad outcomes at `rate`, on day 100."""
    at = (100, scope.domain.value, scope.model, scope.agent, "*")
    masses = {"for": round(mass * rate * MICRO), "against": round(mass * (1.0 - rate) * MICRO)}
    return Evidence(
        {
            EvidenceKey(*at, f"signal.{signal.value}.{outcome}", bin_): micro
            for outcome in ("good", "bad")
            for bin_, micro in masses.items()
        }
    )


def test_an_unseen_agent_reads_its_domains_belief_and_a_seen_one_its_own() -> None:
    """LRN-5."""
    evidence = Evidence.sum(
        _agreement(Scope(Domain.CODE, "m", agent), Signal.GRAPH, rate=rate, mass=300.0)
        for agent, rate in {"one": 0.9, "two": 0.7, "three": 0.55}.items()
    )
    beliefs = read_beliefs(PRIORS, evidence, now=100 * 86_400.0)
    graph = {
        scope: beliefs.weights(scope, list(Signal))[Signal.GRAPH]
        for scope in (
            Scope(Domain.CODE),
            Scope(Domain.CODE, "unseen", "unseen"),
            Scope(Domain.CODE, "m"),
            Scope(Domain.CODE, "m", "unseen"),
            Scope(Domain.CODE, "m", "one"),
            Scope(Domain.CODE, "m", "three"),
        )
    }
    domain, unseen, model, new, one, three = graph.values()
    assert unseen == domain
    assert new == model
    assert three.mean < domain.mean < one.mean
    # Its agents account for nearly all that was seen of the model.
    assert (one.level, model.level, domain.level) == ("model and agent", "domain", "domain")


def test_a_domain_without_evidence_of_its_own_listens_to_the_others() -> None:
    """LRN-5: what departs from the priors in one domain moves the others by less, each from its own prior."""
    evidence = _agreement(Scope(Domain.CODE), Signal.TRUST, rate=0.95, mass=420.0)
    before, after = (read_beliefs(PRIORS, each, now=100 * 86_400.0) for each in (Evidence(), evidence))
    trust = {
        domain: [b.weights(Scope(domain), list(Signal))[Signal.TRUST] for b in (before, after)] for domain in Domain
    }
    moved = {domain: after.mean - before.mean for domain, (before, after) in trust.items()}
    assert 0.0 < moved[Domain.HISTORY] < moved[Domain.CODE]
    assert trust[Domain.HISTORY][0].level == "prior"
    assert trust[Domain.HISTORY][1].level == "global"


def _leaves(signals: list[str], agents: int) -> Evidence:
    """Masses for and against each signal, of as many agents in every domain."""
    return Evidence(
        {
            EvidenceKey(100, domain.value, f"m{agent % 50}", f"a{agent}", "*", f"signal.{signal}", bin_): MICRO + agent
            for signal in signals
            for domain in Domain
            for agent in range(agents)
            for bin_ in ("for", "against")
        }
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "signals",
    [
        pytest.param(["graph.good", "trust.bad"], id="many agents of two signals"),
        pytest.param([f"{signal.value}.good" for signal in Signal], id="every signal"),
    ],
)
def test_a_million_leaves_are_read(signals: list[str]) -> None:
    """LRN-13: from two million masses to the pooled beliefs of a million leaves, domain × model × agent × signal."""
    evidence = _leaves(signals, math.ceil(1_000_000 / len(Domain) / len(signals)))
    assert len(evidence.counts) >= 2_000_000
    beliefs = read_beliefs(PRIORS, evidence, now=100 * 86_400.0)
    assert beliefs.weights(Scope(Domain.CODE, "m1", "a1"), list(Signal))[Signal.GRAPH].n_effective > 0.0
