"""What a night found in what is remembered, and what each of its steps came to."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from weft.consolidation.candidate import Proposal
from weft.consolidation.tending.contradictions import Contradictions
from weft.consolidation.tending.duplicates import Duplicates
from weft.consolidation.tending.links import LINKS, Links
from weft.consolidation.tending.rebuild import RebuildResult
from weft.consolidation.tending.succession import Successions
from weft.consolidation.tending.thinning import Thinning
from weft.domain.ids import ContentHash
from weft.domain.links import LinkKind

Steps = dict[str, dict[str, float]]


@dataclass(frozen=True, slots=True)
class MaintenanceFindings:
    """What a night found; None of what a night that was taken up again did not look for, or that is switched off."""

    duplicates: Duplicates | None = None
    contradictions: Contradictions | None = None
    links: Links | None = None
    thinning: Thinning | None = None
    rebuild: RebuildResult | None = None
    successions: Successions | None = None

    def examples(self) -> dict[str, list[Mapping[str, Any]]]:
        """Rows of examples by step, in the form that `report.examples` says."""
        lists = {
            "duplicates": self.duplicates,
            "contradictions": self.contradictions,
            "successions": self.successions,
            "links": self.links,
            "thinning": self.thinning,
            "rebuild": self.rebuild,
        }
        return {name: [] if one is None else [asdict(each) for each in one.examples] for name, one in lists.items()}


def alias_changes(candidate: Proposal) -> tuple[set[tuple[ContentHash, ContentHash]], ...]:
    """Contents that stand for another one and did not, and those that no longer do, each with its representative."""
    before, after = (set(each.representatives.items()) for each in (candidate.former_aliases, candidate.aliases))
    return after - before, before - after


def edge_changes(
    candidate: Proposal, kinds: Collection[LinkKind] = tuple(LinkKind)
) -> tuple[set[tuple[ContentHash, LinkKind, ContentHash]], ...]:
    """Edges of some kinds that are new, and those that are gone."""
    before, after = (
        {(each.content, each.kind, each.target) for each in edges.edges if each.kind in kinds}
        for edges in (candidate.former_edges, candidate.edges)
    )
    return after - before, before - after


def steps_of(
    candidate: Proposal,
    tended: MaintenanceFindings,
    seconds: Mapping[str, float],
    *,
    judged: bool,  # whether there was anything to judge
    applied: bool,  # whether it goes live
    lessons: Mapping[str, float] | None = None,
) -> Steps:
    """What each step of a night came to, by its name: `proposed`, `applied`, `seconds`, and counts of its own."""
    added, dropped = map(len, alias_changes(candidate))
    opposed, settled = map(len, edge_changes(candidate, (LinkKind.CONTRADICTS,)))
    followed, unfollowed = map(len, edge_changes(candidate, (LinkKind.SUPERSEDES,)))
    linked, unlinked = map(len, edge_changes(candidate, LINKS))
    masses = len(candidate.fresh.counts) + len(candidate.fresh.usage)
    duplicates, contradictions = tended.duplicates, tended.contradictions
    proposed: Steps = {
        "merge": {"proposed": masses, **candidate.observations},
        "duplicates": {
            "proposed": added,
            "aliases": len(candidate.aliases),
            "representatives": len(candidate.aliases.classes()),
            **({} if duplicates is None else {"candidates": duplicates.candidates, "refused": len(duplicates.refused)}),
        },
        "contradictions": {
            "proposed": opposed + followed,
            "superseding": len(candidate.edges.of_kinds((LinkKind.SUPERSEDES,))),
            **({} if contradictions is None else contradictions.counts()),
        },
        "links": {"proposed": linked, **({} if tended.links is None else tended.links.counts())},
        "expiry": {"proposed": dropped + settled + unfollowed + unlinked},
        "thinning": _thinning(candidate, tended.thinning, applied=applied),
        "recalibrate": {"proposed": int(judged)},
        "lessons": {"proposed": 0, **(lessons or {})},
        **{name: {"proposed": int(judged)} for name in ("gate", "publish", "report")},
    }
    return {
        name: {"applied": int(applied) * counts["proposed"], "seconds": round(seconds.get(name, 0.0), 3), **counts}
        for name, counts in proposed.items()
    }


def _thinning(candidate: Proposal, thinning: Thinning | None, *, applied: bool) -> dict[str, float]:
    """What is proposed, and what of it is passed over: nothing, where it would cost too much."""
    former, thinned = candidate.former_thinned, candidate.thinned
    proposed = thinned if thinning is None else thinning.proposed
    return {
        "proposed": len(proposed - former),
        "applied": int(applied) * len(thinned - former),
        "restored": len(former - thinned),
        **({} if thinning is None else thinning.counts()),
    }
