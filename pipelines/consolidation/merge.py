"""Fold what was streamed since the last night into a new base, and note where the fold ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pipelines.catalog.catalog import Catalog
from pipelines.catalog.learned import LearnedState
from pipelines.catalog.live import Reach
from pipelines.consolidation.adopt import ADOPTED, Adopted
from pipelines.consolidation.champion import CHALLENGER, Aliases
from pipelines.domain.ids import LearnedVersion
from pipelines.learning.calibration.scores import ScoreCalibration
from pipelines.learning.evidence import Evidence

REACH = "reach"
"""Under which a version's provenance says how far its cut reaches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """What a night proposes to learn from.

    Attributes:
        published: The version it already is, where a former night was killed after publishing it; else None.
        parent: The version that is live; None before the first.
        newest: The version published last, live or not; None before the first.
        former: The evidence of `parent`, with its calibration.
        base: The candidate's evidence: that of the version it builds on, and all that came since the newest cut.
        cut: What the updaters had when it was cut.
        fresh: What the newest cut had not seen; empty means that there is nothing new.
        reach: How far into each partition the cut reaches: which sessions are in it follows from that (LRN-17).
        adopted: What was taken over from another store, see `Adopted.as_json`; None where nothing was.
    """

    published: LearnedVersion | None
    parent: LearnedVersion | None
    newest: LearnedVersion | None
    former: Evidence
    former_calibration: ScoreCalibration | None
    base: Evidence
    cut: Evidence
    fresh: Evidence
    reach: Reach
    adopted: Mapping[str, str] | None = None


def merge(catalog: Catalog, registry: Aliases, adopted: Adopted | None = None) -> Candidate:
    """The candidate: the version to build on + (streamed − newest cut), integer for integer.

    It builds on the live version, or on a challenger that is the newest and still waits for its verdict, so that a
    night which waits is neither lost nor counted twice by the next. A night that was rolled back stays out.

    Args:
        adopted: What another store learned, which comes on top as if it were new.
    """
    parent, newest = catalog.pointer().learned, _newest(catalog)
    live, last = _read(catalog, parent), _read(catalog, newest)
    waits = newest is not None and registry.alias(CHALLENGER) == newest
    streamed, reach = catalog.streamed_reach()
    fresh = streamed - last.cut + (Evidence() if adopted is None else adopted.evidence)
    return Candidate(
        published=None,
        parent=parent,
        newest=newest,
        former=live.evidence,
        former_calibration=live.calibration,
        base=(last if waits else live).evidence + fresh,
        cut=streamed,
        fresh=fresh,
        reach=reach,
        adopted=None if adopted is None else adopted.as_json(),
    )


def resume(catalog: Catalog, version: LearnedVersion) -> Candidate:
    """The candidate that a published version was, for a night that takes up where a killed one stopped."""
    learned = catalog.read_learned(version)
    parent = _read(catalog, learned.parent)
    return Candidate(
        published=version,
        parent=learned.parent,
        newest=version,
        former=parent.evidence,
        former_calibration=parent.calibration,
        base=learned.evidence,
        cut=learned.cut,
        fresh=learned.evidence - parent.evidence,
        reach=learned.provenance.get(REACH, {}),
        adopted=learned.provenance.get(ADOPTED),
    )


def _newest(catalog: Catalog) -> LearnedVersion | None:
    return next(reversed(catalog.learned_versions()), None)


def _read(catalog: Catalog, version: LearnedVersion | None) -> LearnedState:
    if version is None:
        return LearnedState(parent=None, evidence=Evidence(), cut=Evidence())
    return catalog.read_learned(version)
