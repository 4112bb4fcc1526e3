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
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from weft.catalog.catalog import Catalog
from weft.catalog.learned import ALIASES_FILE, EDGES_FILE, THINNED_FILE, LearnedState, write_evidence
from weft.consolidation.candidate import ADOPTED, REACH, Proposal
from weft.consolidation.champion import (
    CHALLENGER,
    CHAMPION,
    DECISION_TAG,
    REASON_TAG,
    SETTLED_TAG,
    follow_champion,
    register_priors,
)
from weft.consolidation.gate import Decision, GateVerdict
from weft.consolidation.night import Night, RunRecord
from weft.consolidation.recalibrate import Recalibration
from weft.domain.ids import VersionName
from weft.learning.thinned import thinned_table

if TYPE_CHECKING:
    from weft.runtime.mlflow.tracking import Tracking  # seconds to import

FOLDER = "learned"


def publish(
    night: Night, page: RunRecord, candidate: Proposal, recalibration: Recalibration, verdict: GateVerdict
) -> VersionName:
    """Publish the candidate and let the verdict decide whether it goes live or waits.

    Raises:
        StaleVersionError: Another night published meanwhile; run again.
    """
    tracking = night.tracking
    _keep(page, candidate, recalibration)
    version = candidate.published or night.catalog.learned.publish(
        _state(night, page, candidate, recalibration), expected_newest=candidate.newest
    )
    register_priors(tracking)
    tags = {DECISION_TAG: verdict.decision.value, REASON_TAG: verdict.reason}
    tracking.register(version, page.run_id, FOLDER, note=verdict.reason, tags=tags)
    if verdict.decision.goes_live:
        tracking.set_alias(CHAMPION, version)
        tracking.drop_alias(CHALLENGER)  # whatever waited is part of this version, or was rolled back
        follow_champion(night.catalog, tracking)
    else:
        tracking.set_alias(CHALLENGER, version)
    return version


def _state(night: Night, page: RunRecord, candidate: Proposal, recalibration: Recalibration) -> LearnedState:
    return LearnedState(
        parent=candidate.parent,
        evidence=candidate.base,
        cut=candidate.cut,
        calibration=recalibration.calibration,
        fitted=candidate.fitted,
        aliases=candidate.aliases,
        edges=candidate.edges,
        thinned=candidate.thinned,
        priors=night.priors.fingerprint,
        provenance={
            REACH: dict(candidate.reach),
            **candidate.observations,
            **({} if candidate.adopted is None else {ADOPTED: dict(candidate.adopted)}),
        },
        mlflow_run_id=page.run_id,
        created_at=night.now,
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


def recorded_verdict(tracking: Tracking, version: VersionName | None) -> GateVerdict | None:
    """The verdict that a version was registered with, None where it was not registered."""
    tags = None if version is None else tracking.tags_of(version)
    return None if tags is None else GateVerdict(Decision(tags[DECISION_TAG]), tags[REASON_TAG])


def _keep(page: RunRecord, candidate: Proposal, recalibration: Recalibration) -> None:
    calibration = recalibration.calibration
    with tempfile.TemporaryDirectory() as scratch:
        for name, evidence in (("evidence", candidate.base), ("cut", candidate.cut)):
            path = Path(scratch) / f"{name}.parquet"
            write_evidence(path, evidence)
            page.file(path, FOLDER)
        for name, tended in ((ALIASES_FILE, candidate.aliases), (EDGES_FILE, candidate.edges)):
            if len(tended):
                path = Path(scratch) / name
                pq.write_table(tended.to_table(), path)
                page.file(path, FOLDER)
        if candidate.thinned:
            path = Path(scratch) / THINNED_FILE
            pq.write_table(thinned_table(candidate.thinned), path)
            page.file(path, FOLDER)
        path = Path(scratch) / "calibration.json"
        path.write_text("null" if calibration is None else calibration.to_json(), encoding="utf-8")
        page.file(path, FOLDER)
        if candidate.fitted is not None:
            path = Path(scratch) / "fitted.json"
            path.write_text(candidate.fitted.to_json(), encoding="utf-8")
            page.file(path, FOLDER)
