"""The step `merge`: what was streamed since the newest cut is folded into the base (CON-9)."""

from __future__ import annotations

from typing import ClassVar

from weft.consolidation.candidate import merge, resume
from weft.consolidation.night import NightContext, StepResult, When


class MergeEvidence:
    """Begins a night: the candidate that all other steps build on, or the one that a killed night published."""

    name: ClassVar[str] = "merge"
    says: ClassVar[str] = "folding what was streamed into the base"
    when: ClassVar[When] = When.ALWAYS

    def run(self, context: NightContext) -> StepResult:
        """See `NightStep`."""
        catalog = context.catalog
        if context.unfinished is not None:
            candidate = resume(catalog, context.unfinished)
        else:
            candidate = merge(catalog, context.night.tracking, context.adopted)
        masses = len(candidate.fresh.counts) + len(candidate.fresh.usage)
        return StepResult(counts={"proposed": masses, **candidate.observations}, outcome=candidate)
