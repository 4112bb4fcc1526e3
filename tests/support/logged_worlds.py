"""Logged outcomes of a world whose weights are known: pages that stated weights arranged, judged by others."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from weft.domain.documents import Domain
from weft.domain.ranking import Signal
from weft.learning.pooling.fit import LoggedSignals
from weft.learning.pooling.gathering import SIGNALS
from weft.learning.priors import Priors

TRUE: Mapping[Signal, float] = {Signal.LEXICAL: 2.0, Signal.LATE_INTERACTION: 1.0}
SAME_AS_LEXICAL = Signal.VECTOR
"""Says mostly what lexical says, and nothing of its own."""


def a_world(
    priors: Priors,
    *,
    questions: int,
    domain: Domain = Domain.CODE,
    true: Mapping[Signal, float] = TRUE,
    strength: float = 3.0,
    seed: int = 0,
) -> LoggedSignals:
    """Outcomes of the ten results of each question that the stated weights put first among fifty; each user asks one.

    Args:
        true: By what results are good, in units of `strength` log-odds.
    """
    rng = np.random.default_rng([seed, questions])
    size = len(SIGNALS)
    stated = np.array([priors.signals.weights[domain][signal] for signal in SIGNALS])
    slope = strength * np.array([true.get(signal, 0.0) for signal in SIGNALS])
    values, good = [], []
    for _ in range(questions):
        candidates = rng.random((50, size))
        lexical, other = SIGNALS.index(Signal.LEXICAL), SIGNALS.index(SAME_AS_LEXICAL)
        candidates[:, other] = 0.8 * candidates[:, lexical] + 0.2 * candidates[:, other]
        shown = candidates[np.argsort(-(candidates @ stated))[:10]]
        odds = shown @ slope - slope.sum() / 2.0 - 1.0
        values.append(shown)
        good.append(rng.random(10) < 1.0 / (1.0 + np.exp(-odds)))
    n = 10 * questions
    asked = np.repeat(np.arange(questions), 10)
    return LoggedSignals(
        domain=np.full(n, list(Domain).index(domain)),
        question=asked,
        principal=asked,
        content=np.arange(n),
        values=np.concatenate(values),
        good=np.concatenate(good),
        weight=np.ones(n),
        propensity=np.ones(n),
    )


def joined(*worlds: LoggedSignals) -> LoggedSignals:
    """Several worlds as one, their questions, users and contents apart."""
    names = ("question", "principal", "content")
    parts = {name: [getattr(one, name) + at * 100_000 for at, one in enumerate(worlds)] for name in names}
    parts |= {
        name: [getattr(one, name) for one in worlds] for name in ("domain", "values", "good", "weight", "propensity")
    }
    return LoggedSignals(**{name: np.concatenate(each) for name, each in parts.items()})
