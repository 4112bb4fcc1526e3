"""What is shown together: no near-duplicates, not more of the same than is worth it, and a word from every channel.

Maximal marginal relevance is that of Carbonell and Goldstein (SIGIR 1998), as a subtraction that the score tells
(RET-12).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from pipelines.domain.ranking import Channel
from pipelines.retrieval.candidates import Candidates, best_first
from pipelines.retrieval.channels.run import Ranked, VectorsOf
from pipelines.retrieval.settings import DiversitySettings, FusionMode, RetrievalSettings

MMR = "mmr"
"""Name of the contribution by which what stands above takes from what is like it."""


def vectors_of(found: Mapping[Channel, Ranked]) -> VectorsOf | None:
    """The stored vectors by the first encoder; None where the dense channel did not answer."""
    return found[Channel.DENSE].vectors if Channel.DENSE in found else None


def diverse(
    candidates: Candidates,
    k: int,
    vectors: VectorsOf | None,
    settings: RetrievalSettings,
    *,
    passes: Callable[[Candidates], bool] = lambda _: True,
) -> Candidates:
    """The k candidates to show, best first; outside learned ranking they are those that fusion ranks first.

    Args:
        candidates: Best first by final score, more than k of them where there are more.
        vectors: None where no vectors are kept: then nothing is known to be alike.
        passes: Whether a candidate, a table of one, is good enough to stand for its channel.
    """
    tuned, chosen = settings.diversity, candidates
    if settings.fusion is not FusionMode.LEARNED:
        return chosen.take(slice(k))
    if vectors is not None and len(chosen) and (tuned.mmr > 0.0 or tuned.alike <= 1.0):
        chosen = marginal(chosen, vectors(chosen.rows[: tuned.depth].tolist()), tuned)
    return represented(chosen, k, tuned, passes) if tuned.represent else chosen.take(slice(k))


def after(shown: Candidates, contenders: Candidates, depth: int) -> Candidates:
    """What else might have been shown, the best first, so that both together are `depth` at least."""
    others = np.flatnonzero(~np.isin(contenders.number, shown.number))
    return contenders.take(others[: max(0, depth - len(shown))])


def marginal(candidates: Candidates, vectors: np.ndarray, settings: DiversitySettings) -> Candidates:
    """Candidates without near-duplicates, in the order of score − mmr · greatest cosine to what stands above.

    That greatest cosine only grows while more is chosen, so that scores fall from each to the next (ARC-7 holds: the
    subtraction is a contribution). A near-duplicate is left out, and named by the one that stands above it.

    Args:
        candidates: Best first.
        vectors: Of the first of them, (compared, dimension), unit rows; the others stay as they are.
    """
    cosines = vectors @ vectors.T
    if settings.mmr <= 0.0 and not (np.triu(cosines, 1) >= settings.alike).any():
        return candidates
    compared = len(vectors)
    taken = np.full(len(candidates), np.nan)  # the cosine that is subtracted
    nearest = np.zeros(compared)  # greatest cosine to anything chosen so far
    nearest_to = np.zeros(compared, dtype=int)
    stays = np.ones(len(candidates), dtype=bool)
    alike: dict[int, list[int]] = {}
    waiting = np.ones(compared, dtype=bool)
    while waiting.any():
        # The first of equals wins: candidates come by score, then content hash.
        at = int(np.where(waiting, candidates.total[:compared] - settings.mmr * nearest, -np.inf).argmax())
        waiting[at] = False
        if not np.isnan(taken).all() and nearest[at] >= settings.alike:
            alike.setdefault(int(nearest_to[at]), []).append(at)
            stays[at] = False
            continue
        taken[at] = nearest[at]
        nearest_to[cosines[at] > nearest] = at
        nearest = np.maximum(nearest, cosines[at])
    named = {int(candidates.number[at]): _uris(candidates, same) for at, same in alike.items()}
    lowered = candidates.plus_one(MMR, taken, -settings.mmr) if settings.mmr > 0.0 else candidates
    return best_first(replace(lowered, alike={**lowered.alike, **named}).take(np.flatnonzero(stays)))


def represented(
    candidates: Candidates, k: int, settings: DiversitySettings, passes: Callable[[Candidates], bool]
) -> Candidates:
    """The best k, the last of them making room for the best candidate of each channel that none of them was found by.

    Such a candidate's cosine to the query must be known and reach `least_similarity`, and it must pass. The best
    result of all stays, and so does whoever is the only one of its channel.
    """
    found = candidates.ranks > 0
    missing = np.flatnonzero(found[k:].any(axis=0) & ~found[:k].any(axis=0))
    if not len(missing):
        return candidates.take(slice(k))
    # What is not known is not similar enough: no comparison with NaN holds.
    fit = candidates.scores_of(Channel.DENSE) >= settings.least_similarity
    shown = list(range(min(k, len(candidates))))
    for channel in missing.tolist():
        able = np.flatnonzero(fit & found[:, channel])
        newcomer = next((at for at in able[able >= k].tolist() if passes(candidates.take(slice(at, at + 1)))), None)
        leaving = next((place for place in range(len(shown) - 1, 0, -1) if _spare(found[shown], place)), None)
        if newcomer is not None and leaving is not None and newcomer not in shown:
            shown[leaving : leaving + 1] = []
            shown.append(newcomer)
    return best_first(candidates.take(np.array(shown)))


def _spare(found: np.ndarray, at: int) -> bool:
    """Whether others were found by every channel that found this one."""
    return bool((found.sum(axis=0) > found[at])[found[at]].all())


def _uris(candidates: Candidates, lines: list[int]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(uri for at in lines for uri in candidates.uris(at)))
