"""EVA-6: simulated users."""

import random

from hypothesis import given
from hypothesis import strategies as st

from pipelines.evaluation.simulation import SimulationSettings, react

SHOWN = [f"{number:064x}" for number in range(10)]


@given(st.integers(), st.sets(st.sampled_from(SHOWN)), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_a_user_reads_downwards_and_opens_at_most_one_result(seed, relevant, persistence, verdict_rate, noise) -> None:
    """EVA-6: reactions go down the list; at most one opening, and nothing is read after it."""
    settings = SimulationSettings(persistence=persistence, verdict_rate=verdict_rate, noise=noise)
    reactions = react(SHOWN, relevant, settings, random.Random(seed))
    ranks = [reaction.rank for reaction in reactions]
    opened = [reaction.rank for reaction in reactions if reaction.satisfaction is None]
    assert ranks == sorted(ranks)
    assert len(opened) <= 1
    assert not opened or opened[0] == ranks[-1]


def test_noise_turns_verdicts_round() -> None:
    """EVA-6: with noise 1 every irrelevant result is praised and the relevant one is not opened."""
    backwards = SimulationSettings(persistence=1.0, verdict_rate=1.0, noise=1.0)
    reactions = react(SHOWN, {SHOWN[0]}, backwards, random.Random(1))
    assert [(reaction.rank, reaction.satisfaction) for reaction in reactions] == [(1, -1.0), (2, None), (2, 1.0)]
