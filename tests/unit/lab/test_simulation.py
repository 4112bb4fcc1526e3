"""EVA-6: simulated users."""

import random

from hypothesis import given
from hypothesis import strategies as st

from lab.settings import SimulationSettings, simulated_users
from lab.simulation.users import UserBehaviour, UserKind, kind_of_user, react

STATED = simulated_users()
SHOWN = [f"{number:064x}" for number in range(10)]


def behaving(**changes: float) -> SimulationSettings:
    return STATED.model_copy(update=changes)


@given(st.integers(), st.sets(st.sampled_from(SHOWN)), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_a_user_reads_downwards_and_opens_at_most_one_result(seed, relevant, persistence, verdict_rate, noise) -> None:
    """EVA-6: reactions go down the list; at most one opening, and nothing is read after it."""
    habits = UserBehaviour(persistence=persistence, verdict_rate=verdict_rate)
    reactions = react(SHOWN, relevant, behaving(noise=noise), random.Random(seed), habits=habits)
    ranks = [reaction.rank for reaction in reactions]
    opened = [reaction.rank for reaction in reactions if reaction.satisfaction is None]
    assert ranks == sorted(ranks)
    assert len(opened) <= 1
    assert not opened or opened[0] == ranks[-1]


def test_noise_turns_verdicts_round() -> None:
    """EVA-6: with noise 1 every irrelevant result is praised and the relevant one is not opened."""
    backwards = UserBehaviour(persistence=1.0, verdict_rate=1.0, verdict_noise=1.0)
    reactions = react(SHOWN, {SHOWN[0]}, behaving(noise=1.0), random.Random(1), habits=backwards)
    assert [(reaction.rank, reaction.satisfaction) for reaction in reactions] == [(1, -1.0), (2, None), (2, 1.0)]


def test_adversaries_praise_what_is_wrong_and_random_users_what_they_like() -> None:
    """EVA-6: both in the shares stated; an adversary's verdicts are the opposite of the truth."""
    mixed, rng = behaving(random=0.2, adversarial=0.1), random.Random(3)
    drawn = [kind_of_user(mixed, rng) for _ in range(2000)]
    assert abs(drawn.count(UserKind.RANDOM) / 2000 - 0.2) < 0.03
    assert abs(drawn.count(UserKind.ADVERSARIAL) / 2000 - 0.1) < 0.03
    thorough, exact = UserBehaviour(persistence=1.0, verdict_rate=1.0, verdict_noise=0.0), behaving(noise=0.0)
    found = react(SHOWN, {SHOWN[0], SHOWN[1]}, exact, rng, kind=UserKind.ADVERSARIAL, habits=thorough)
    assert [(one.rank, one.satisfaction) for one in found] == [(1, -1.0), (2, -1.0), (3, None), (3, 1.0)]
    first = [
        bool(react(SHOWN[:1], set(), exact, rng, kind=UserKind.RANDOM, habits=thorough)[0].satisfaction is None)
        for _ in range(400)
    ]
    assert 0.4 < sum(first) / 400 < 0.6
