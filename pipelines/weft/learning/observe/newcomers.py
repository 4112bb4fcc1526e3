"""How far those count of whom nothing else is known: names are free, and a thousand are made up at once (FBK-13)."""

from __future__ import annotations

import numpy as np

from weft.domain.arrays import Flags, Floats, Ints


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
