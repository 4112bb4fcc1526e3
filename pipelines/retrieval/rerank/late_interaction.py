"""Late interaction: the best candidates by how well their tokens answer those of the query (RET-10).

Khattab and Zaharia, ColBERT (SIGIR 2020), over the dense encoder's own tokens: the query's come from the forward pass
that gave its vector, the contents' from the generation's token store.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from pipelines.domain.ranking import Channel, Signal
from pipelines.quality import signals
from pipelines.retrieval.candidates import Candidate, best_first
from pipelines.retrieval.channels.run import Ranked, ScoreRows
from pipelines.retrieval.settings import FusionMode, RetrievalSettings
from pipelines.retrieval.weights import SignalWeights, weighted

NAME = Signal.LATE_INTERACTION.value


def matcher(found: Mapping[Channel, Ranked], settings: RetrievalSettings) -> ScoreRows | None:
    """What compares any contents with the query token by token, None where nothing can or it is switched off."""
    if not settings.rerank.late_interaction:
        return None
    return next((ranked.match_rows for ranked in found.values() if ranked.match_rows is not None), None)


def left_out(found: Mapping[Channel, Ranked], settings: RetrievalSettings) -> Mapping[str, str]:
    """Why late interaction is wanted and not told, by its name; empty where neither is so."""
    if not settings.rerank.late_interaction or matcher(found, settings) is not None:
        return {}
    if Channel.DENSE not in found:
        return {NAME: "there are no tokens of the query without the dense channel"}
    return {NAME: "the generation keeps no token embeddings of this encoder: set embedding.tokens.enabled and reindex"}


def with_late_interaction(
    candidates: Sequence[Candidate], match: ScoreRows | None, weights: SignalWeights, settings: RetrievalSettings
) -> list[Candidate]:
    """The best candidates told and scored by their tokens; the others as they were, in new order.

    Args:
        candidates: Best first by fused score.
        match: See `matcher`.
    """
    depth = settings.rerank.depth if match is not None else 0
    best, others = candidates[:depth], candidates[depth:]
    if match is None or not best:
        return list(candidates)
    values = signals.late_interaction(match([candidate.row for candidate in best]), settings.rerank.span)
    told = [
        _scored(replace(candidate, signals={**candidate.signals, Signal.LATE_INTERACTION: value}), weights, settings)
        for candidate, value in zip(best, values, strict=True)
    ]
    return best_first([*told, *others])


def _scored(candidate: Candidate, weights: SignalWeights, settings: RetrievalSettings) -> Candidate:
    # The other modes rank by fusion alone: there the signal is told for the sake of explanation and feedback.
    if settings.fusion is not FusionMode.LEARNED:
        return candidate
    own = {Signal.LATE_INTERACTION: candidate.signals[Signal.LATE_INTERACTION]}
    return candidate.plus(weighted(own, weights(candidate.domain)))
