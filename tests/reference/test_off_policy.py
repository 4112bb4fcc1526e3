"""EVA-7: off-policy estimates against simulations whose truth is known, and on the Open Bandit data."""

from __future__ import annotations

import csv
import gzip
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from weft.domain.ids import ContentHash
from weft.evaluation.measures import off_policy
from weft.evaluation.measures.off_policy import (
    ShownPlace,
    TargetPlace,
    Value,
    crossed_means,
    of_actions,
    of_rankings,
    snips,
)
from weft.evaluation.settings import EvaluationSettings
from weft.settings import load_settings

SETTINGS = load_settings(environment={}).evaluation
ACTIONS = 5
RATES = np.array([0.1, 0.2, 0.3, 0.4, 0.8])  # what each action earns
LOGGING = np.array([0.4, 0.3, 0.15, 0.1, 0.05])
TARGET = np.array([0.05, 0.05, 0.1, 0.3, 0.5])
TRUTH = float(RATES @ TARGET)


def a_log(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    actions = rng.choice(ACTIONS, n, p=LOGGING)
    return actions, (rng.random(n) < RATES[actions]).astype(float)


def estimates(
    actions: np.ndarray, rewards: np.ndarray, seed: int, *, propensities: np.ndarray = LOGGING
) -> dict[str, Value]:
    ratios = TARGET[actions] / propensities[actions]
    tables = crossed_means(actions.tolist(), rewards, folds=5, strength=1.0, seed=seed)
    logged = [table.get(action, table[None]) for table, action in zip(tables, actions.tolist(), strict=True)]
    target = [sum(TARGET[a] * table.get(a, table[None]) for a in range(ACTIONS)) for table in tables]
    return of_actions(rewards, ratios, logged=logged, target=target, settings=SETTINGS)


def without_model(
    rewards: np.ndarray, ratios: np.ndarray, *, settings: EvaluationSettings = SETTINGS
) -> dict[str, Value]:
    """Estimates where nothing is expected of any action."""
    return of_actions(rewards, ratios, logged=np.zeros(len(rewards)), target=np.zeros(len(rewards)), settings=settings)


def test_estimates_find_the_truth_that_the_log_does_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """EVA-7: the logged mean is far off; each estimator's interval holds the truth about as often as it says."""
    monkeypatch.setattr(off_policy, "BOOTSTRAP_DRAWS", 200)
    held = Counter()
    errors: dict[str, list[float]] = {"ips": [], "snips": []}
    for seed in range(120):
        actions, rewards = a_log(800, seed)
        assert abs(rewards.mean() - TRUTH) > 0.2
        ratios = TARGET[actions] / LOGGING[actions]
        values = without_model(rewards, ratios, settings=SETTINGS)
        assert values["snips"] == snips(rewards, ratios, SETTINGS)
        for name, of_name in errors.items():
            held[name] += values[name].low <= TRUTH <= values[name].high
            of_name.append(values[name].estimate - TRUTH)
    assert all(count >= 0.87 * 120 for count in held.values())
    assert abs(np.mean(errors["ips"])) < 4 * np.std(errors["ips"]) / np.sqrt(120)
    assert np.std(errors["snips"]) < np.std(errors["ips"])


def test_doubly_robust_is_right_where_either_half_of_it_is() -> None:
    """EVA-7: a right model mends wrong propensities, right propensities a wrong model; and it varies least."""
    actions, rewards = a_log(20_000, 1)
    right = estimates(actions, rewards, 1)
    wrong = estimates(actions, rewards, 1, propensities=np.full(ACTIONS, 0.2))
    assert abs(wrong["ips"].estimate - TRUTH) > 0.1
    assert wrong["doubly_robust"].estimate == pytest.approx(TRUTH, abs=0.02)
    ratios = TARGET[actions] / LOGGING[actions]
    constant = np.full(len(rewards), 0.9)
    nonsense = of_actions(rewards, ratios, logged=constant, target=constant, settings=SETTINGS)
    assert nonsense["doubly_robust"].estimate == pytest.approx(TRUTH, abs=0.03)
    width = {name: value.high - value.low for name, value in right.items()}
    assert width["doubly_robust"] < width["ips"]
    assert right["doubly_robust"].low <= TRUTH <= right["doubly_robust"].high


def test_the_effective_sample_says_how_little_a_far_target_rests_on() -> None:
    """EVA-7: a target that does what was logged rests on everything, another one on less."""
    actions, rewards = a_log(1000, 2)
    assert without_model(rewards, np.ones(1000))["ips"].effective == pytest.approx(1000)
    assert without_model(rewards, TARGET[actions] / LOGGING[actions])["ips"].effective < 400
    with pytest.raises(ValueError, match="propensity of 0"):
        without_model(rewards, np.full(1000, np.inf))


def test_a_ranking_is_valued_from_another_one_that_explored() -> None:
    """EVA-7: clicks depend on content and rank; what the target would truly earn lies within each interval."""
    rng = np.random.default_rng(3)
    names = [ContentHash(name) for name in "abcde"]
    looks = np.array([1.0, 0.6, 0.3])
    target = [names[4], names[3], names[2]]
    truth = float((looks * RATES[[4, 3, 2]]).sum())
    shown_at = np.zeros((3, ACTIONS))
    orders = [rng.permutation(ACTIONS)[:3] if rng.random() < 0.7 else np.array([0, 1, 2]) for _ in range(4000)]
    for place, of_order in ((place, 0.7 / ACTIONS) for place in range(3)):
        shown_at[place] = of_order
        shown_at[place, place] += 0.3
    answers = []
    for order in orders:
        clicks = rng.random(3) < looks * RATES[order]
        shown = [
            ShownPlace(names[item], shown_at[place, item], float(click), (place, int(item)))
            for place, (item, click) in enumerate(zip(order, clicks, strict=True))
        ]
        wanted = [TargetPlace(name, (place, names.index(name))) for place, name in enumerate(target)]
        answers.append((shown, wanted))
    found = of_rankings(answers, strength=1.0, settings=SETTINGS)
    for name in ("ips", "snips", "doubly_robust"):
        value = found[name]
        assert value.low <= truth <= value.high
        assert value.estimate == pytest.approx(truth, abs=0.2)
    logged = np.mean([sum(place.reward for place in shown) for shown, _ in answers])
    assert logged < truth - 0.3
    assert found["doubly_robust"].high - found["doubly_robust"].low < found["ips"].high - found["ips"].low


def bandit_log(folder: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Item, position, click and propensity of every impression."""
    (path,) = [path for path in folder.glob("*.csv.gz") if path.name != "item_context.csv.gz"]
    with gzip.open(path, "rt", newline="") as file:
        rows = [
            (int(row["item_id"]), int(row["position"]), float(row["click"]), float(row["propensity_score"]))
            for row in csv.DictReader(file)
        ]
    items, positions, clicks, propensities = (np.array(column) for column in zip(*rows, strict=True))
    return items, positions, clicks, propensities


@pytest.mark.data
@pytest.mark.parametrize("campaign", ["men", "women"])
@pytest.mark.parametrize(("logged", "target"), [("random", "bts"), ("bts", "random")])
def test_one_policy_of_the_open_bandit_data_is_valued_from_the_other_ones_log(
    data_root: Path, campaign: str, logged: str, target: str
) -> None:
    """EVA-7: what a policy really earned lies within what its rival's log says it would, both ways, by each estimator.

    How often Thompson sampling shows an item is estimated from its own log.
    """
    root = data_root / "open_bandit_small"
    items, positions, clicks, propensities = bandit_log(root / logged / campaign)
    other_items, other_positions, other_clicks, _ = bandit_log(root / target / campaign)
    n_items = len({*items.tolist(), *other_items.tolist()})
    shown = Counter(zip(other_items.tolist(), other_positions.tolist(), strict=True))
    at = Counter(other_positions.tolist())

    def chance(item: int, position: int) -> float:
        return 1.0 / n_items if target == "random" else shown[item, position] / at[position]

    ratios = np.array([chance(*place) for place in zip(items.tolist(), positions.tolist(), strict=True)]) / propensities
    tables = crossed_means(items.tolist(), clicks, folds=5, strength=100.0, seed=1)
    q = np.array([table.get(item, table[None]) for table, item in zip(tables, items.tolist(), strict=True)])
    distinct = {id(table): table for table in tables}
    means = {
        (key, position): sum(chance(item, position) * table.get(item, table[None]) for item in range(n_items))
        for key, table in distinct.items()
        for position in at
    }
    expected = np.array(
        [means[id(table), position] for table, position in zip(tables, positions.tolist(), strict=True)]
    )
    found = of_actions(clicks, ratios, logged=q, target=expected, settings=SETTINGS)
    truth = without_model(other_clicks, np.ones(len(other_clicks)))["ips"]
    for name in ("ips", "snips", "doubly_robust"):
        value = found[name]
        spread = np.hypot(value.high - value.low, truth.high - truth.low) / 2.0
        assert abs(value.estimate - truth.estimate) <= spread, (name, value, truth)


def test_where_nothing_of_the_target_was_logged_nothing_is_claimed() -> None:
    """EVA-7: no estimate from weights that are all 0, and still valid JSON."""
    shown = [ShownPlace(ContentHash("a"), 0.5, 1.0, (0, 0))]
    found = of_rankings([(shown, [TargetPlace(ContentHash("b"), (0, 0))])] * 3, strength=1.0, settings=SETTINGS)
    told = {name: value.as_json() for name, value in found.items()}
    assert told["snips"]["estimate"] is None
    assert (told["coverage"]["estimate"], told["ips"]["effective"]) == (0.0, 0.0)
    json.dumps(told, allow_nan=False)
