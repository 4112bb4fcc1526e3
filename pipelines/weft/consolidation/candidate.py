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
from weft.domain.ids import VersionName
from weft.learning.aliases import NO_ALIASES, ContentAliases
from weft.learning.calibration.scores import ScoreCalibration
from weft.learning.edges import NO_EDGES, LearnedEdges
from weft.learning.evidence import MICRO, Evidence
from weft.learning.parameters import RELEVANCE
from weft.learning.pooling.fitted import FittedWeights, Learned
from weft.learning.thinned import NOTHING_THINNED, Thinned

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
    """What a night proposes to learn from."""

    # the version it already is, where a former night was killed after publishing it; else None
    published: VersionName | None
    parent: VersionName | None  # the version that is live; None before the first
    newest: VersionName | None  # the version published last, live or not; None before the first
    former: Evidence  # the evidence of `parent`, with its calibration and fitted weights
    former_calibration: ScoreCalibration | None
    former_fitted: FittedWeights | None
    base: Evidence  # the candidate's evidence: that of the version it builds on, and all that came since the newest cut
    cut: Evidence  # what the updaters had when it was cut
    fresh: Evidence  # what the newest cut had not seen; empty means that there is nothing new
    reach: Reach  # how far into each partition the cut reaches: which sessions are in it follows from that (LRN-17)
    # what was taken over from another store, see `Adopted.as_json`; None where nothing was
    adopted: Mapping[str, str] | None = None
    # weights that go live with it, see `fitting`; None before they are fitted, and where counting is better
    fitted: FittedWeights | None = None
    former_aliases: ContentAliases = NO_ALIASES  # contents that stand for one another in the live version
    proposed_aliases: ContentAliases = NO_ALIASES  # those of the version published last, live or not
    aliases: ContentAliases = NO_ALIASES  # those that go live with it
    former_edges: LearnedEdges = NO_EDGES  # Likewise what nights found between contents
    proposed_edges: LearnedEdges = NO_EDGES
    edges: LearnedEdges = NO_EDGES
    former_thinned: Thinned = NOTHING_THINNED  # Likewise the contents that are passed over
    proposed_thinned: Thinned = NOTHING_THINNED
    thinned: Thinned = NOTHING_THINNED

    @property
    def is_unchanged(self) -> bool:
        """Whether neither evidence nor what is tended is other than the version published last has it."""
        is_tended = (
            self.aliases.representatives != self.proposed_aliases.representatives
            or self.edges != self.proposed_edges
            or self.thinned != self.proposed_thinned
        )
        return self.fresh.is_empty and not is_tended

    @property
    def live(self) -> Learned:
        """What beliefs are read from under the live version."""
        return Learned(self.former, self.former_fitted, self.former_aliases, self.former_edges, self.former_thinned)

    @property
    def learned(self) -> Learned:
        """What they are read from under the candidate."""
        return Learned(self.base, self.fitted, self.aliases, self.edges, self.thinned)

    @property
    def observations(self) -> dict[str, float]:
        """Outcomes of shown results in all of the evidence and in what is new, each by its weight."""
        return {"observations": _outcomes(self.base), "observations_new": _outcomes(self.fresh)}

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
    waits = newest is not None and registry.alias(CHALLENGER) == newest
    streamed, reach = catalog.live.streamed_reach()
    fresh = streamed - last.cut + (Evidence() if adopted is None else adopted.evidence)
    return Proposal(
        published=None,
        parent=parent,
        newest=newest,
        former=live.evidence,
        former_calibration=live.calibration,
        former_fitted=live.fitted,
        base=(last if waits else live).evidence + fresh,
        cut=streamed,
        fresh=fresh,
        reach=reach,
        adopted=None if adopted is None else adopted.as_json(),
        former_aliases=live.aliases,
        proposed_aliases=last.aliases,
        aliases=(last if waits else live).aliases,
        former_edges=live.edges,
        proposed_edges=last.edges,
        edges=(last if waits else live).edges,
        former_thinned=live.thinned,
        proposed_thinned=last.thinned,
        thinned=(last if waits else live).thinned,
    )


def resume(catalog: Catalog, version: VersionName) -> Proposal:
    """The candidate that a published version was, for a night that takes up where a killed one stopped."""
    learned = catalog.learned.read(version)
    parent = _read(catalog, learned.parent)
    return Proposal(
        published=version,
        parent=learned.parent,
        newest=version,
        former=parent.evidence,
        former_calibration=parent.calibration,
        former_fitted=parent.fitted,
        base=learned.evidence,
        cut=learned.cut,
        fresh=learned.evidence - parent.evidence,
        reach=learned.provenance.get(REACH, {}),
        fitted=learned.fitted,
        adopted=learned.provenance.get(ADOPTED),
        former_aliases=parent.aliases,
        proposed_aliases=learned.aliases,
        aliases=learned.aliases,
        former_edges=parent.edges,
        proposed_edges=learned.edges,
        edges=learned.edges,
        former_thinned=parent.thinned,
        proposed_thinned=learned.thinned,
        thinned=learned.thinned,
    )


def _read(catalog: Catalog, version: VersionName | None) -> LearnedState:
    if version is None:
        return LearnedState(parent=None, evidence=Evidence(), cut=Evidence())
    return catalog.learned.read(version)


def _outcomes(evidence: Evidence) -> float:
    return sum(micro for key, micro in evidence.counts.items() if key.parameter == RELEVANCE) / MICRO
