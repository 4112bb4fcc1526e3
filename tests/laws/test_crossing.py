"""LRN-21: laws of what models and agents make of one another's evidence."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from weft.domain.documents import Domain
from weft.domain.ranking import ANY, Scope
from weft.learning.evidence import MICRO, Evidence, EvidenceKey
from weft.learning.pooling.agreement import Agreement, read_agreement
from weft.learning.pooling.gathering import SIGNALS
from weft.settings import load_settings

PRIORS = load_settings(environment={}).priors
# With κ held, so that only what was observed moves: a re-estimated κ may shift belief between levels.
KAPPA = {"minimum": 20.0, "initial": 20.0, "maximum": 20.0}
HELD = PRIORS.model_copy(update={"pooling": PRIORS.pooling.model_copy(update=KAPPA)})
DAY = 10

names = st.sampled_from
rows = st.tuples(
    names(["code", "history"]),
    names([ANY, "x", "y", "z"]),
    names([ANY, "a", "b", "c"]),
    names(["signal.graph.good", "signal.trust.bad"]),
    names(["for", "against"]),
    st.integers(1, 300 * MICRO),
)
histories = st.lists(rows, max_size=14)


def evidence_of(history: list[tuple]) -> Evidence:
    return Evidence.sum(
        Evidence({EvidenceKey(DAY, domain, model, agent, ANY, parameter, bin_): micro})
        for domain, model, agent, parameter, bin_, micro in history
    )


def mean(agreement: Agreement, *scope: str) -> np.ndarray:
    """Believed rates of all signals, (signals, 2)."""
    posterior = agreement.posterior(agreement.node(Scope(Domain(scope[0]), *scope[1:])))
    return posterior.a / (posterior.a + posterior.b)


@settings(max_examples=examples(40), deadline=None)
@given(histories, st.randoms(use_true_random=False))
def test_the_order_of_models_and_agents_leaves_no_trace(history: list[tuple], chance: object) -> None:
    """LRN-21, ARC-9: the same bits however evidence was gathered; other names make the same beliefs."""
    shuffled = chance.sample(history, len(history))
    first, second = (read_agreement(PRIORS, evidence_of(each), DAY) for each in (history, shuffled))
    renamed = {ANY: ANY, "x": "q", "y": "p", "z": "o", "a": "k", "b": "j", "c": "i"}  # in the opposite order
    other = [(each[0], renamed[each[1]], renamed[each[2]], *each[3:]) for each in history]
    third = read_agreement(PRIORS, evidence_of(other), DAY)
    for scope in {each[:3] for each in history}:
        assert np.array_equal(mean(first, *scope), mean(second, *scope))
        turned = scope[0], renamed[scope[1]], renamed[scope[2]]
        assert np.allclose(mean(first, *scope), mean(third, *turned), atol=1e-7)


@settings(max_examples=examples(40), deadline=None)
@given(histories)
def test_an_unseen_leaf_believes_what_its_parents_do(history: list[tuple]) -> None:
    """LRN-5, LRN-21: of a new agent what its model does, of a new model what the agent does, of both new the domain."""
    agreement = read_agreement(PRIORS, evidence_of(history), DAY)
    for domain, model, agent in {each[:3] for each in history}:
        assert np.array_equal(mean(agreement, domain, model, "new"), mean(agreement, domain, model, ANY))
        assert np.array_equal(mean(agreement, domain, "new", agent), mean(agreement, domain, ANY, agent))
        assert np.array_equal(mean(agreement, domain, "new", "new"), mean(agreement, domain, ANY, ANY))


OUTDONE = [  # an agent that is right where its model alone is wrong
    ("history", "x", ANY, "signal.graph.good", "for", 300 * MICRO),
    ("history", "y", "a", "signal.graph.good", "for", 300 * MICRO),
    ("history", "y", ANY, "signal.graph.good", "against", 300 * MICRO),
]


@settings(max_examples=examples(60), deadline=None)
@given(histories, rows)
@example(OUTDONE, ("history", "z", "a", "signal.graph.good", "for", 20 * MICRO))
def test_more_evidence_is_never_less_heard(history: list[tuple], more: tuple) -> None:
    """LRN-21: what speaks for a rate raises it where it was observed, and what speaks against it lowers it."""
    before = read_agreement(HELD, evidence_of(history), DAY)
    after = read_agreement(HELD, evidence_of([*history, more]), DAY)
    signal, kind = more[3].split(".")[1:]
    at = [each.value for each in SIGNALS].index(signal), int(kind == "bad")
    moved = float(mean(after, *more[:3])[at] - mean(before, *more[:3])[at])
    assert moved >= -1e-6 if more[4] == "for" else moved <= 1e-6


@settings(max_examples=examples(40), deadline=None)
@given(histories)
def test_beliefs_stay_rates_whatever_was_observed(history: list[tuple]) -> None:
    """LRN-21: in (0, 1), with evidence behind them that is no less than nothing."""
    agreement = read_agreement(PRIORS, evidence_of(history), DAY)
    for scope in [(d, m, a) for d in ("code", "history") for m in (ANY, "x", "y") for a in (ANY, "a", "b")]:
        posterior = agreement.posterior(agreement.node(Scope(Domain(scope[0]), *scope[1:])))
        assert (posterior.a > 0.0).all()
        assert (posterior.b > 0.0).all()
        assert (posterior.n_effective >= 0.0).all()
        assert math.isfinite(float(posterior.a.sum() + posterior.b.sum()))
