"""LRN-1, ARC-1: one law, every family of evidence: order is nothing, and what was taken back was never there."""

from __future__ import annotations

import random
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.domain.documents import Domain
from pipelines.domain.ids import ContentHash
from pipelines.domain.ranking import Scope
from pipelines.domain.sizing import MadeBy, Overflow
from pipelines.learning.evidence import Evidence, merge
from pipelines.learning.families.beta import BetaEvidence
from pipelines.learning.families.dirichlet import DirichletEvidence
from pipelines.learning.families.gamma import GammaEvidence
from pipelines.learning.families.gaussian_process import QualityEvidence
from pipelines.learning.families.survival import SurvivalEvidence
from pipelines.learning.families.threshold import ThresholdEvidence
from pipelines.learning.observe.reports import accuracy_evidence, quality_evidence, review_evidence, trust_evidence
from pipelines.learning.reported import Reported
from pipelines.learning.sizing import read_sizing
from pipelines.settings import load_settings
from tests.support.outcomes import outcome_evidence

PRIORS = load_settings(environment={}).priors
TURNS = PRIORS.quality.turns
shares = st.floats(0.0, 1.0)
weights = st.floats(0.0, 3.0)
sizes = st.integers(1, 9000)

FAMILIES: dict[str, tuple[st.SearchStrategy[Any], Any]] = {
    "beta": (st.builds(BetaEvidence.of, shares, weights), BetaEvidence()),
    "dirichlet": (
        st.builds(DirichletEvidence.of, st.integers(0, 2), st.just(3), weights),
        DirichletEvidence((0, 0, 0)),
    ),
    "gamma": (st.builds(GammaEvidence.of, sizes, weights), GammaEvidence()),
    "survival": (
        st.builds(
            SurvivalEvidence.of, st.floats(0.0, 1e6), accurate=st.booleans(), per_doubling=st.just(4), weight=weights
        ),
        SurvivalEvidence(),
    ),
    "threshold": (
        st.builds(ThresholdEvidence.of, shares, good=st.booleans(), bins=st.just(20), weight=weights),
        ThresholdEvidence(),
    ),
    "quality": (
        st.builds(QualityEvidence.of, st.integers(1, 500), shares, turns=st.just(TURNS), weight=weights),
        QualityEvidence(),
    ),
}

scopes = st.builds(Scope, st.sampled_from(Domain), st.sampled_from(["*", "m"]), st.sampled_from(["*", "a"]))
days = st.integers(0, 3)
made = st.builds(
    MadeBy,
    tokens=sizes,
    target=st.none() | sizes,
    minimum=st.none() | sizes,
    before=st.none() | sizes,
    after=st.none() | sizes,
    overflow=st.none() | st.sampled_from(Overflow),
)


def outcome(day: int, scope: Scope, good: bool, weight: float, size: MadeBy) -> Evidence:
    facts = {"intent": "*", "signals": {}, "score": 0.5, "content_hash": ContentHash("a" * 64), "bins": 20}
    return outcome_evidence(day=day, scope=scope, good=good, weight=weight, made=size, **facts)


TABLES: list[st.SearchStrategy[Evidence]] = [
    st.builds(outcome, days, scopes, st.booleans(), weights, made),
    st.builds(accuracy_evidence, days, scopes, FAMILIES["survival"][0]),
    st.builds(review_evidence, days, scopes, FAMILIES["threshold"][0]),
    st.builds(quality_evidence, days, scopes, FAMILIES["quality"][0], turns=st.just(TURNS)),
    st.builds(trust_evidence, days, scopes, st.sampled_from(["blog", "paper"]), FAMILIES["beta"][0]),
]
histories = st.lists(st.one_of(*TABLES), max_size=8)


@pytest.mark.parametrize("family", FAMILIES)
@given(data=st.data(), chance=st.randoms(use_true_random=False))
@settings(max_examples=40)
def test_evidence_of_a_family_adds_up_in_any_order(family: str, data: st.DataObject, chance: random.Random) -> None:
    """LRN-1: commutative, associative, with an identity."""
    one, nothing = FAMILIES[family]
    history = data.draw(st.lists(one, max_size=6))
    shuffled = chance.sample(history, len(history))
    halves = reduce(add, shuffled[:3], nothing), reduce(add, shuffled[3:], nothing)
    assert reduce(add, history, nothing) == halves[0] + halves[1] == halves[1] + halves[0]
    assert halves[0] + nothing == halves[0]


def beliefs(evidence: Evidence) -> list[Any]:
    """Every belief of these families as plain numbers."""
    reported = Reported(PRIORS, evidence, 3)
    sizing = read_sizing(PRIORS, evidence, 3)
    return [
        [reported.decay(domain).mean for domain in Domain],
        reported.threshold(Domain.CODE).mean,
        [(each.sizes["target"], each.overflow, each.shortfall) for each in sizing.values()],
        [value.tolist() for value in reported.quality("m", "a").predict(np.array([1.0, 30.0, 200.0]))],
        [reported.trust(source, model) for source in ("blog", "paper", "other") for model in ("*", "m")],
    ]


@settings(max_examples=12, deadline=None)
@given(histories, st.randoms(use_true_random=False))
def test_beliefs_are_the_same_bits_in_whatever_order_evidence_came(
    history: list[Evidence], chance: random.Random
) -> None:
    """ARC-1, LRN-1: a replay in another order, and a table written and read back, believe the same."""
    replayed = Evidence.sum(chance.sample(history, len(history)))
    expected = beliefs(Evidence.sum(history))
    assert beliefs(replayed) == expected
    assert beliefs(Evidence.from_table(replayed.to_table())) == expected


@settings(max_examples=10, deadline=None)
@given(histories, histories, histories)
def test_a_session_that_is_taken_out_was_never_there(
    base: list[Evidence], session: list[Evidence], others: list[Evidence]
) -> None:
    """LRN-1, LRN-17: merged three ways and subtracted again, for every family at once."""
    before, own, rest = (Evidence.sum(each) for each in (base, session, others))
    merged = merge(before, ours=before + own, theirs=before + rest)
    assert merged == before + own + rest
    assert merged - own == before + rest
    assert beliefs(merged - own) == beliefs(before + rest)
