"""Fold what was streamed since the last night into a new base, and note where the fold ends."""

from __future__ import annotations

from dataclasses import dataclass

from pipelines.consolidation.champion import CHALLENGER, Aliases
from pipelines.consolidation.store import Learned, LearnedStore
from pipelines.domain.ids import LearnedVersion
from pipelines.learning.calibration import Calibration
from pipelines.learning.evidence import Evidence


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
    """

    published: LearnedVersion | None
    parent: LearnedVersion | None
    newest: LearnedVersion | None
    former: Evidence
    former_calibration: Calibration | None
    base: Evidence
    cut: Evidence
    fresh: Evidence


def merge(store: LearnedStore, registry: Aliases) -> Candidate:
    """The candidate: the version to build on + (streamed − newest cut), integer for integer.

    It builds on the live version, or on a challenger that is the newest and still waits for its verdict, so that a
    night which waits is neither lost nor counted twice by the next. A night that was rolled back stays out.
    """
    parent, newest = store.pointer().learned, _newest(store)
    live, last = _read(store, parent), _read(store, newest)
    waits = newest is not None and registry.alias(CHALLENGER) == newest
    streamed = store.streamed_evidence()
    fresh = streamed - (last.cut if last else Evidence())
    onto = last if waits else live
    return Candidate(
        published=None,
        parent=parent,
        newest=newest,
        former=live.evidence if live else Evidence(),
        former_calibration=live.calibration if live else None,
        base=(onto.evidence if onto else Evidence()) + fresh,
        cut=streamed,
        fresh=fresh,
    )


def resume(store: LearnedStore, version: LearnedVersion) -> Candidate:
    """The candidate that a published version was, for a night that takes up where a killed one stopped."""
    learned = store.read_learned(version)
    parent = _read(store, learned.parent)
    former = parent.evidence if parent else Evidence()
    return Candidate(
        published=version,
        parent=learned.parent,
        newest=version,
        former=former,
        former_calibration=parent.calibration if parent else None,
        base=learned.evidence,
        cut=learned.cut,
        fresh=learned.evidence - former,
    )


def _newest(store: LearnedStore) -> LearnedVersion | None:
    return versions[-1] if (versions := store.learned_versions()) else None


def _read(store: LearnedStore, version: LearnedVersion | None) -> Learned | None:
    return None if version is None else store.read_learned(version)
