"""Publish a candidate: a version in the catalog, a registered version in the tracker, and an alias on it (CON-9).

The order is the argument that a killed night can be finished by the next:

1. what a reviewer needs is kept with the run;
2. the catalog publishes the version, live or not as before;
3. the registry gets a version of the same name, with the decision as a tag;
4. the alias is set, and the live pointer follows it;
5. when the report is written too, the version is tagged as settled.

A newest version without that last tag is taken up again from step 3: each step may be repeated without effect.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from weft.catalog.catalog import Catalog
from weft.catalog.learned import LearnedState, write_tables
from weft.consolidation.candidate import ADOPTED, REACH
from weft.consolidation.champion import (
    CHALLENGER,
    CHAMPION,
    DECISION_TAG,
    REASON_TAG,
    SETTLED_TAG,
    follow_champion,
    register_earlier,
    register_priors,
)
from weft.consolidation.night import NightContext, StepResult, When
from weft.consolidation.steps.gate import GateOutcome, GateVerdict
from weft.domain.errors import StoreError
from weft.domain.ids import VersionName

if TYPE_CHECKING:
    from weft.runtime.mlflow.tracking import Tracking  # seconds to import

FOLDER = "learned"


@dataclass(frozen=True, slots=True)
class Published:
    """The version that a night published."""

    version: VersionName | None  # that it was before, of a rehearsal; None where a rehearsal has none


class Publish:
    """Publishes the candidate and lets the verdict decide whether it goes live or waits; a rehearsal does not."""

    name: ClassVar[str] = "publish"
    says: ClassVar[str] = "publishing and registering"
    when: ClassVar[When] = When.JUDGED

    def run(self, context: NightContext) -> StepResult:
        """See `NightStep`.

        Raises:
            StaleVersionError: Another night published meanwhile; run again.
            StoreError: No step judged the candidate.
        """
        if context.dry_run:
            return StepResult(outcome=Published(context.candidate.published))
        if (judgement := context.outcome(GateOutcome)) is None:
            raise StoreError("expected the step `gate` before the step `publish`, found none")
        return StepResult(outcome=Published(publish(context, judgement.verdict)))


def publish(context: NightContext, verdict: GateVerdict) -> VersionName:
    """Publish the candidate; see the order above. Raises as `Publish`."""
    candidate, tracking, catalog = context.candidate, context.night.tracking, context.catalog
    keep_files(context)
    version = candidate.published or catalog.learned.publish(_state(context), expected_newest=candidate.newest)
    register_priors(tracking)
    register_earlier(catalog, tracking, version)
    tags = {DECISION_TAG: verdict.decision.value, REASON_TAG: verdict.reason}
    tracking.register(version, context.page.run_id, FOLDER, note=verdict.reason, tags=tags)
    if verdict.decision.goes_live:
        tracking.set_alias(CHAMPION, version)
        tracking.drop_alias(CHALLENGER)  # whatever waited is part of this version, or was rolled back
        follow_champion(catalog, tracking)
    else:
        tracking.set_alias(CHALLENGER, version)
    return version


def keep_files(context: NightContext) -> None:
    """Keep what a reviewer needs with the run: all files of the version."""
    with tempfile.TemporaryDirectory() as scratch:
        write_tables(Path(scratch), context.learned, context.candidate.cut)
        for path in sorted(Path(scratch).iterdir()):
            context.page.file(path, FOLDER)


def _state(context: NightContext) -> LearnedState:
    candidate, learned = context.candidate, context.learned
    adopted = {} if candidate.adopted is None else {ADOPTED: dict(candidate.adopted)}
    return LearnedState(
        evidence=learned.evidence,
        parts=learned.parts,
        parent=candidate.parent,
        cut=candidate.cut,
        priors=context.settings.priors.fingerprint,
        provenance={REACH: dict(candidate.reach), **candidate.observations, **adopted},
        mlflow_run_id=context.page.run_id,
        created_at=context.night.now,
    )


def settle(tracking: Tracking, version: VersionName) -> None:
    """Note that nothing is left to do for a version."""
    tracking.tag(version, SETTLED_TAG, "true")


def unsettled(catalog: Catalog, tracking: Tracking) -> VersionName | None:
    """The newest version, where a killed night left it unfinished.

    A version goes live after it is registered. So one that was live once and is not registered was lost by the
    registry: its night is over, and whoever rolled it back since keeps what they decided.
    """
    newest = catalog.learned.newest()
    tags = None if newest is None else tracking.tags_of(newest)
    caches = newest == catalog.pointer().decided if tags is None else SETTLED_TAG in tags
    return None if caches else newest
