"""Take over what another store learned: after a move to another topic, or to another number of partitions.

What updaters hold is bound to the log that they read. What was learned from it is not: evidence is a sum, and names
contents by their hashes, so that it means the same in every store that holds the same contents.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pipelines.catalog.catalog import Catalog
from pipelines.consolidation.champion import CHALLENGER, Aliases
from pipelines.domain.errors import StoreError
from pipelines.domain.ids import LearnedVersion
from pipelines.learning.evidence import Evidence

ADOPTED = "adopted"
"""Under which a version's provenance says what it took over."""


@dataclass(frozen=True, slots=True)
class Adopted:
    """What another store learned.

    Attributes:
        store: Where it is, for people.
        topics: Identities of the topics that it was learned from, as far as they are known.
    """

    store: str
    evidence: Evidence
    topics: frozenset[str] = frozenset()

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
    if catalog.snapshots():
        evidence = catalog.live_evidence()
    elif live is not None:
        evidence = catalog.read_learned(live).evidence
    if evidence.is_empty:
        raise StoreError(f"expected a store that has learned something, found none in {store}")
    return Adopted(store, evidence, catalog.streamed_topics())


def require_new(catalog: Catalog, registry: Aliases, adopted: Adopted) -> None:
    """Check that nothing is counted twice.

    Raises:
        StoreError: What the next night builds on took over that store already, or both read the same topic.
    """
    if both := sorted(adopted.topics & catalog.streamed_topics()):
        raise StoreError(
            f"expected a store of another topic, found that {adopted.store} was learned from {both[0]}, which is read "
            "here, too: what it still holds counts already"
        )
    told = adopted.as_json()
    for version in _ancestry(catalog, registry):
        known = catalog.learned_manifest(version).provenance.get(ADOPTED)
        if known is not None and any(known[name] == told[name] for name in told):
            raise StoreError(
                f"expected a store whose evidence does not count yet, found that of {known['store']} in learned "
                f"version {version}: promote that version, or roll it back to take it over anew"
            )


def _ancestry(catalog: Catalog, registry: Aliases) -> Iterator[LearnedVersion]:
    """The version that waits for its verdict or else the live one, and all that they were built on, newest first."""
    version = registry.alias(CHALLENGER) or catalog.pointer().learned
    while version is not None:
        yield version
        version = catalog.learned_manifest(version).parent
