"""How finely evidence is kept: bins are part of its keys, so that a later change leaves what is there readable."""

from __future__ import annotations

from typing import NamedTuple

from pipelines.learning.priors import QualityPrior
from pipelines.learning.settings import LearningSettings


class Bins(NamedTuple):
    """Widths of the bins that evidence is counted in.

    Attributes:
        relevance: Bins of equal width over the score of a result.
        ages: Bins per doubling of a document's age.
        confidences: Bins of equal width over the confidence of a decision.
        turns: Turns of a conversation that are kept one by one; later ones share bins.
    """

    relevance: int
    ages: int
    confidences: int
    turns: int


def bins_of(settings: LearningSettings, quality: QualityPrior) -> Bins:
    """The bins in force; those of turns must be the ones that quality is read with."""
    return Bins(settings.relevance_bins, settings.age_bins_per_doubling, settings.confidence_bins, quality.turns)
