"""EVA-9: features are found in the settings, and each is worth what its absence costs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.ablation import effects, features_of, harmful, holm
from tests.support.retrieval_fakes import settings
from weft.domain.ranking import Channel, Signal
from weft.evaluation.replay.caching import CachingEncoder
from weft.settings import load_settings

SETTINGS = load_settings(environment={})
QRELS = {f"q{n}": {"good": 1} for n in range(300)}


def test_everything_that_is_on_can_be_switched_off() -> None:
    """EVA-9, ARC-8: channels, signals, fusion, switches and addends, each by a valid configuration that differs."""
    base = settings()
    features = {feature.name: feature.without(base) for feature in features_of(base)}
    assert {f"channel {channel.value}" for channel in base.channels} <= features.keys()
    assert {f"signal {signal.value}" for signal in Signal} <= features.keys()
    assert {"effects", "mpab_factor", "complete_scores", "learned fusion (instead rrf)"} <= features.keys()
    assert all(off != base for off in features.values())
    assert features["mpab_factor"].mpab_factor == 0.0
    assert features["diversity.duplicate_cosine"].diversity.duplicate_cosine > 1.0  # no cosine reaches it
    assert features["rerank.late_interaction"].rerank.late_interaction is False
    assert features["channel dense"].channels == tuple(each for each in base.channels if each is not Channel.DENSE)


def test_what_is_off_already_is_no_feature() -> None:
    """EVA-9: nor is the last channel, nor are signals where no learned weight ranks."""
    bare = settings(channels=["dense"], fusion="rrf", complete_scores=False, mpab_factor=0.0)
    names = {feature.name for feature in features_of(bare)}
    assert not {"channel dense", "complete_scores", "mpab_factor", "signal vector"} & names
    assert "signal trust" not in {feature.name for feature in features_of(settings(without_signals=["trust"]))}


def runs() -> dict[str, dict[str, dict[str, float]]]:
    """A feature that puts the right document first more often, one that harms, and one that does nothing."""
    rng = np.random.default_rng(4)
    first = {"on": 0.7, "a helpful one": 0.5, "a harmful one": 0.9}
    found = {
        name: {query: {"good": 1.0, "bad": 2.0 * float(rng.random() > share)} for query in QRELS}
        for name, share in first.items()
    }
    return {**found, "an idle one": found["on"]}


def test_each_feature_is_told_by_what_its_absence_does() -> None:
    """EVA-9: effect with interval, on all queries and on either half, the most valuable first."""
    without = runs()
    found = effects(without.pop("on"), without, QRELS, SETTINGS.evaluation)
    assert [(effect.feature, effect.verdict) for effect in found] == [
        ("a helpful one", "helps"),
        ("an idle one", "no effect"),
        ("a harmful one", "hurts"),
    ]
    for effect in found:
        change = effect.difference.change
        assert change.low <= change.mean <= change.high
        assert effect.p_adjusted >= effect.difference.p
        assert len(effect.halves) == 2
    assert harmful(found) == ["a harmful one"]


@given(st.dictionaries(st.text("abc", min_size=1), st.floats(0.0, 1.0), min_size=1))
def test_corrected_p_values_keep_the_order_and_are_never_smaller(p_values: dict[str, float]) -> None:
    """EVA-10: many features tried make some look significant by chance (Holm)."""
    adjusted = holm(p_values)
    assert all(p_values[name] <= p <= 1.0 for name, p in adjusted.items())
    order = sorted(p_values, key=lambda name: (p_values[name], name))
    assert [adjusted[name] for name in order] == sorted(adjusted.values())


def test_an_encoder_that_remembers_gives_the_same_vectors_and_encodes_each_text_once() -> None:
    """EVA-9: an ablation asks the same queries a dozen times."""

    class Counting:
        name = "counting"
        more = "kept"

        def __init__(self) -> None:
            self.asked: list[str] = []

        def encode(self, texts: list[str]) -> np.ndarray:
            self.asked += texts
            return np.array([[float(len(text))] for text in texts])

        def encode_tokens(self, texts: list[str], keep: Callable[[np.ndarray], np.ndarray]) -> tuple:
            vectors = self.encode(texts)
            return vectors, [keep(vector) for vector in vectors]

    encoder = Counting()
    remembering = CachingEncoder(encoder, 100)
    assert remembering.encode(["a", "bb", "a"]).tolist() == [[1.0], [2.0], [1.0]]
    assert remembering.encode(["bb", "ccc"]).tolist() == [[2.0], [3.0]]
    assert encoder.asked == ["a", "bb", "ccc"]
    vectors, doubled = remembering.encode_tokens(["a", "bb", "a"], lambda states: 2.0 * states)
    assert (vectors.tolist(), [each.tolist() for each in doubled]) == ([[1.0], [2.0], [1.0]], [[2.0], [4.0], [2.0]])
    remembering.encode_tokens(["bb"], lambda states: states)
    assert encoder.asked == ["a", "bb", "ccc", "a", "bb"]
    assert (remembering.name, remembering.more) == ("counting", "kept")
    with pytest.raises(AttributeError):
        _ = remembering.absent
