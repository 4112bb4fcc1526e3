"""Whether single contents were still accurate when somebody looked: what moves their freshness (LRN-6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from weft.domain.arrays import Floats
from weft.domain.ids import ContentHash
from weft.learning.aliases import NO_ALIASES, ContentAliases
from weft.learning.evidence import MICRO, Evidence
from weft.learning.parameters import ACCURATE, INACCURATE
from weft.learning.recency import Discount
from weft.learning.uses import UsageKey, Uses, numbered


def accuracy_use(day: int, content_hash: str, principal: str, *, accurate: bool) -> Mapping[UsageKey, int]:
    """One look at one content, as mass about its use."""
    return {UsageKey(day, content_hash, ACCURATE if accurate else INACCURATE, principal, ""): MICRO}


@dataclass(frozen=True, slots=True, eq=False)
class Checks:
    """What is known of some contents from looking at them, all (n,)."""

    accurate: Floats  # Who last called it so, in principals, each as far as their word still counts
    inaccurate: Floats
    # end of the last day on which somebody called it accurate, seconds since the epoch; −inf without
    validated_at: Floats


class CheckedContents:
    """Contents that were looked at; of all others nothing is known."""

    def __init__(self, rows: Mapping[str, int], table: Checks) -> None:
        """Keep a table, and where each content stands in it."""
        self._rows = rows
        self._table = table

    def __len__(self) -> int:
        return len(self._rows)

    def of(self, hashes: Sequence[ContentHash]) -> Checks:
        """What is known of contents; nobody's word and no day for those that nobody looked at."""
        places = np.fromiter((self._rows.get(one, -1) for one in hashes), np.int64, len(hashes))
        seen = places >= 0
        columns = (self._table.accurate, self._table.inaccurate, self._table.validated_at)
        values = [np.full(len(hashes), empty) for empty in (0.0, 0.0, -np.inf)]
        for value, column in zip(values, columns, strict=True):
            value[seen] = column[places[seen]]
        return Checks(*values)


def read_checks(
    evidence: Evidence, today: int, half_life_days: float, aliases: ContentAliases = NO_ALIASES
) -> CheckedContents:
    """The table as it counts on the day `today`: each principal once per content, with the last word (LRN-18).

    Who called a content both on one day is taken to have called it inaccurate.
    """
    uses = Uses.of(evidence.usage).columns()
    kinds = np.array([_KINDS.get(name, _OTHER) for name in uses.bin.values], dtype=np.int64)[uses.bin.codes]
    looked = (kinds != _OTHER) & (uses.micro > 0)
    order = np.lexsort((kinds[looked], uses.day[looked]))  # the last word comes last
    content, principal, day, kind = (
        column[looked][order] for column in (uses.content.codes, uses.principal.codes, uses.day, kinds)
    )
    present, row = np.unique(content, return_inverse=True)
    _, speaker = numbered((content, len(uses.content.values)), (principal, len(uses.principal.values)))
    last = np.zeros(len(np.unique(speaker)), dtype=np.int64)
    last[speaker] = np.arange(len(speaker))  # of equal indices the last assignment stays
    counted = Discount(today, half_life_days).of_days(np.full(len(last), float(MICRO)), day[last]) / MICRO
    words = np.zeros((len(present), len(_KINDS)))
    np.add.at(words, (row[last], kind[last]), counted)
    validated_at = np.full(len(present), -np.inf)
    held = kind == _KINDS[ACCURATE]
    np.maximum.at(validated_at, row[held], (day[held] + 1.0) * _DAY_S)
    rows = {uses.content.values[code]: at for at, code in enumerate(present.tolist())}
    return CheckedContents(aliases.with_aliases(rows), Checks(words[:, 0], words[:, 1], validated_at))


_KINDS = {ACCURATE: 0, INACCURATE: 1}
_OTHER = -1
_DAY_S = 86_400.0
