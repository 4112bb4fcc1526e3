"""RET-14, RET-18: the contributions are the score."""

import math
from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.domain.documents import Domain
from pipelines.domain.ranking import Scope, Signal
from pipelines.learning.beliefs import read_beliefs
from pipelines.learning.evidence import Evidence
from pipelines.quality.score import contributions, score
from pipelines.quality.signals import lexical, vector
from pipelines.settings import load_settings

BELIEFS = read_beliefs(load_settings(environment={}).priors, Evidence(), now=0.0)
values = st.fixed_dictionaries({signal: st.floats(0.0, 1.0) | st.just(1.0) for signal in Signal})
channel_scores = st.lists(st.just(math.nan) | st.floats(-1.0, 50.0), max_size=20)


@settings(deadline=None)
@given(values, st.sampled_from(list(Domain)), st.sets(st.sampled_from(list(Signal)), min_size=1), st.integers(0, 9999))
def test_contributions_sum_to_a_score_in_zero_to_one(signals: dict, domain: Domain, active: set, seed: int) -> None:
    """RET-18: exactly, rounded once; in [0, 1] for believed and for sampled weights."""
    believed = {signal: belief.mean for signal, belief in BELIEFS.weights(Scope(domain), active).items()}
    sampled = BELIEFS.sampled_weights(Scope(domain), active, np.random.default_rng(seed))
    for weights in (believed, sampled):
        parts = contributions(signals, weights)
        assert {part.name for part in parts} == {signal.value for signal in active}
        assert all(part.amount == part.weight * part.value for part in parts)
        assert score(parts) == float(sum(Fraction(part.amount) for part in parts))
        assert score(parts) == score(reversed(parts))
        assert 0.0 <= score(parts) <= 1.0


@given(channel_scores)
def test_channel_signals_keep_the_channels_order(scores: list) -> None:
    """RET-13: in [0, 1], a candidate not found has 0, a better one never less than a worse one."""
    for normalised in (vector(scores).tolist(), lexical(scores).tolist()):
        assert len(normalised) == len(scores)
        assert all(0.0 <= value <= 1.0 and not math.isnan(value) for value in normalised)
        pairs = [(raw, value) for raw, value in zip(scores, normalised, strict=True) if not math.isnan(raw)]
        ordered = [value for _, value in sorted(pairs)]
        assert ordered == sorted(ordered)
        assert all(value == 0.0 for raw, value in zip(scores, normalised, strict=True) if math.isnan(raw))
