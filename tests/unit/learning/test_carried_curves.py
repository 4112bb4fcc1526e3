"""RET-15: what one channel shows alone is as likely to be good as its probability says, too."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from weft.consolidation.steps.recalibrate import curves_of
from weft.domain.matching import MatchFeatures
from weft.domain.ranking import Channel
from weft.learning.calibration.fit import carried_over
from weft.learning.calibration.matching import MatchBins, MatchCalibration, MatchCurve
from weft.learning.calibration.reliability import Predictions, reliability
from weft.settings import load_settings

SETTINGS = load_settings(environment={})
RULES = SETTINGS.consolidation.calibration
TRUTH = MatchCurve(0.0, 5.0, -8.0, 9.0)
Floats = NDArray[np.float64]


def candidates(rng: np.random.Generator, queries: int) -> Floats:
    """Matches of forty candidates each, (queries, 40, 3): cosine and words know little of each other."""
    meaning, words = rng.beta(2.0, 5.0, (2, queries, 40))
    near = np.clip(meaning + rng.normal(0.0, 0.05, meaning.shape), 0.0, 1.0)
    return np.stack([meaning, words, near], axis=2)


def page(found: Floats, by: Floats) -> Floats:
    """The ten best of each query, (10 · queries, 3)."""
    best = np.argsort(-(found @ by), axis=1)[:, :10]
    return np.take_along_axis(found, best[:, :, None], axis=1).reshape(-1, 3)


def matches(rows: Floats) -> list[MatchFeatures]:
    return [
        MatchFeatures(dense=meaning, lexical=words, late_interaction=near) for meaning, words, near in rows.tolist()
    ]


def error(curve: MatchCurve | None, rows: Floats, rng: np.random.Generator) -> float:
    assert curve is not None
    good = (rng.random(len(rows)) < TRUTH.probabilities(rows)).astype(np.float64)
    return reliability(Predictions(curve.probabilities(rows), good, 1.0 - good), bins=20).ece


def learned(rng: np.random.Generator) -> MatchCalibration:
    """Curves from verdicts on what both channels show together, every result asked about."""
    rows = page(candidates(rng, 400), np.array([0.5, 0.5, 0.5]))
    good = (rng.random(len(rows)) < TRUTH.probabilities(rows)).astype(np.float64)
    verdicts = MatchBins.of_shown(rows, good, 1.0 - good)
    found = curves_of(verdicts, SETTINGS.priors.verdicts.model_copy(update={"mistaken": 0.0}), RULES)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "channel", "by"),
    [("near", Channel.DENSE, (0.0, 0.0, 1.0)), ("words", Channel.LEXICAL, (0.0, 1.0, 0.0))],
)
def test_a_curve_of_one_channel_holds_on_what_that_shows_alone(
    name: str, channel: Channel, by: tuple[float, float, float]
) -> None:
    """RET-15: verdicts on what both show say too much of it; no verdict on it is needed to mend that."""
    rng = np.random.default_rng(1)
    curves = learned(rng)
    asked, others = (page(candidates(rng, count), np.array(by)) for count in (100, 1000))
    carried = carried_over(curves, {channel: matches(asked)}, least=RULES.minimum_observations)
    assert error(getattr(carried, name), others, rng) < 0.02 < error(getattr(curves, name), others, rng)
    assert carried.near_words == curves.near_words


def test_nothing_is_carried_over_from_too_little_or_to_what_tells_nothing() -> None:
    """RET-15: few results, or a measure by which good and bad do not separate, change no curve."""
    rng = np.random.default_rng(2)
    curves, some = learned(rng), matches(page(candidates(rng, 10), np.array([0.0, 1.0, 0.0])))
    assert carried_over(curves, {Channel.LEXICAL: some[:20]}, least=50.0) == curves
    assert carried_over(curves, {}, least=50.0) == curves
    silent = MatchCalibration(curves.both, curves.meaning, None, near_words=curves.near_words, near=curves.near)
    assert carried_over(silent, {Channel.LEXICAL: some}, least=50.0) == silent
    apart = MatchCalibration(None, None, curves.words)
    assert carried_over(apart, {Channel.LEXICAL: some}, least=50.0) == apart
