"""What a night found in what is remembered, and what each of its steps came to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pipelines.consolidation.candidate import Proposal
from pipelines.consolidation.tending.contradictions import Contradictions
from pipelines.consolidation.tending.duplicates import Duplicates

Steps = dict[str, dict[str, float]]


@dataclass(frozen=True, slots=True)
class Tended:
    """What a night found; None of what a night that was taken up again did not look for, or that is switched off."""

    duplicates: Duplicates | None = None
    contradictions: Contradictions | None = None

    def examples(self) -> dict[str, list[Mapping[str, Any]]]:
        """Rows of examples, both texts side by side, by what they are examples of."""
        lists = {"duplicates": self.duplicates, "contradictions": self.contradictions}
        return {name: [] if one is None else [asdict(each) for each in one.examples] for name, one in lists.items()}


def changed_aliases(candidate: Proposal) -> tuple[int, int]:
    """How many contents stand for another one that did not, and how many did that no longer do."""
    before, after = (set(each.representatives.items()) for each in (candidate.former_aliases, candidate.aliases))
    return len(after - before), len(before - after)


def changed_edges(candidate: Proposal) -> tuple[int, int]:
    """How many edges are new, and how many are gone."""
    before, after = (
        {(each.content, each.kind, each.target) for each in edges.edges}
        for edges in (candidate.former_edges, candidate.edges)
    )
    return len(after - before), len(before - after)


def steps_of(
    candidate: Proposal,
    tended: Tended,
    seconds: Mapping[str, float],
    *,
    judged: bool,
    applied: bool,
    lessons: Mapping[str, float] | None = None,
) -> Steps:
    """What each step of a night came to, by its name: `proposed`, `applied`, `seconds`, and counts of its own.

    Args:
        judged: Whether there was anything to judge.
        applied: Whether it goes live.
        lessons: Measures of success of lessons, and what came of pairs of them; None where none were taken.
    """
    added, dropped = changed_aliases(candidate)
    linked, unlinked = changed_edges(candidate)
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
        "contradictions": {"proposed": linked, **({} if contradictions is None else contradictions.counts())},
        "expiry": {"proposed": dropped + unlinked},
        "recalibrate": {"proposed": int(judged)},
        "lessons": {"proposed": 0, **(lessons or {})},
        **{name: {"proposed": int(judged)} for name in ("gate", "publish", "report")},
    }
    return {
        name: {"applied": int(applied) * counts["proposed"], "seconds": round(seconds.get(name, 0.0), 3), **counts}
        for name, counts in proposed.items()
    }
