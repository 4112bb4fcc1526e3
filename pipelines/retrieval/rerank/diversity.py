"""What is shown together: no near-duplicates, not more of the same than is worth it, and a word from every channel.

Maximal marginal relevance is that of Carbonell and Goldstein (SIGIR 1998), as a subtraction that the score tells
(RET-12).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from pipelines.domain.ranking import Channel, Contribution
from pipelines.retrieval.candidates import Candidate, best_first
from pipelines.retrieval.channels.run import Ranked, VectorsOf
from pipelines.retrieval.settings import DiversitySettings, FusionMode, RetrievalSettings

MMR = "mmr"
"""Name of the contribution by which what stands above takes from what is like it."""


def vectors_of(found: Mapping[Channel, Ranked]) -> VectorsOf | None:
    """The stored vectors by the first encoder; None where the dense channel did not answer."""
    return found[Channel.DENSE].vectors if Channel.DENSE in found else None


def diverse(
    candidates: Sequence[Candidate],
    k: int,
    vectors: VectorsOf | None,
    settings: RetrievalSettings,
    *,
    passes: Callable[[Candidate], bool] = lambda _: True,
) -> list[Candidate]:
    """The k candidates to show, best first; outside learned ranking they are those that fusion ranks first.

    Args:
        candidates: Best first by final score, more than k of them where there are more.
        vectors: None where no vectors are kept: then nothing is known to be alike.
        passes: Whether a candidate is good enough to stand for its channel.
    """
    tuned, chosen = settings.diversity, list(candidates)
    if settings.fusion is not FusionMode.LEARNED:
        return chosen[:k]
    if vectors is not None and chosen and (tuned.mmr > 0.0 or tuned.alike <= 1.0):
        head, rest = chosen[: tuned.depth], chosen[tuned.depth :]
        chosen = [*marginal(head, vectors([candidate.row for candidate in head]), tuned), *rest]
        chosen = best_first(chosen) if tuned.mmr > 0.0 else chosen
    return represented(chosen, k, tuned, passes) if tuned.represent else chosen[:k]


def after(shown: Sequence[Candidate], contenders: Sequence[Candidate], depth: int) -> list[Candidate]:
    """What is shown, and after it what else might have been, `depth` together at least."""
    known = {candidate.content_hash for candidate in shown}
    others = [candidate for candidate in contenders if candidate.content_hash not in known]
    return [*shown, *others[: max(0, depth - len(shown))]]


def marginal(candidates: Sequence[Candidate], vectors: np.ndarray, settings: DiversitySettings) -> list[Candidate]:
    """Candidates without near-duplicates, in the order of score − mmr · greatest cosine to what stands above.

    That greatest cosine only grows while more is chosen, so that scores fall from each to the next (ARC-7 holds: the
    subtraction is a contribution). A near-duplicate is left out, and named by the one that stands above it.

    Args:
        candidates: Best first.
        vectors: Theirs, (candidates, dimension), unit rows.
    """
    cosines = vectors @ vectors.T
    scores = np.array([candidate.score for candidate in candidates])
    nearest = np.zeros(len(candidates))  # greatest cosine to anything chosen so far
    nearest_to = np.zeros(len(candidates), dtype=int)
    chosen: dict[int, Candidate] = {}
    alike: dict[int, list[str]] = {}
    waiting = np.ones(len(candidates), dtype=bool)
    while waiting.any():
        # The first of equals wins: candidates come by score, then content hash.
        at = int(np.where(waiting, scores - settings.mmr * nearest, -np.inf).argmax())
        waiting[at] = False
        if chosen and nearest[at] >= settings.alike:
            alike.setdefault(int(nearest_to[at]), []).extend(candidates[at].uris)
            continue
        chosen[at] = _less(candidates[at], float(nearest[at]), settings.mmr)
        nearest_to[cosines[at] > nearest] = at
        nearest = np.maximum(nearest, cosines[at])
    return best_first(_naming(candidate, alike.get(at, ())) for at, candidate in chosen.items())


def represented(
    candidates: Sequence[Candidate], k: int, settings: DiversitySettings, passes: Callable[[Candidate], bool]
) -> list[Candidate]:
    """The best k, the last of them making room for the best candidate of each channel that none of them was found by.

    Such a candidate's cosine to the query must be known and reach `least_similarity`, and it must pass. The best
    result of all stays, and so does whoever is the only one of its channel.
    """
    shown, others = list(candidates[:k]), candidates[k:]
    missing = {channel for candidate in others for channel in candidate.channels} - _channels(shown)
    for channel in sorted(missing):
        newcomer = next((one for one in others if _fit(one, channel, settings) and passes(one)), None)
        leaving = next((at for at in range(len(shown) - 1, 0, -1) if _spare(shown, at)), None)
        if newcomer is not None and leaving is not None and newcomer not in shown:
            shown[leaving : leaving + 1] = []
            shown.append(newcomer)
    return best_first(shown) if missing else shown


def _fit(candidate: Candidate, channel: Channel, settings: DiversitySettings) -> bool:
    similarity = candidate.scores.get(Channel.DENSE)
    return channel in candidate.channels and similarity is not None and similarity >= settings.least_similarity


def _spare(shown: Sequence[Candidate], at: int) -> bool:
    return shown[at].channels.keys() <= _channels([*shown[:at], *shown[at + 1 :]])


def _channels(candidates: Iterable[Candidate]) -> set[Channel]:
    return {channel for candidate in candidates for channel in candidate.channels}


def _less(candidate: Candidate, cosine: float, weight: float) -> Candidate:
    if weight <= 0.0:
        return candidate
    return candidate.plus([Contribution(MMR, cosine, -weight, -weight * cosine)])


def _naming(candidate: Candidate, uris: Sequence[str]) -> Candidate:
    return replace(candidate, alike=tuple(dict.fromkeys(uris))) if uris else candidate
