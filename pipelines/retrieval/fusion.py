"""Stage 2: the channels' verdicts become one score (RET-9).

Every mode gives a hit a share and multiplies it with a weight; the modes differ in how a rank or score becomes a share.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType

from pipelines.domain.ranking import Channel, ChannelHit, Contribution
from pipelines.retrieval.candidates import Candidate, best_first
from pipelines.retrieval.settings import FusionMode, RetrievalSettings
from pipelines.retrieval.signals import DENSE
from pipelines.retrieval.weights import ChannelWeights, SignalWeights, Weighing, weighted

Share = Callable[[ChannelHit], float]
"""From a channel's hit to its share of a score, in [0, 1]."""

FLOORS: Mapping[Channel, float | None] = MappingProxyType(
    {channel: None if channel in DENSE else 0.0 for channel in Channel}
)
"""The least score a hit of the channel can have in theory; None where nothing near it is ever seen, as with cosines
of text: then the least score of the query stands in for it."""


def reciprocal_rank_fusion(candidates: Sequence[Candidate], weights: ChannelWeights, *, k: float) -> list[Candidate]:
    """Fuse by rank: score = Σ over channels of weight / (k + rank).

    Args:
        weights: Weight >= 0 of every channel that found anything; need not sum to 1.
        k: Damping of the head, in ranks (Cormack, Clarke and Büttcher, SIGIR 2009, use 60).

    Returns:
        Every candidate, best first, ties by content hash.
    """
    shares: dict[Channel, Share] = {channel: lambda hit: 1.0 / (k + hit.rank) for channel in channel_scores(candidates)}
    return _fuse(candidates, weights, shares)


def relative_score_fusion(
    candidates: Sequence[Candidate], weights: ChannelWeights, *, floors: Mapping[Channel, float | None] = FLOORS
) -> list[Candidate]:
    """Fuse by score: Σ over channels of weight · (score − floor) / (best score − floor).

    The theoretical floor, where a channel has one, keeps its last hit from counting as a miss.
    """
    shares = {channel: relative(scores, floors[channel]) for channel, scores in channel_scores(candidates).items()}
    return _fuse(candidates, weights, shares)


def distribution_based_fusion(
    candidates: Sequence[Candidate], weights: ChannelWeights, *, sigmas: float
) -> list[Candidate]:
    """Fuse by standing among the channel's scores: Σ of weight · (score − mean + nσ) / 2nσ, each cut to [0, 1].

    Args:
        sigmas: n, the half-width of the span in standard deviations; 3 leaves outliers without a say in the scale.
    """
    shares = {channel: _standardised(scores, sigmas) for channel, scores in channel_scores(candidates).items()}
    return _fuse(candidates, weights, shares)


CONVERGENCE = "convergence"
"""Name of the contribution by which channels that agree on a candidate speak for it."""


def with_convergence(candidates: Sequence[Candidate], weights: ChannelWeights, *, bonus: float) -> list[Candidate]:
    """Fused candidates with bonus · score · (n − 1) / (N − 1) added: n of the N channels that found anything found it.

    Channels without weight do not count. Learned fusion has a signal with a learned weight instead: cross-validation.

    Args:
        candidates: Fused by a static mode.
        bonus: Share of its score, >= 0, that a candidate gains which every channel found.
    """
    counted = {channel for channel in channel_scores(candidates) if weights[channel] > 0.0}
    if bonus == 0.0 or len(counted) < 2:
        return list(candidates)
    return best_first(_converged(candidate, counted, bonus) for candidate in candidates)


def _converged(candidate: Candidate, counted: Collection[Channel], bonus: float) -> Candidate:
    others = sum(channel in counted for channel in candidate.channels) - 1
    if others < 1:
        return candidate
    value = candidate.score * others / (len(counted) - 1)
    return candidate.plus([Contribution(CONVERGENCE, value, bonus, value * bonus)])


def learned_fusion(candidates: Sequence[Candidate], weights: SignalWeights) -> list[Candidate]:
    """Fuse by belief: Σ over the similarity signals of learned weight · signal; stage 4 adds the quality signals.

    Args:
        candidates: With the signals of their similarity to the query filled in.
        weights: By the candidate's domain.
    """
    return best_first(
        candidate.plus(weighted(candidate.signals, weights(candidate.domain))) for candidate in candidates
    )


Fuse = Callable[[Sequence[Candidate], Weighing, RetrievalSettings], list[Candidate]]


def _static(fuse: Fuse) -> Fuse:
    def fused(found: Sequence[Candidate], by: Weighing, settings: RetrievalSettings) -> list[Candidate]:
        return with_convergence(fuse(found, by, settings), by.channels, bonus=settings.convergence_bonus)

    return fused


FUSIONS: Mapping[FusionMode, Fuse] = MappingProxyType(
    {
        FusionMode.RRF: _static(
            lambda found, by, settings: reciprocal_rank_fusion(found, by.channels, k=settings.rrf_k)
        ),
        FusionMode.RSF: _static(lambda found, by, _settings: relative_score_fusion(found, by.channels)),
        FusionMode.DBSF: _static(
            lambda found, by, settings: distribution_based_fusion(found, by.channels, sigmas=settings.dbsf_sigmas)
        ),
        FusionMode.LEARNED: lambda found, by, _settings: learned_fusion(found, by.signals),
    }
)


def relative(scores: Sequence[float], floor: float | None) -> Share:
    """Share of a score between the floor (None: the least score) and the best score; 1 where these are one."""
    best = max(scores)
    base = min(scores) if floor is None else min(floor, best)
    span = best - base
    return lambda hit: (hit.score - base) / span if span > 0.0 else 1.0


def _standardised(scores: Sequence[float], sigmas: float) -> Share:
    mean, reach = statistics.fmean(scores), sigmas * statistics.pstdev(scores)
    # Scores that are all one are neither above nor below their mean.
    return lambda hit: min(1.0, max(0.0, (hit.score - mean + reach) / (2 * reach))) if reach > 0.0 else 0.5


def channel_scores(candidates: Sequence[Candidate]) -> dict[Channel, list[float]]:
    """The scores that each channel gave, for every channel that found anything."""
    found: dict[Channel, list[float]] = {}
    for candidate in candidates:
        for channel, hit in candidate.channels.items():
            found.setdefault(channel, []).append(hit.score)
    return found


def _fuse(candidates: Sequence[Candidate], weights: ChannelWeights, shares: Mapping[Channel, Share]) -> list[Candidate]:
    if unweighted := shares.keys() - weights.keys():
        raise ValueError(f"expected a weight per channel, none for {sorted(unweighted)}")
    return best_first(candidate.plus(_contributions(candidate, weights, shares)) for candidate in candidates)


def _contributions(
    candidate: Candidate, weights: ChannelWeights, shares: Mapping[Channel, Share]
) -> list[Contribution]:
    # Fixed order: float addition is not associative, and shadow runs compare bit for bit.
    return [
        _contribution(channel, shares[channel](candidate.channels[channel]), weights[channel])
        for channel in sorted(candidate.channels)
    ]


def _contribution(channel: Channel, share: float, weight: float) -> Contribution:
    return Contribution(channel.value, share, weight, share * weight)
