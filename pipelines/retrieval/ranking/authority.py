"""Authority of candidates, by what documents and agents make of them (CIT-2, CIT-3)."""

from __future__ import annotations

import numpy as np

from pipelines.domain.links import Authority
from pipelines.domain.ranking import Signal
from pipelines.learning.beliefs import Beliefs
from pipelines.quality.authority import Fused, external, fused, logarithmic
from pipelines.retrieval.ranking.table import Candidates
from pipelines.retrieval.snapshot.documents import GenerationFacts


def authority_of(candidates: Candidates, beliefs: Beliefs, facts: GenerationFacts) -> Fused:
    """Authority of candidates, a row each, of the document that each is shown in."""
    prior, citations = beliefs.authority, facts.citations
    citing = citations.citing[candidates.document].astype(np.float64)
    mass = prior.internal.document * citing + beliefs.citations.of(candidates.hashes)
    elsewhere = external(citations.measures[candidates.document], prior)
    return fused(elsewhere, logarithmic(mass, prior.internal.full), prior)


def authorities_of(candidates: Candidates, beliefs: Beliefs, facts: GenerationFacts) -> list[Authority | None]:
    """Authority of candidates as an answer tells it; None where the generation knows of no citations."""
    if Signal.AUTHORITY not in facts.available_signals:
        return [None] * len(candidates)
    authority = authority_of(candidates, beliefs, facts)
    return [authority.of(at, beliefs.authority) for at in range(len(candidates))]
