"""What a night proposes to learn from: a base, what was streamed since, and what another store learned.

What updaters hold is bound to the log that they read. What was learned from it is not: evidence is a sum, and names
contents by their hashes, so that it means the same in every store that holds the same contents.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from weft.catalog.catalog import Catalog
from weft.catalog.learned import LearnedState
from weft.catalog.live import Reach
from weft.consolidation.champion import CHALLENGER, Aliases
from weft.domain.errors import StoreError
from weft.domain.ids import PRIORS_VERSION, VersionName
from weft.learning.calibration.scores import ScoreCalibration
from weft.learning.evidence import MICRO, Evidence
from weft.learning.parameters import RELEVANCE
from weft.learning.parts import LearnedVersion
from weft.learning.pooling.fitted import FittedWeights

ADOPTED = "adopted"
"""Under which a version's provenance says what it took over."""


@dataclass(frozen=True, slots=True)
class Adopted:
    """What another store learned."""

    store: str  # where it is, for people
    evidence: Evidence
    topics: frozenset[str] = frozenset()  # identities of the topics that it was learned from, as far as they are known

    def as_json(self) -> dict[str, str]:
        """What a version's provenance keeps of it."""
        return {"store": self.store, "digest": self.evidence.digest()}


def learned_by(store: str, catalog: Catalog) -> Adopted:
    """What is live in another store; where its updaters' part is gone, what its live version holds by itself.

    Raises:
        StoreError: Nothing was learned there.
        CorruptionError: It is damaged.
    """
    live = catalog.pointer().learned
    evidence = Evidence()
    if catalog.live.snapshots():
        evidence = catalog.live.evidence()
    elif live is not None:
        evidence = catalog.learned.read(live).evidence
    if evidence.is_empty:
        raise StoreError(f"expected a store that has learned something, found none in {store}")
    return Adopted(store, evidence, catalog.live.topics())


def require_new(catalog: Catalog, registry: Aliases, adopted: Adopted) -> None:
    """Check that nothing is counted twice.

    Raises:
        StoreError: What the next night builds on took over that store already, or both read the same topic.
    """
    if both := sorted(adopted.topics & catalog.live.topics()):
        raise StoreError(
            f"expected a store of another topic, found that {adopted.store} was learned from {both[0]}, which is read "
            "here, too: what it still holds counts already"
        )
    provenance = adopted.as_json()
    for version in _ancestry(catalog, registry):
        earlier = catalog.learned.manifest(version).provenance.get(ADOPTED)
        if earlier is not None and any(earlier[name] == provenance[name] for name in provenance):
            raise StoreError(
                f"expected a store whose evidence does not count yet, found that of {earlier['store']} in learned "
                f"version {version}: promote that version, or roll it back to take it over anew"
            )


def _ancestry(catalog: Catalog, registry: Aliases) -> Iterator[VersionName]:
    """The version that waits for its verdict or else the live one, and all that they were built on, newest first."""
    version = registry.alias(CHALLENGER) or catalog.pointer().learned
    while version is not None:
        yield version
        version = catalog.learned.manifest(version).parent


REACH = "reach"
"""Under which a version's provenance says how far its cut reaches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What a night proposes to learn from, before its steps find further parts."""

    # the version it already is, where a former night was killed after publishing it; else None
    published: VersionName | None
    parent: VersionName | None  # the version that is live; None before the first
    newest: VersionName | None  # the version published last, live or not; None before the first
    live: LearnedState  # that is `parent`, and that is `newest`: nothing learned, before the first
    last: LearnedState
    learned: LearnedVersion  # that of the version it builds on, and all evidence that came since the newest cut
    cut: Evidence  # what the updaters had when it was cut
    fresh: Evidence  # what the newest cut had not seen; empty means that there is nothing new
    reach: Reach  # how far into each partition the cut reaches: which sessions are in it follows from that (LRN-17)
    # what was taken over from another store, see `Adopted.as_json`; None where nothing was
    adopted: Mapping[str, str] | None = None

    @property
    def observations(self) -> dict[str, float]:
        """Outcomes of shown results in all of the evidence and in what is new, each by its weight."""
        return {"observations": _outcomes(self.learned.evidence), "observations_new": _outcomes(self.fresh)}

    @property
    def facts(self) -> dict[str, str]:
        """What a run records of it: the store that was taken over, if any."""
        return {} if self.adopted is None else {ADOPTED: self.adopted["store"]}


def merge(catalog: Catalog, registry: Aliases, adopted: Adopted | None = None) -> Proposal:
    """The candidate: the version to build on + (streamed − newest cut), integer for integer.

    It builds on the live version, or on a challenger that is the newest and still waits for its verdict, so that a
    night which waits is neither lost nor counted twice by the next. A night that was rolled back stays out.
    """
    parent, newest = catalog.pointer().learned, catalog.learned.newest()
    live, last = _read(catalog, parent), _read(catalog, newest)
    base = last if newest is not None and registry.alias(CHALLENGER) == newest else live
    streamed, reach = catalog.live.streamed_reach()
    fresh = streamed - last.cut + (Evidence() if adopted is None else adopted.evidence)
    learned = LearnedVersion(base.evidence + fresh, base.parts)
    return Proposal(
        published=None,
        parent=parent,
        newest=newest,
        live=live,
        last=last,
        # Both are made anew from the evidence, or not at all.
        learned=learned.with_part(FittedWeights, None).with_part(ScoreCalibration, None),
        cut=streamed,
        fresh=fresh,
        reach=reach,
        adopted=None if adopted is None else adopted.as_json(),
    )


def resume(catalog: Catalog, version: VersionName) -> Proposal:
    """The candidate that a published version was, for a night that takes up where a killed one stopped."""
    state = catalog.learned.read(version)
    parent = _read(catalog, state.parent)
    return Proposal(
        published=version,
        parent=state.parent,
        newest=version,
        live=parent,
        last=state,
        learned=LearnedVersion(state.evidence, state.parts),
        cut=state.cut,
        fresh=state.evidence - parent.evidence,
        reach=state.provenance.get(REACH, {}),
        adopted=state.provenance.get(ADOPTED),
    )


def _read(catalog: Catalog, version: VersionName | None) -> LearnedState:
    return catalog.learned.read(PRIORS_VERSION if version is None else version)


def _outcomes(evidence: Evidence) -> float:
    return sum(micro for key, micro in evidence.counts.items() if key.parameter == RELEVANCE) / MICRO
