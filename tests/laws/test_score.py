"""RET-14, RET-18: the contributions are the score."""

import math
from fractions import Fraction

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.candidate_tables import a_hit, a_table, asked_with
from weft.domain.documents import Domain
from weft.domain.ranking import Scope, Signal
from weft.learning.beliefs import read_beliefs
from weft.learning.evidence import Evidence
from weft.quality.signals import lexical, vector
from weft.retrieval.answers import explain_candidates
from weft.retrieval.ranking.context import SignalWeight
from weft.retrieval.ranking.fusion import weighed
from weft.settings import load_settings

BELIEFS = read_beliefs(load_settings(environment={}).priors, Evidence(), now=0.0)
values = st.fixed_dictionaries({signal: st.floats(0.0, 1.0) | st.just(1.0) for signal in Signal})
channel_scores = st.lists(st.just(math.nan) | st.floats(-1.0, 50.0), max_size=20)


@settings(deadline=None)
@given(values, st.sampled_from(list(Domain)), st.sets(st.sampled_from(list(Signal)), min_size=1), st.integers(0, 9999))
def test_contributions_sum_to_a_score_in_zero_to_one(told: dict, domain: Domain, active: set, seed: int) -> None:
    """RET-18: exactly, rounded once; in [0, 1] for believed and for sampled weights, each with the belief behind it."""
    beliefs = BELIEFS.weights(Scope(domain), active)
    sampled = BELIEFS.sampled_weights(Scope(domain), active, np.random.default_rng(seed))
    table = a_table(a_hit("one", {})).with_signals({signal: np.array([value]) for signal, value in told.items()})
    for shares in ({signal: belief.mean for signal, belief in beliefs.items()}, sampled):
        weights = {signal: SignalWeight(shares[signal], belief) for signal, belief in beliefs.items()}
        found = weighed(asked_with(table, lambda _: weights), list(Signal))  # noqa: B023
        (one,) = explain_candidates(found)
        assert [part.name for part in one.contributions] == [signal.value for signal in Signal if signal in active]
        for part in one.contributions:
            assert (part.value, part.weight) == (told[Signal(part.name)], shares[Signal(part.name)])
            assert part.amount == part.weight * part.value
            assert part.belief == beliefs[Signal(part.name)]
        exact = float(sum(Fraction(part.amount) for part in one.contributions))
        assert found.total.tolist() == [one.score] == [exact]
        assert 0.0 <= one.score <= 1.0


def test_a_signal_that_is_not_told_adds_nothing() -> None:
    """RET-18: neither to the score nor to the explanation."""
    belief = BELIEFS.weights(Scope(Domain.CODE), [Signal.TRUST, Signal.GRAPH])
    weights = {signal: SignalWeight(0.5, one) for signal, one in belief.items()}
    table = a_table(a_hit("one", {})).with_signals({Signal.TRUST: np.array([0.4])})
    (one,) = explain_candidates(weighed(asked_with(table, lambda _: weights), list(Signal)))
    assert [(part.name, part.amount) for part in one.contributions] == [("trust", 0.2)]


@given(channel_scores)
@example([5e-324, -1.0])
def test_channel_signals_keep_the_channels_order(scores: list) -> None:
    """RET-13: in [0, 1], a candidate not found has 0, a better one never less than a worse one."""
    for normalised in (vector(scores).tolist(), lexical(scores).tolist()):
        assert len(normalised) == len(scores)
        assert all(0.0 <= value <= 1.0 and not math.isnan(value) for value in normalised)
        pairs = [(raw, value) for raw, value in zip(scores, normalised, strict=True) if not math.isnan(raw)]
        ordered = [value for _, value in sorted(pairs)]
        assert ordered == sorted(ordered)
        assert all(value == 0.0 for raw, value in zip(scores, normalised, strict=True) if math.isnan(raw))
