"""The best candidates, looked at again: each reranker tells a signal, whose learned share is its blend (RET-10)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from pipelines.domain.errors import ModelUnavailableError
from pipelines.domain.ranking import Channel, Signal
from pipelines.quality import signals
from pipelines.retrieval.candidates import Candidates, Floats, best_first
from pipelines.retrieval.channels.run import Ranked
from pipelines.retrieval.ports import PairScorer
from pipelines.retrieval.rerank import late_interaction
from pipelines.retrieval.settings import FusionMode, RetrievalSettings
from pipelines.retrieval.weights import SignalWeights, weighed

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Reranker:
    """One way to look again.

    Attributes:
        values: The signal of each of some candidates, in [0, 1].
    """

    signal: Signal
    values: Callable[[Candidates], Floats]


@dataclass(frozen=True, slots=True)
class Rerankers:
    """What looks again at the candidates of one query, and why others that are wanted do not."""

    used: tuple[Reranker, ...]
    left_out: Mapping[str, str]

    @property
    def signals(self) -> frozenset[Signal]:
        """What they tell."""
        return frozenset(each.signal for each in self.used)


def rerankers(
    text: str, found: Mapping[Channel, Ranked], pairs: PairScorer | None, settings: RetrievalSettings
) -> Rerankers:
    """What is switched on and can look at this query's candidates.

    Args:
        text: The query.
        pairs: The cross-encoder, where there is one.
    """
    used: list[Reranker] = []
    left_out: dict[str, str] = {}
    if settings.rerank.late_interaction:
        match = late_interaction.matcher(found)
        if match is None:
            left_out[Signal.LATE_INTERACTION.value] = late_interaction.why_not(found)
        else:
            values = late_interaction.values_of(match, settings.rerank.span)
            used.append(Reranker(Signal.LATE_INTERACTION, values))
    if pairs is not None:
        used.append(Reranker(Signal.CROSS_ENCODER, _values_of(pairs, text)))
    elif settings.rerank.cross_encoder.model:
        left_out[Signal.CROSS_ENCODER.value] = "no cross-encoder was loaded here"
    return Rerankers(tuple(used), left_out)


def reranked(
    candidates: Candidates, looks: Rerankers, weights: SignalWeights, settings: RetrievalSettings
) -> tuple[Candidates, Mapping[str, str]]:
    """The best candidates told and scored by each reranker, among the others as they were, in new order.

    All look at the same ones: the best by fused score. Others lack the signals, which adds nothing to their score.

    Args:
        candidates: Best first by fused score.

    Returns:
        Best first; and why wanted rerankers told nothing, by name.
    """
    best = candidates.take(slice(settings.rerank.depth))
    failed = dict(looks.left_out)
    for look in looks.used if len(best) else ():
        values = np.full(len(candidates), np.nan)
        try:
            values[: len(best)] = look.values(best)
        except ModelUnavailableError as error:
            log.warning("%s left out: %s", look.signal.value, error)
            failed[look.signal.value] = str(error)
            continue
        candidates = candidates.told({look.signal: values})
        # The other modes rank by fusion alone: there the signal is told for the sake of explanation and feedback.
        if settings.fusion is FusionMode.LEARNED:
            candidates = weighed(candidates, weights, of=[look.signal])
    return best_first(candidates), failed


def _values_of(pairs: PairScorer, query: str) -> Callable[[Candidates], Floats]:
    return lambda some: signals.cross_encoder(pairs.score(query, [content.text for content in some.contents]))
