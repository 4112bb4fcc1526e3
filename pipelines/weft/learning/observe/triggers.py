"""Words that once led to a content the hard way, and now lead to it: learned triggers (RET-17).

Who picks a result from far down says with the query's words what it should be found by. The words are kept as uses of
the content, so that they add up, merge, stay within a session and are unlearned as all evidence.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from weft.domain.ids import ContentHash
from weft.learning.evidence import MICRO, Evidence
from weft.learning.priors import TriggerPrior
from weft.learning.uses import UseColumns, Uses

LEARNED = "[learned:]"
"""What the bins of learned triggers begin with; the term follows."""

REMOVED = "[removed:]"
"""What the bins of removed ones begin with. A removal is evidence, too: it adds up, and is unlearned with whoever said
it. While it is there, the word leads to that content no more, however often it is picked.
"""


@dataclass(frozen=True, slots=True)
class LearnedTrigger:
    """One term that a content is found by."""

    term: str
    content_hash: ContentHash
    strength: float  # how many have said so, each principal once at most
    on_trial: bool  # it is told and has no effect yet: it is too young, or too few have said so
    first: int = 0  # Days since the epoch of the first and the last selection by it
    last: int = 0


class LearnedTriggers:
    """Every trigger in force at one time, by term."""

    def __init__(self, triggers: Collection[LearnedTrigger]) -> None:
        by_term: defaultdict[str, list[LearnedTrigger]] = defaultdict(list)
        for trigger in triggers:
            by_term[trigger.term].append(trigger)
        self._by_term: Mapping[str, Sequence[LearnedTrigger]] = by_term
        self.count = len(triggers)

    def of(self, terms: Collection[str]) -> list[LearnedTrigger]:
        """The triggers among some terms, in the order of term and content."""
        return [trigger for term in sorted(set(terms)) for trigger in self._by_term.get(term, ())]

    def every(self) -> list[LearnedTrigger]:
        """All of them, in the same order."""
        return self.of(self._by_term)


def read_triggers(prior: TriggerPrior, evidence: Evidence, today: int) -> LearnedTriggers:
    """The triggers of the day `today`: at most so many per content, those in force first, then the strongest.

    A trigger lasts from its first selection until `lasts_days` after its last one; one more selection by the same words
    reinforces it. It is on trial until `trial_days` after the first, and until `least` principals have said so.
    """
    by_principal: defaultdict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    days: dict[tuple[str, str], tuple[int, int]] = {}
    uses = Uses.of(evidence.usage).columns()
    removed = {_key(uses, REMOVED, row)[:2] for row in _rows(uses, REMOVED)}
    for row in _rows(uses, LEARNED):
        content_hash, term, principal = _key(uses, LEARNED, row)
        day, micro = int(uses.day[row]), int(uses.micro[row])
        of = (content_hash, term)
        if day > today or of in removed:
            continue
        by_principal[of][principal] = by_principal[of].get(principal, 0) + micro
        first, last = days.get(of, (day, day))
        days[of] = (min(first, day), max(last, day))
    by_content: defaultdict[str, list[LearnedTrigger]] = defaultdict(list)
    for (content_hash, term), masses in sorted(by_principal.items()):
        first, last = days[content_hash, term]
        # One selection each: who selects it again and again says it once.
        strength = sum(min(micro, MICRO) for micro in masses.values()) / MICRO
        if today - last <= prior.lasts_days:
            on_trial = today - first < prior.trial_days or strength < prior.least
            trigger = LearnedTrigger(term, ContentHash(content_hash), strength, on_trial, first, last)
            by_content[content_hash].append(trigger)
    return LearnedTriggers(
        [
            trigger
            for candidates in by_content.values()
            for trigger in sorted(candidates, key=lambda each: (each.on_trial, -each.strength, each.term))[
                : prior.per_item
            ]
        ]
    )


def _rows(uses: UseColumns, prefix: str) -> list[int]:
    """The rows of bins with a prefix."""
    wanted = np.array([name.startswith(prefix) for name in uses.bin.values], dtype=bool)[uses.bin.codes]
    return np.flatnonzero(wanted & (uses.micro > 0)).tolist()


def _key(uses: UseColumns, prefix: str, row: int) -> tuple[str, str, str]:
    """The content, the term and the principal of a row."""
    content_hash, bin_, principal = (each.values[each.codes[row]] for each in (uses.content, uses.bin, uses.principal))
    return content_hash, bin_.removeprefix(prefix), principal
