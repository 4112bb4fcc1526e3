"""LRN-21: models and agents cross: against exact solutions, against simulated truths, and by what agents keep."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import betaincinv, expit, logit

from weft.domain.documents import Domain
from weft.domain.ranking import ANY, Scope, Signal
from weft.learning.evidence import MICRO, Evidence, EvidenceKey
from weft.learning.pooling.agreement import read_agreement
from weft.learning.pooling.gathering import SIGNALS
from weft.learning.pooling.hierarchy import Level, Pooled, pool, pool_below
from weft.learning.pooling.tree import Cells, cross
from weft.learning.priors import PoolingPrior
from weft.settings import load_settings

PRIORS = load_settings(environment={}).priors
POOLING = PRIORS.pooling
KAPPA = 20.0
HELD = POOLING.model_copy(update={"minimum": KAPPA, "initial": KAPPA, "maximum": KAPPA})
DAY = 100


def cells_of(model: np.ndarray, agent: np.ndarray, hits: np.ndarray, n: np.ndarray) -> Cells:
    """Of one domain."""
    zero = np.zeros(len(model), dtype=np.int64)
    sizes = (np.zeros(int(each.max()) + 1, dtype=np.int64) for each in (model, agent))
    return Cells(
        zero, model, agent, *sizes, hits.reshape(len(model), -1) * 1.0, (n - hits).reshape(len(model), -1) * 1.0
    )


def domain_of(cells: Cells, pooling: PoolingPrior) -> Pooled:
    """The belief of the domain that cells lie in."""
    hits, misses = (side.sum(axis=0, keepdims=True) for side in (cells.hits, cells.misses))
    root = Pooled(np.full_like(hits, 0.5), np.full_like(hits, 40.0), hits, misses)
    return pool_below(root, Level(np.zeros(1, dtype=np.int64), hits, misses), pooling)


@pytest.mark.parametrize("spread", [0.15, 0.5], ids="rates within {:g} of a half".format)
@pytest.mark.parametrize("seed", range(4))
def test_what_models_and_agents_add_is_the_mode_of_a_logistic_regression(seed: int, spread: float) -> None:
    """LRN-21: means of every model and agent against a general minimiser; some cells name but one, some never fail."""
    rng = np.random.default_rng(seed)
    grid = np.array(
        [(m, a) for m, a in product(range(-1, 5), range(-1, 7)) if (m, a) != (-1, -1) and rng.random() < 0.6]
    )
    model, agent = grid.T
    n = rng.uniform(5.0, 200.0, (len(grid), 2))
    rates_ = np.clip(0.5 + 1.2 * spread * rng.uniform(-1.0, 1.0, n.shape), 0.0, 1.0)
    cells = cells_of(model, agent, n * rates_, n)
    domain = domain_of(cells, HELD)
    models, agents, _ = cross(domain, cells, HELD)
    design = np.hstack([grid[:, :1] == np.arange(5), grid[:, 1:] == np.arange(7)]).astype(float)
    for column in range(2):
        mean, hits, size = domain.mean[0, column], cells.hits[:, column], n[:, column]
        precision = KAPPA * mean * (1.0 - mean)

        def cost(added: np.ndarray, of: tuple[float, ...] = (mean, hits, size, precision)) -> tuple[float, np.ndarray]:
            of_domain, good, seen, pull = of
            log_odds = logit(of_domain) + design @ added
            value = np.logaddexp(0.0, log_odds) @ seen - log_odds @ good + pull * (added @ added) / 2.0
            return value, design.T @ (seen * expit(log_odds) - good) + pull * added

        found = minimize(cost, np.zeros(12), jac=True, method="BFGS", options={"gtol": 1e-7, "maxiter": 2_000})
        expected = expit(logit(mean) + found.x)
        assert np.allclose(models.mean[:, column], expected[:5], atol=1e-6)
        assert np.allclose(agents.mean[:, column], expected[5:], atol=1e-6)


@dataclass(frozen=True)
class Population:
    """Rates that are sums of what model, agent and pair add, and what was seen of some of the pairs."""

    cells: Cells
    truth: np.ndarray
    seen: np.ndarray

    @classmethod
    def drawn(cls, seed: int, *, models: float, agents: float, pairs: float, most: int) -> Population:
        """Standard deviations of each, and up to how many observations of a pair; one pair in three is never seen."""
        rng = np.random.default_rng(seed)
        model, agent = (each.ravel() for each in np.meshgrid(np.arange(5), np.arange(30), indexing="ij"))
        added = rng.normal(0.0, models, 5)[model] + rng.normal(0.0, agents, 30)[agent]
        truth = np.clip(0.55 + added + rng.normal(0.0, pairs, 150), 0.02, 0.98)
        n = np.where(rng.random(150) < 1 / 3, 0, rng.integers(1, most + 1, 150))
        return cls(cells_of(model, agent, rng.binomial(n, truth), n), truth, n > 0)

    def chained(self) -> np.ndarray:
        """Agents below models, as if the same name under another model were another agent."""
        cells, nothing = self.cells, np.zeros((5, 1))
        levels = [
            Level(np.zeros(1, dtype=np.int64), nothing[:1], nothing[:1]),
            Level(np.zeros(5, dtype=np.int64), nothing, nothing),
            Level(cells.model, cells.hits, cells.misses),
        ]
        total = [side.sum(axis=0, keepdims=True) for side in (cells.hits, cells.misses)]
        root = Pooled(np.full((1, 1), 0.5), np.full((1, 1), 40.0), *total)
        return pool(root, levels, POOLING)[3].mean[:, 0]


DIFFER = {
    "agents differ": (0.02, 0.15, 0.02),
    "models differ": (0.12, 0.04, 0.02),
    "pairs are peculiar": (0.08, 0.1, 0.1),
}


@pytest.mark.parametrize(
    ("differ", "most"),
    [(name, most) for name in DIFFER for most in (10, 60, 400) if (name, most) != ("models differ", 10)],
)
def test_crossing_is_nearer_the_truth_than_a_chain(differ: str, most: int) -> None:
    """LRN-21: mean squared error over all 150 pairs of 10 populations, seen or not; each pair alone is worse, too.

    Where models differ much more than agents do, against the prior, and hardly anything was seen, a chain is nearer.
    """
    models, agents, pairs = DIFFER[differ]
    errors = {"crossed": [], "chained": [], "alone": []}
    for seed in range(10):
        population = Population.drawn(seed, models=models, agents=agents, pairs=pairs, most=most)
        cells = population.cells
        crossed = cross(domain_of(cells, POOLING), cells, POOLING).pairs.mean[:, 0]
        alone = ((cells.hits + 1.0) / (cells.n + 2.0))[:, 0]
        guesses = {"crossed": crossed, "chained": population.chained(), "alone": alone}
        for name, guess in guesses.items():
            errors[name].append(np.mean((guess - population.truth) ** 2))
    mean = {name: float(np.mean(each)) for name, each in errors.items()}
    assert mean["crossed"] < mean["chained"]
    assert mean["crossed"] < mean["alone"]


@pytest.mark.parametrize("most", [10, 60, 400], ids="up to {} observations".format)
def test_intervals_of_pairs_hold_the_truth_as_often_as_they_say(most: int) -> None:
    """LRN-5, LRN-21: coverage of 90 % intervals of 150 pairs in 10 populations, seen or not."""
    held = []
    for seed in range(10):
        population = Population.drawn(seed, models=0.05, agents=0.12, pairs=0.06, most=most)
        a, b = cross(domain_of(population.cells, POOLING), population.cells, POOLING).pairs.moment_matched
        low, high = (betaincinv(a[:, 0], b[:, 0], tail) for tail in (0.05, 0.95))
        held.append(np.mean((low <= population.truth) & (population.truth <= high)))
    assert 0.84 <= np.mean(held) <= 0.97


def told(model: str, agent: str, rate: float, n: float) -> Evidence:
    """So many outcomes of either kind that a signal agreed with at that rate."""
    masses = {"for": rate * n, "against": (1.0 - rate) * n}
    return Evidence(
        {
            EvidenceKey(DAY, "code", model, agent, ANY, f"signal.graph.{kind}", bin_): round(each * MICRO)
            for kind in ("good", "bad")
            for bin_, each in masses.items()
        }
    )


def rates(evidence: list[Evidence], *scopes: tuple[str, str]) -> list[float]:
    """What is believed of the signal's agreement under each model and agent."""
    agreement = read_agreement(PRIORS, Evidence.sum(evidence), DAY)
    posteriors = [agreement.posterior(agreement.node(Scope(Domain.CODE, *scope))) for scope in scopes]
    place = SIGNALS.index(Signal.GRAPH)
    return [float(np.mean((each.a / (each.a + each.b))[place])) for each in posteriors]


LEARNED: dict[str, list[tuple[str, str, float]]] = {
    "beside others under the same model": [("X", "one", 0.9), ("X", "two", 0.6), ("X", "three", 0.6)],
    "alone, under a model of its own": [("X", "one", 0.9), ("Y", "two", 0.5)],
    "beside one that uses both models": [("X", "one", 0.9), ("X", "two", 0.5), ("Y", "two", 0.5)],
    "under a model nobody else uses": [("X", "one", 0.9), ("Y", "two", 0.5), ("Y", "three", 0.5)],
}


@pytest.mark.parametrize("cells", LEARNED.values(), ids=LEARNED.keys())
@pytest.mark.parametrize("n", [20.0, 200.0, 1000.0], ids="{:g} observations".format)
def test_an_agent_keeps_half_of_what_it_learned_under_another_model(
    cells: list[tuple[str, str, float]], n: float
) -> None:
    """LRN-21: from what the domain, and what any agent under that model reads, at least half of the way."""
    evidence = [told(*cell, n) for cell in cells]
    domain, anyone, learned, elsewhere = rates(evidence, (ANY, ANY), ("Y", "unseen"), ("X", "one"), ("Y", "one"))
    assert learned > domain + 0.1
    assert elsewhere - domain >= 0.5 * (learned - domain)
    assert elsewhere - anyone >= 0.5 * (learned - anyone)
    (agent,) = rates(evidence, (ANY, "one"))
    assert agent - domain >= 0.5 * (learned - domain)


@pytest.mark.parametrize("n", [20.0, 200.0, 1000.0], ids="{:g} observations".format)
def test_a_model_keeps_what_its_agents_have_in_common_under_a_new_agent(n: float) -> None:
    """LRN-21: three agents of one model agree, three of another do not share that view; and the same two used both."""
    apart = [
        told(model, agent, rate, n)
        for model, rate in (("X", 0.9), ("Y", 0.5))
        for agent in (f"{model}{i}" for i in range(3))
    ]
    both = [told(model, agent, rate, n) for model, rate in (("X", 0.9), ("Y", 0.5)) for agent in ("one", "two")]
    for evidence, agent in ((apart, "X0"), (both, "one")):
        domain, learned, new = rates(evidence, (ANY, ANY), ("X", agent), ("X", "unseen"))
        assert new - domain >= 0.5 * (learned - domain)


def test_what_is_peculiar_to_a_model_with_an_agent_stays_there() -> None:
    """LRN-21: an agent that is good with one model and bad with another is believed to be so with each."""
    cells = [("X", "one", 0.9), ("Y", "one", 0.3), ("X", "two", 0.6), ("Y", "two", 0.6)]
    evidence = [told(*cell, 400.0) for cell in cells]
    good, bad, agent = rates(evidence, ("X", "one"), ("Y", "one"), (ANY, "one"))
    assert good == pytest.approx(0.9, abs=0.03)
    assert bad == pytest.approx(0.3, abs=0.03)
    assert bad + 0.15 < agent < good - 0.15


def test_an_agent_without_a_model_and_a_model_without_an_agent_are_heard() -> None:
    """LRN-21: what names one of both alone is evidence about that one, under whatever it is asked with."""
    evidence = [told(ANY, "one", 0.9, 200.0), told("Y", ANY, 0.5, 200.0), told("X", "two", 0.7, 200.0)]
    domain, agent, under, model, new = rates(evidence, (ANY, ANY), (ANY, "one"), ("X", "one"), ("Y", ANY), ("Y", "new"))
    assert agent - domain > 0.1
    assert under - domain >= 0.5 * (agent - domain)
    assert model < domain - 0.1
    assert new == model
