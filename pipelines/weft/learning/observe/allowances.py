"""How far counts what is said, by who says it.

Allowances bound what one principal can do to others (LRN-20). Who else speaks is known only when evidence is read: so
what comes beyond is kept beside its parameter, and counts while there is hardly anybody to protect. Once there is, it
counts no more, whenever it was said. Of newcomers nothing else is known: names are free, and a thousand are made up at
once (FBK-13).
"""

from __future__ import annotations

import numpy as np

from weft.domain.arrays import Flags, Floats, Ints
from weft.learning.evidence import Evidence, EvidenceKey
from weft.learning.parameters import SPEAKER, SURPLUS
from weft.learning.uses import Uses


def within_allowances(evidence: Evidence, *, alone: int) -> Evidence:
    """The evidence as it counts: all of it where at most `alone` principals speak, else what lies within allowances.

    Time is linear in the number of masses where so few speak, and next to none elsewhere.

    Examples:
        >>> from weft.learning.uses import UsageKey
        >>> key = EvidenceKey(3, "code", "*", "*", "*", "quality", "7/64.n")
        >>> beyond = {key: 6, key._replace(parameter="surplus.quality"): 4}
        >>> for who in ("ada", "bob", "cyd"):
        ...     spoken = Evidence(beyond, {UsageKey(3, "ab", "positive", one): 1 for one in {"ada", "bob", who}})
        ...     print(who, within_allowances(spoken, alone=2).counts[key])
        ada 10
        bob 10
        cyd 6
    """
    return including_surplus(evidence) if _few_speak(evidence, alone) else evidence


def including_surplus(evidence: Evidence) -> Evidence:
    """The evidence with all that came beyond allowances: as whoever brought it may read it."""
    if not any(key.parameter.startswith(SURPLUS) for key in evidence.counts):
        return evidence
    counts: dict[EvidenceKey, int] = {}
    for key, micro in evidence.counts.items():
        parameter = key.parameter.removeprefix(SURPLUS)
        whole = key if parameter == key.parameter else key._replace(parameter=parameter)
        counts[whole] = counts.get(whole, 0) + micro
    return Evidence(counts, evidence.usage)


def _few_speak(evidence: Evidence, alone: int) -> bool:
    # Who judged or chose is in the columns of uses; who reported, in masses, which take longer.
    principal = Uses.of(evidence.usage).columns().principal
    speakers = {principal.values[code] for code in np.flatnonzero(np.bincount(principal.codes)).tolist()}
    if len(speakers) > alone:
        return False
    speakers.update(key.bin for key in evidence.counts if key.parameter.removeprefix(SURPLUS) == SPEAKER)
    return len(speakers) <= alone


def newcomer_shares(principal: Ints, day: Ints, cell: Ints, *, most: int) -> Floats:
    """Share in (0, 1] at which each statement counts.

    A principal is new as long as all of its statements are of one day. What new ones state about one cell on one day
    counts as `most` of them at most: share = min(1, most / how many of them there are). Whoever comes back on another
    day counts in full, for what it stated before as well.
    """
    shares = np.ones(len(principal))
    new = are_new(principal, day)
    if not new.any():
        return shares
    crowds, of_crowd = np.unique(np.stack([cell[new], day[new]]), axis=1, return_inverse=True)
    of_crowd = of_crowd.reshape(-1)
    members = np.unique(np.stack([of_crowd, principal[new]]), axis=1)
    counts = np.bincount(members[0], minlength=crowds.shape[1])
    shares[new] = np.minimum(1.0, most / counts[of_crowd])
    return shares


def capped_weights(weight: Floats, most: Floats, day: Ints, line: Ints) -> Floats:
    """Weights of statements such that those of new principals count together at most, of each day and line."""
    new = np.isfinite(most)
    if not new.any():
        return weight
    _, of = np.unique(np.stack([line[new], day[new]]), axis=1, return_inverse=True)
    of = of.reshape(-1)
    total = np.bincount(of, weights=weight[new])[of]
    counted = weight.copy()
    counted[new] *= np.minimum(1.0, most[new] / np.maximum(total, np.finfo(np.float64).tiny))
    return counted


def are_new(principal: Ints, day: Ints) -> Flags:
    """Of each statement, whether its principal made all of its statements on one day."""
    if not len(principal):
        return np.zeros(0, dtype=np.bool_)
    first = np.full(int(principal.max()) + 1, np.iinfo(np.int64).max)
    last = np.full(len(first), np.iinfo(np.int64).min)
    np.minimum.at(first, principal, day)
    np.maximum.at(last, principal, day)
    return np.asarray((first == last)[principal])
