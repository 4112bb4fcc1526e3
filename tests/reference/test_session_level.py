"""LRN-5: a session's own belief against the truth of simulated populations, and against its definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import betaincinv

from weft.domain.documents import Domain
from weft.domain.ranking import Scope, Signal
from weft.learning.evidence import MICRO, Evidence, EvidenceKey
from weft.learning.pooling.agreement import read_agreement
from weft.learning.pooling.gathering import COLUMNS, SIGNALS
from weft.learning.pooling.hierarchy import Level, Pooled, pool, pool_below
from weft.learning.pooling.sessions import SessionEvidence, from_plain, moments_among, observed_by, to_plain
from weft.learning.pooling.shrinkage import Moments, moments_of
from weft.settings import load_settings

PRIORS = load_settings(environment={}).priors
POOLING = PRIORS.pooling
AGENTS, COMPLETED, BEFORE = 40, 8, 30
DAY = 100


class Population:
    """Agents of one domain, completed sessions of each, and one session under way."""

    def __init__(self, seed: int, *, agents_kappa: float, sessions_kappa: float, observed: int) -> None:
        rng = np.random.default_rng(seed)
        of_agent = rng.beta(0.6 * agents_kappa, 0.4 * agents_kappa, AGENTS)
        rate = np.repeat(of_agent, COMPLETED + 1).reshape(AGENTS, -1)
        truth = rng.beta(sessions_kappa * rate, sessions_kappa * (1.0 - rate))
        n = np.full((AGENTS, COMPLETED + 1), BEFORE)
        n[:, -1] = rng.integers(1, observed + 1, AGENTS)
        hits = rng.binomial(n, truth)
        self.truth = truth[:, -1]
        self.hits, self.n = hits[:, -1:].astype(float), n[:, -1:].astype(float)
        self.completed = hits[:, :-1].reshape(-1, 1) * 1.0, (n - hits)[:, :-1].reshape(-1, 1) * 1.0
        self.all_hits, self.all_misses = (each.sum(axis=1, keepdims=True) * 1.0 for each in (hits, n - hits))

    def agents(self) -> Pooled:
        """What is believed of every agent, from all of its sessions."""
        level = Level(np.zeros(AGENTS, dtype=np.int64), self.all_hits, self.all_misses)
        total = self.all_hits.sum(axis=0, keepdims=True), self.all_misses.sum(axis=0, keepdims=True)
        root = Pooled(np.full((1, 1), 0.5), np.full((1, 1), 40.0), *total)
        return pool(root, [level], POOLING)[1]

    def sessions(self) -> Pooled:
        """What the sessions under way believe."""
        hits, misses = self.completed
        parent = np.repeat(np.arange(AGENTS), COMPLETED)
        moments = moments_of(parent, AGENTS, prior_mean=np.zeros_like(hits), hits=hits, misses=misses)
        here = Level(np.arange(AGENTS), self.hits, self.n - self.hits)
        return pool_below(self.agents(), here, POOLING, correlation=moments.correlation())


@pytest.mark.parametrize("sessions_kappa", [5.0, 30.0, 150.0], ids="sessions that differ by kappa {}".format)
@pytest.mark.parametrize("agents_kappa", [10.0, 100.0], ids="agents that differ by kappa {}".format)
@pytest.mark.parametrize("observed", [3, 10, 40, 200], ids="up to {} observations".format)
def test_a_sessions_belief_beats_its_evidence_alone_and_its_agents_belief(
    observed: int, agents_kappa: float, sessions_kappa: float
) -> None:
    """LRN-5: mean squared error against the true rates of 40 sessions in 60 populations, whichever way they differ."""
    errors: dict[str, list[float]] = {"pooled": [], "alone": [], "agent": []}
    for seed in range(60):
        one = Population(seed, agents_kappa=agents_kappa, sessions_kappa=sessions_kappa, observed=observed)
        guesses = {
            "pooled": one.sessions().mean[:, 0],
            "alone": ((one.hits + 1.0) / (one.n + 2.0))[:, 0],
            "agent": one.agents().mean[:, 0],
        }
        for name, guess in guesses.items():
            errors[name].append(float(np.mean((guess - one.truth) ** 2)))
    mean = {name: float(np.mean(each)) for name, each in errors.items()}
    assert mean["pooled"] < mean["alone"]
    assert mean["pooled"] < mean["agent"]


@pytest.mark.parametrize("sessions_kappa", [10.0, 30.0, 100.0], ids="sessions that differ by kappa {}".format)
@pytest.mark.parametrize("observed", [3, 20, 200], ids="up to {} observations".format)
def test_a_sessions_intervals_hold_the_truth_as_often_as_they_say(observed: int, sessions_kappa: float) -> None:
    """LRN-5: coverage of 90 % intervals of the rates of 40 sessions in 60 populations."""
    held = []
    for seed in range(60):
        one = Population(seed, agents_kappa=30.0, sessions_kappa=sessions_kappa, observed=observed)
        a, b = (side[:, 0] for side in one.sessions().moment_matched)
        low, high = (betaincinv(a, b, tail) for tail in (0.05, 0.95))
        held.append(np.mean((low <= one.truth) & (one.truth <= high)))
    assert 0.85 <= np.mean(held) <= 0.95


def _said(hits: float, misses: float, *, agent: str = "a", model: str = "m", signal: Signal = Signal.GRAPH) -> Evidence:
    masses = {"for": round(hits * MICRO), "against": round(misses * MICRO)}
    parameter = f"signal.{signal.value}.good"
    return Evidence(
        {EvidenceKey(DAY, "code", model, agent, "*", parameter, bin_): each for bin_, each in masses.items()}
    )


def test_a_session_stands_below_its_agent_as_an_agent_below_its_model() -> None:
    """LRN-5: what is read is the mean of Beta(κ·m + hits, κ·(1 − m) + misses) over κ, m its agent's mean."""
    base = Evidence.sum(_said(10.0 * rate, 10.0 * (1.0 - rate), agent=name) for name, rate in (("a", 0.8), ("b", 0.4)))
    overlay = _said(2.0, 6.0)
    moments = moments_among(observed_by(_said(*each)) for each in ((9.0, 1.0), (2.0, 8.0), (5.0, 5.0), (7.0, 3.0)))
    scope, column = Scope(Domain.CODE, "m", "a"), COLUMNS["signal.graph.good"]
    agreement = read_agreement(PRIORS, base + overlay, DAY, SessionEvidence(overlay, moments))
    shared = read_agreement(PRIORS, base + overlay, DAY)
    ours = agreement.posterior(agreement.node(scope))
    agent = shared.posterior(shared.node(scope))
    place = SIGNALS.index(Signal.GRAPH)
    believed = _kappas(shared._tree.levels[4].strength, column, moments, shared._tree.columns)
    prior = agent.a[place, 0] / (agent.a[place, 0] + agent.b[place, 0])
    expected = sum(weight * (kappa * prior + 2.0) / (kappa + 8.0) for kappa, weight in believed.items())
    assert math.isclose(ours.a[place, 0] / (ours.a[place, 0] + ours.b[place, 0]), expected, rel_tol=1e-9)


def test_a_session_carries_what_it_learned_to_another_model() -> None:
    """LRN-14, LRN-21: it read of its agent under one model, and asks with another that others used."""
    base = Evidence.sum(
        _said(20.0, 20.0, agent=name, model=model) for name, model in (("a", "m"), ("b", "m"), ("b", "n"))
    )
    overlay = _said(36.0, 4.0)
    session = SessionEvidence(overlay, moments_among([]))
    column = SIGNALS.index(Signal.GRAPH)
    alone, shared = (read_agreement(PRIORS, base + overlay, DAY, each) for each in (session, None))
    before = read_agreement(PRIORS, base, DAY)

    def rate(agreement, model: str) -> float:
        belief = agreement.posterior(agreement.node(Scope(Domain.CODE, model, "a")))
        return float(belief.a[column, 0] / (belief.a[column, 0] + belief.b[column, 0]))

    assert rate(alone, "n") > rate(shared, "n") > rate(before, "n")
    assert rate(alone, "n") - rate(before, "n") >= 0.5 * (rate(alone, "m") - rate(before, "m"))


def _kappas(above, column: int, moments: Moments, columns: np.ndarray) -> dict[float, float]:
    """Probability of each κ of sessions, loop by loop: moved from the level above, times a scaled χ²."""
    at = columns.tolist().index(column)
    rho = moments.beyond[column] / moments.at_most[column]
    freedom, chance = moments.freedom[column], moments.freedom[column] / moments.weight[column]
    kappas, weight = above.kappas.tolist(), {}
    stated = {kappa: kappa * POOLING.initial / (kappa + POOLING.initial) ** 2 for kappa in kappas}
    prior = dict.fromkeys(kappas, 0.0)
    for start, probability in zip(kappas, above.weights[:, at].tolist(), strict=True):
        moves = {k: stated[k] * math.exp(-((math.log(k / start) / math.log(POOLING.ratio)) ** 2) / 2) for k in kappas}
        for kappa, move in moves.items():
            prior[kappa] += probability * move / sum(moves.values())
    for kappa in kappas:
        expected = chance + 1 / (kappa + 1)
        spread = max(chance + rho, 0.0) / expected
        weight[kappa] = prior[kappa] * expected ** (-freedom / 2) * math.exp(-freedom / 2 * spread)
    return {kappa: each / sum(weight.values()) for kappa, each in weight.items()}


def test_how_much_sessions_differ_is_found_from_those_that_completed() -> None:
    """LRN-5: the moments recover ρ = 1/(κ + 1), add up over partitions, and come back from JSON as they were."""
    rng = np.random.default_rng(3)
    rates = {name: rng.beta(12.0 * mean, 12.0 * (1 - mean), 600) for name, mean in (("a", 0.7), ("b", 0.4))}
    hits = {name: rng.binomial(25, rate) for name, rate in rates.items()}
    sessions = [observed_by(_said(h, 25 - h, agent=name)) for name, many in hits.items() for h in many.tolist()]
    halves = moments_among(sessions[::2]), moments_among(sessions[1::2])
    found = (halves[0] + halves[1]).correlation()
    column = COLUMNS["signal.graph.good"]
    assert found.freedom[column] == 2 * (2 * 300 - 2)
    assert math.isclose(found.rho[column], 1.0 / 13.0, rel_tol=0.15)
    assert from_plain(to_plain(halves[0])).correlation().rho.tolist() == halves[0].correlation().rho.tolist()
    nothing = moments_among([]).correlation()
    assert not nothing.freedom.any()
