"""Evidence about the sizes of chunks."""

from __future__ import annotations

from pipelines.domain.documents import Domain
from pipelines.domain.sizing import MadeBy
from pipelines.learning.evidence import Evidence, EvidenceKey
from pipelines.learning.observe.sizes import size_masses


def liked(tokens: int, times: int, *, day: int) -> Evidence:
    """So many useful chunks of one length in the general domain, which fill the target that they were cut with."""
    made = MadeBy(tokens=tokens, target=tokens)
    counts = {
        EvidenceKey(day, Domain.GENERAL.value, "*", "*", "*", parameter, bin_): times * micro
        for (parameter, bin_), micro in size_masses(made, good=True, weight=1.0).items()
    }
    return Evidence(counts=counts)
