"""How much of a response rests on each content it was given: attribution of an outcome to documents (FBK-9).

Three views, each in [0, 1] per content: how similar the response is to it (semantic), what the producer's model says it
looked at (attention), and how much support the response loses without it (counterfactual). Pure: similarities come in,
shares go out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from weft.domain.arrays import Floats
from weft.feedback.settings import AttributionSettings

_SENTENCES = 64  # of a response are compared: an answer that is longer repeats itself
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\s*\n\s*")


class Method(StrEnum):
    """What an attribution was made from, the most telling first."""

    COUNTERFACTUAL = "counterfactual"
    ATTENTION = "attention"
    SEMANTIC = "semantic"
    EQUAL = "equal"


@dataclass(frozen=True, slots=True)
class Views:
    """What is known of a response and the n contents it was given; None where a view is missing.

    Attributes:
        semantic: float64 (n,), cosine of response and content.
        attention: float64 (n,) in [0, 1], weights that the producer supplied.
        support: float64 (sentences, n), cosines of the response's sentences and the contents; None as well where some
            content is unknown, since that one may have been the best support.
    """

    semantic: Floats | None = None
    attention: Floats | None = None
    support: Floats | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Attributed:
    """What each of n contents has to do with an outcome.

    Attributes:
        method: What it was made from.
        confidence: How far to rely on that, in [0, 1].
        values: float64 (n,) in [−1, 1]: of the sign of the outcome, or 0.
    """

    method: Method
    confidence: float
    values: Floats


def attribute(signal: float, contents: int, views: Views, rules: AttributionSettings) -> Attributed:
    """Share an outcome among contents by the most telling method there are views for.

    value_i = signal · (w_c · counterfactual_i + w_a · attention_i + w_s · semantic_i) with the weights of the method:
    .5, .3, .2 with counterfactual support, else 0, .6, .4 with attention, else 0, 0, 1. A view that is missing adds
    nothing. Without any view each content gets an equal share.

    Raises:
        ValueError: The signal is out of its range, or a view is of another length or not finite.

    Examples:
        >>> from weft.settings import load_settings
        >>> rules = load_settings(environment={}).feedback.attribution
        >>> found = attribute(1.0, 2, Views(semantic=np.array([0.8, -0.1])), rules)
        >>> found.method.value, found.confidence, found.values.tolist()
        ('semantic', 0.5, [0.8, 0.0])
        >>> attribute(-0.5, 2, Views(), rules).values.tolist()
        [-0.25, -0.25]
    """
    if not -1.0 <= signal <= 1.0:
        raise ValueError(f"expected a signal in [-1, 1], got {signal}")
    method = method_of(views)
    if method is Method.EQUAL:
        return Attributed(method, rules.reliance(method), np.full(contents, signal / max(contents, 1)))
    support = None if views.support is None else counterfactual(_checked(views.support, contents))
    share = np.zeros(contents)
    for weight, view in zip(rules.mix(method), (support, views.attention, views.semantic), strict=True):
        if view is not None:
            share = share + weight * np.clip(_checked(view, contents), 0.0, 1.0)
    # Weights sum to 1, but for rounding.
    return Attributed(method, rules.reliance(method), signal * np.minimum(share, 1.0))


def method_of(views: Views) -> Method:
    """The most telling method that there are views for."""
    if views.support is not None and views.support.size:
        return Method.COUNTERFACTUAL
    if views.attention is not None:
        return Method.ATTENTION
    return Method.EQUAL if views.semantic is None else Method.SEMANTIC


def counterfactual(support: Floats) -> Floats:
    """How much support a response loses without each content: leave-one-out, in closed form.

    A sentence is supported as well as by its best content; contents that disagree support it not at all. So leaving
    one out matters only to sentences it supports best, which fall back on their second best:
    loss_i = mean over sentences of (best − second best) where i is best, else 0. Of contents that tie none is missed.

    Args:
        support: float64 (sentences >= 1, contents >= 1), cosines.

    Returns:
        float64 (contents,) in [0, 1]; the losses sum to at most the support by all.

    Examples:
        >>> counterfactual(np.array([[0.9, 0.4], [0.5, 0.5]])).tolist()
        [0.25, 0.0]
    """
    clipped = np.clip(support, 0.0, 1.0)
    sentences, contents = clipped.shape
    best = clipped.argmax(axis=1)
    rows = np.arange(sentences)
    without = clipped.copy()
    without[rows, best] = 0.0
    lost = clipped[rows, best] - without.max(axis=1)
    return np.asarray(np.bincount(best, weights=lost, minlength=contents) / sentences)


def sentences_of(text: str) -> list[str]:
    """The first 64 sentences of a text, by its full stops, question and exclamation marks and line ends."""
    return [part for part in _SENTENCE_END.split(text.strip()) if part][:_SENTENCES]


def _checked(view: Floats, contents: int) -> Floats:
    if view.shape[-1] != contents or not np.isfinite(view).all():
        raise ValueError(f"expected finite values for {contents} contents, got an array of shape {view.shape}")
    return view
