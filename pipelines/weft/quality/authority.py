"""Authority: what is relied on elsewhere and what is relied on here, fused by quadrant (CIT-3). Pure functions."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from weft.domain.arrays import Floats, Ints
from weft.domain.links import MEASURES, Authority, Quadrant
from weft.learning.document_priors import AuthorityPrior

QUADRANTS = tuple(Quadrant)


class FusedAuthority(NamedTuple):
    """Authority of documents, all columns (n,)."""

    value: Floats  # in [0, 1]
    quadrant: Ints  # place in `QUADRANTS`
    external: Floats  # The two axes, in [0, 1]
    internal: Floats

    def of(self, at: int, prior: AuthorityPrior) -> Authority:
        """One of them, as an answer tells it."""
        quadrant = QUADRANTS[int(self.quadrant[at])]
        numbers = (float(column[at]) for column in (self.external, self.internal))
        return Authority(quadrant, float(self.value[at]), prior.quadrants[quadrant].confidence, *numbers)


def log_scaled(counts: Floats, full: float) -> Floats:
    """min(1, log(1 + c) / log(1 + full)) of counts c >= 0, (n,): the same bits wherever a count stands."""
    distinct, of_count = np.unique(counts, return_inverse=True)
    most = math.log1p(full)
    return np.array([min(1.0, math.log1p(count) / most) for count in distinct.tolist()])[of_count]


def external(measures: Floats, prior: AuthorityPrior) -> Floats:
    """How much documents are relied on elsewhere: the most that any measure says, in [0, 1], (n,)."""
    strongest = np.zeros(len(measures))
    for column, measure in enumerate(MEASURES):
        counts, scale = measures[:, column], prior.external[measure]
        if counts.any():
            strongest = np.maximum(strongest, scale.most * log_scaled(counts, scale.full))
    return strongest


def fused(external: Floats, internal: Floats, prior: AuthorityPrior) -> FusedAuthority:
    """Base + of_both · e · i + of_external · e + of_internal · i, by the quadrant that e and i lie in.

    It grows with either axis. It jumps where an axis reaches the bound, upwards; nowhere else.
    """
    there, here = external >= prior.bound, internal >= prior.bound
    quadrant = np.select([there & here, here, there], [0, 1, 2], 3).astype(np.int64)
    value = np.zeros(len(external))
    for place, name in enumerate(QUADRANTS):
        rule, own = prior.quadrants[name], quadrant == place
        e, i = external[own], internal[own]
        value[own] = rule.base + rule.of_both * e * i + rule.of_external * e + rule.of_internal * i
    return FusedAuthority(np.minimum(value, 1.0), quadrant, external, internal)
