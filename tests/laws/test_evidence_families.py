"""LRN-1, ARC-1: one law, every family of evidence: order is nothing, and what was taken back was never there."""

from __future__ import annotations

import random
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.outcomes import outcome_evidence
from weft.domain.chunks import MadeBy, Overflow
from weft.domain.documents import Domain
from weft.domain.ids import ContentHash
from weft.domain.ranking import Scope
from weft.learning.evidence import Evidence, merge
from weft.learning.families.gaussian_process import quality_masses
from weft.learning.families.survival import survival_masses
from weft.learning.families.threshold import threshold_masses
from weft.learning.observe.sizes import read_sizing
from weft.learning.parameters import reported_evidence
from weft.learning.reported import Reported
from weft.settings import load_settings

PRIORS = load_settings(environment={}).priors
shares = st.floats(0.0, 1.0)
weights = st.floats(0.0, 3.0)
sizes = st.integers(1, 9000)

FAMILIES: dict[str, st.SearchStrategy[Any]] = {
    "trust.blog": st.builds(lambda bin_, n: {bin_: n}, st.sampled_from(["verified", "refuted"]), st.integers(0, 10**7)),
    "decay": st.builds(survival_masses, st.floats(0.0, 1e6), accurate=st.booleans(), weight=weights),
    "threshold": st.builds(threshold_masses, shares, good=st.booleans(), weight=weights),
    "quality": st.builds(quality_masses, st.integers(1, 500), shares, weight=weights),
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
    facts = {"intent": "*", "signals": {}, "score": 0.5, "content_hash": ContentHash("a" * 64)}
    return outcome_evidence(day=day, scope=scope, good=good, weight=weight, made=size, **facts)


TABLES: list[st.SearchStrategy[Evidence]] = [
    st.builds(outcome, days, scopes, st.booleans(), weights, made),
    *(st.builds(reported_evidence, days, scopes, st.just(name), masses) for name, masses in FAMILIES.items()),
]
histories = st.lists(st.one_of(*TABLES), max_size=8)


@given(histories, st.randoms(use_true_random=False))
@settings(max_examples=examples(40))
def test_evidence_of_all_families_adds_up_in_any_order(history: list[Evidence], chance: random.Random) -> None:
    """LRN-1: commutative, associative, with an identity."""
    shuffled = chance.sample(history, len(history))
    halves = reduce(add, shuffled[:3], Evidence()), reduce(add, shuffled[3:], Evidence())
    assert reduce(add, history, Evidence()) == halves[0] + halves[1] == halves[1] + halves[0]
    assert halves[0] + Evidence() == halves[0]


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
