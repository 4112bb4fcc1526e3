"""What came beyond its principal's allowance, and where it counts all the same (LRN-20).

Allowances bound what one principal can do to others. Who else speaks is known only when evidence is read: so what comes
beyond is kept beside its parameter, and counts while there is hardly anybody to protect. Once there is, it counts no
more, whenever it was said.
"""

from __future__ import annotations

import numpy as np

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
