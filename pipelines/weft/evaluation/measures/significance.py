"""What a difference over queries is worth: chance, sample size, and what nobody judged (EVA-1, EVA-10)."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from enum import StrEnum

import numpy as np
from scipy.stats import norm

from weft.evaluation.measures.beir import Qrels
from weft.evaluation.measures.runs import Run, order_of

RANDOMISATIONS = 10_000
"""Random signs behind a test: p-values stand within .005 of the exact ones."""

_POWER = 0.8  # chance with which the smallest detectable effect would have been shown
_EXACT = 12  # pairs up to which all 2^n signs are tried: fewer than the draws that stand in for them otherwise
_CHUNK = 1_000_000  # signs held at once


class EvidenceStrength(StrEnum):
    """How much a sample of queries can carry."""

    ANECDOTAL = "anecdotal"
    DIRECTIONAL = "directional"
    MODERATE = "moderate"
    STRONG = "strong"


LEAST_QUERIES = {EvidenceStrength.STRONG: 300, EvidenceStrength.MODERATE: 100, EvidenceStrength.DIRECTIONAL: 30}
"""From how many queries on evidence is called so (EVA-10)."""


class Half(StrEnum):
    """The half of a data set's queries to choose settings on, and the one that tells whether the choice holds."""

    TUNED = "tuned"
    HELD_OUT = "held-out"


def strength_of(queries: int) -> EvidenceStrength:
    """What a comparison over so many queries may be called."""
    return next((name for name, least in LEAST_QUERIES.items() if queries >= least), EvidenceStrength.ANECDOTAL)


def randomisation_p(changes: Sequence[float], *, seed: int, draws: int = RANDOMISATIONS) -> float:
    """Two-sided p-value of a mean change by Fisher's randomisation test (Smucker, Allan and Carterette, CIKM 2007).

    If neither system were better, every change might as well have had the other sign. p is the share of random signs
    that make the mean at least as extreme, the observed signs among them; all signs are tried where there are few.

    Raises:
        ValueError: There is nothing to test.
    """
    if not changes:
        raise ValueError("expected the changes of at least one query, got none")
    # Unchanged queries have no sign to turn: without them the test is the same and faster.
    moved = np.array([change for change in changes if change != 0.0])
    if len(moved) == 0:
        return 1.0
    bound = abs(moved.sum()) * (1.0 - 1e-12)  # equal sums in another order count as equal
    if len(moved) <= _EXACT:
        signs = 1.0 - 2.0 * ((np.arange(2 ** len(moved))[:, None] >> np.arange(len(moved))) & 1)
        return float(np.mean(np.abs(signs @ moved) >= bound))
    rng, extreme, left = np.random.default_rng(seed), 0, draws
    while left > 0:
        some = min(left, max(1, _CHUNK // len(moved)))
        signs = 1.0 - 2.0 * rng.integers(0, 2, size=(some, len(moved)))
        extreme += int(np.sum(np.abs(signs @ moved) >= bound))
        left -= some
    return (extreme + 1.0) / (draws + 1.0)


def smallest_effect(changes: Sequence[float], *, level: float, power: float = _POWER) -> float:
    """The least true mean change that a sample like this one shows with probability `power`.

    (z_{(1+level)/2} + z_power) · s / √n, s the standard deviation of the changes; infinite for a single query.
    """
    if len(changes) < 2:
        return math.inf
    spread = float(np.std(changes, ddof=1)) / math.sqrt(len(changes))
    return float(norm.ppf((1.0 + level) / 2.0) + norm.ppf(power)) * spread


def unjudged(run: Run, qrels: Qrels, depth: int) -> float:
    """Share of the first `depth` results of all judged queries that nobody judged; 0 where nothing was returned."""
    shown = [(query_id, name) for query_id in qrels for name in order_of(run.get(query_id, {}))[:depth]]
    return sum(name not in qrels[query_id] for query_id, name in shown) / len(shown) if shown else 0.0


def half_of(query_id: str, seed: int) -> Half:
    """The half that a query belongs to: the same in every run, whatever other queries there are."""
    digest = hashlib.sha256(f"{seed}:{query_id}".encode("utf-8", "surrogatepass")).digest()
    return Half.HELD_OUT if digest[0] & 1 else Half.TUNED


def of_half(values: Mapping[str, float], half: Half, seed: int) -> dict[str, float]:
    """Those of the values by query id that belong to a half."""
    return {query_id: value for query_id, value in values.items() if half_of(query_id, seed) is half}
