"""LRN-4: weights by how signals vary together: against best weights that are known, and numpy's covariance."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.outcomes import observe_outcome
from weft.domain.documents import Domain
from weft.domain.ids import ContentHash
from weft.domain.ranking import Scope, Signal
from weft.learning.beliefs import read_beliefs
from weft.learning.evidence import MICRO, SECONDS_PER_DAY, Evidence
from weft.learning.observe.tallies import Tally
from weft.learning.parameters import POSITIVE
from weft.learning.pooling.covariance import read_design_effect, read_signal_covariance
from weft.learning.priors import Priors
from weft.learning.recency import Discount
from weft.learning.uses import UsageKey
from weft.settings import load_settings

PRIORS = load_settings(environment={}).priors
DAY = 20_000
NAMES = (Signal.VECTOR, Signal.LEXICAL, Signal.TRUST)
SCOPE = Scope(Domain.GENERAL, agent="a")


def told(tally: Tally, values: np.ndarray, good: bool, day: int = DAY, weight: float = 1.0) -> None:
    signals = dict(zip((name.value for name in NAMES), values.tolist(), strict=False))
    observe_outcome(
        tally,
        day=day,
        scope=SCOPE,
        intent="*",
        signals=signals,
        score=None,
        content_hash=ContentHash("a" * 64),
        good=good,
        weight=weight,
    )


def weights(evidence: Evidence, active: tuple[Signal, ...]) -> np.ndarray:
    # A weak prior of the spread: what is proven here is what evidence says.
    spread = PRIORS.signals.spread.model_copy(update={"strength": 20.0, "variance": 0.03, "apart": 1.0})
    signals = PRIORS.signals.model_copy(update={"spread": spread})
    priors: Priors = PRIORS.model_copy(update={"signals": signals})
    believed = read_beliefs(priors, evidence, now=DAY * SECONDS_PER_DAY).weights(SCOPE, active)
    return np.array([believed[signal].mean for signal in active])


def test_the_covariance_is_that_of_the_outcomes() -> None:
    """LRN-4: pooled over kinds of outcome, each about its own mean, with the prior's part; recency halves the old."""
    rng = np.random.default_rng(1)
    tally, kinds = Tally(), {True: rng.random((40, 3)), False: rng.random((60, 3)) ** 2}
    for good, rows in kinds.items():
        for row in rows:
            told(tally, row, good, day=DAY - 30)
    prior = PRIORS.signals.spread
    found = read_signal_covariance(prior, tally.freeze(), Discount(DAY, 30.0), daily_cap=1000.0, principal_cap=1.0)[
        Domain.GENERAL
    ].covariance
    places = [list(Signal).index(name) for name in NAMES]
    scatter = sum(len(rows) / 2 * np.cov(rows.T, bias=True) for rows in kinds.values())
    expected = (scatter + prior.strength * prior.variance * np.eye(3)) / (50.0 + prior.strength)
    expected[~np.eye(3, dtype=bool)] *= 50.0 / (50.0 + prior.apart)
    assert found[np.ix_(places, places)] == pytest.approx(expected, abs=1e-5)


def shown(rng: np.random.Generator, answers: int) -> Tally:
    """What users say about first pages of ten among sixty, ranked by the sum of two signals.

    The first tells good from bad by one standard deviation and the second by half of one: their best weights are 2 : 1.
    """
    tally = Tally()
    for number in range(answers):
        good = rng.random(60) < 0.1
        values = 0.4 + 0.1 * rng.normal(size=(60, 2)) + np.outer(good, [0.1, 0.05])
        values = np.clip(values, 0.0, 1.0)
        for place in np.argsort(-values.sum(axis=1))[:10]:
            told(tally, values[place], bool(good[place]), day=DAY - 10 * number // answers)
    return tally


def test_what_was_shown_because_of_the_signals_tells_how_well_they_tell() -> None:
    """LRN-4: first pages are chosen by the very signals that are judged."""
    evidence = shown(np.random.default_rng(2), 300).freeze()
    pair = (Signal.VECTOR, Signal.LEXICAL)
    best = np.array([2.0, 1.0]) / 3.0
    assert np.abs(weights(evidence, pair) - best).max() < 0.08


def test_a_signal_told_twice_does_not_count_twice() -> None:
    """LRN-4: a copy of a signal takes its share from it, not from the others."""
    rng = np.random.default_rng(3)
    plain, doubled = Tally(), Tally()
    for _ in range(600):
        good = bool(rng.random() < 0.5)
        first, second = np.clip(0.4 + 0.15 * rng.normal(size=2) + 0.1 * good, 0.0, 1.0)
        told(plain, np.array([first, second]), good)
        told(doubled, np.array([first, second, first]), good)
    single = weights(plain.freeze(), NAMES[:2])
    twice = weights(doubled.freeze(), NAMES)
    assert twice[0] + twice[2] == pytest.approx(single[0], abs=0.05)


def test_feedback_of_random_users_leaves_the_weights_as_stated() -> None:
    """LRN-4, EVA-6: what chance alone finds is not followed."""
    pair = (Signal.VECTOR, Signal.LEXICAL)
    stated = weights(Evidence(), pair)
    moved = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        tally = Tally()
        for _ in range(200):
            told(tally, np.clip(0.5 + 0.1 * rng.normal(size=2), 0.0, 1.0), bool(rng.random() < 0.3))
        moved.append(float(np.abs(weights(tally.freeze(), pair) - stated).max()))
    assert np.median(moved) < 0.01


def asked_again(rng: np.random.Generator, questions: int, times: int) -> Evidence:
    """Four results each, the same every time: whether one is right has nothing to do with its signals."""
    tally, said = Tally(), {}
    for number in range(questions):
        page = [(np.clip(0.5 + 0.15 * rng.normal(size=2), 0.0, 1.0), bool(rng.random() < 0.4)) for _ in range(4)]
        for time in range(times):
            for place, (values, good) in enumerate(page):
                told(tally, values, good)
                said[UsageKey(DAY, f"{number}-{place}", POSITIVE, f"user {time}", f"question {number}")] = MICRO
    return Evidence(tally.freeze().counts, said)


def test_chance_is_no_surer_for_being_repeated() -> None:
    """LRN-4, EVA-6: six questions that eighty users ask say as much as fifty outcomes, not as two thousand."""
    pair = (Signal.VECTOR, Signal.LEXICAL)
    stated = weights(Evidence(), pair)
    moved: dict[str, list[float]] = {"known": [], "unknown": []}
    for seed in range(20):
        evidence = asked_again(np.random.default_rng(seed), questions=6, times=80)
        for name, read in (("known", evidence), ("unknown", Evidence(evidence.counts))):
            moved[name].append(float(np.abs(weights(read, pair) - stated).max()))
    assert np.mean(moved["unknown"]) > 0.15
    assert np.mean(moved["known"]) < 0.5 * np.mean(moved["unknown"])


def test_what_is_right_is_learned_from_questions_asked_again() -> None:
    """LRN-4: many of them, each asked by several, come to what they come to where nobody knows the questions."""
    rng, said = np.random.default_rng(6), {}
    tally = shown(rng, 300)
    for number in range(300):
        for place in range(10):
            said[UsageKey(DAY, f"{number}-{place}", POSITIVE, "ada", f"question {number // 2}")] = MICRO
    pair, counts = (Signal.VECTOR, Signal.LEXICAL), tally.freeze().counts
    known, unknown = (weights(each, pair) for each in (Evidence(counts, said), Evidence(counts)))
    assert known == pytest.approx(unknown, abs=0.02)


def test_repetition_is_the_same_in_whatever_order_it_was_told() -> None:
    """ARC-1, LRN-1: to the bit."""
    rng = np.random.default_rng(7)
    said = [
        (UsageKey(DAY - int(day), f"{content}", POSITIVE, f"user {user}", f"question {asked}"), int(micro))
        for day, content, user, asked, micro in rng.integers(1, [60, 90, 30, 200, MICRO], size=(2000, 5))
    ]
    ways = (said, said[::-1], sorted(said))
    read = {
        read_design_effect(Evidence(usage=dict(each)), Discount(DAY, 30.0), correlation=0.1, principal_cap=1.0)
        for each in ways
    }
    assert len(read) == 1


def test_nobody_makes_a_question_a_common_one_alone() -> None:
    """LRN-3: ten thousand votes of one principal under one question take no weight from what others said."""
    rng = np.random.default_rng(2)
    evidence = shown(rng, 300).freeze()
    flood = {UsageKey(DAY, f"{place:064}", POSITIVE, "mallory", "a question"): 1000 * MICRO for place in range(10)}
    pair = (Signal.VECTOR, Signal.LEXICAL)
    alone = weights(evidence, pair)
    flooded = weights(evidence + Evidence(usage=flood), pair)
    assert flooded == pytest.approx(alone, abs=0.01)


def test_what_never_varies_ends_without_a_share_and_is_known_to() -> None:
    """LRN-4, RET-18: the others share the weight as they would without it; its interval says so, too."""
    rng = np.random.default_rng(4)
    tally = Tally()
    for _ in range(600):
        good = bool(rng.random() < 0.4)
        told(tally, np.append(np.clip(0.4 + 0.2 * rng.normal(size=2) + [0.2 * good, 0.05 * good], 0.0, 1.0), 0.6), good)
    believed = read_beliefs(PRIORS, tally.freeze(), now=DAY * SECONDS_PER_DAY)
    among, without = believed.weights(SCOPE, NAMES), believed.weights(SCOPE, NAMES[:2])
    assert among[Signal.TRUST].mean < 0.01
    assert among[Signal.TRUST].high < 0.1
    assert among[Signal.VECTOR].mean / among[Signal.LEXICAL].mean == pytest.approx(
        without[Signal.VECTOR].mean / without[Signal.LEXICAL].mean, rel=0.05
    )
