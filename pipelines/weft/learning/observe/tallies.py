"""Evidence under way: outcomes are noted one by one, and summed column by column, for many tallies in one go.

Noting costs little more than keeping a tuple; `outcomes` does the arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.domain.events import ShownResult
from weft.learning.evidence import MICRO, Evidence, EvidenceKey
from weft.learning.observe.impressions import ImpressionBuckets, ImpressionCounts
from weft.learning.observe.outcomes import UNJUDGED, OutcomeColumns, OutcomeScope, Row
from weft.learning.parameters import SURPLUS
from weft.learning.uses import UsageKey


class Tallies:
    """Tallies that are frozen together.

    Examples:
        >>> tallies = Tallies()
        >>> one, other = tallies.open(), tallies.open()
        >>> other.note_use(3, "ab" * 32, "inclusion", 0.5)
        >>> [len(evidence.usage) for evidence in tallies.freeze()]
        [0, 1]
    """

    __slots__ = ("_reported", "_used", "impression_counts", "opened", "rows")

    def __init__(self) -> None:
        self.opened = 0
        self.rows: list[Row] = []
        self.impression_counts = ImpressionCounts()
        self._used: dict[tuple[int, UsageKey], int] = {}
        self._reported: dict[tuple[int, EvidenceKey], int] = {}

    def open(self) -> Tally:
        """One more tally."""
        self.opened += 1
        return Tally(self, self.opened - 1)

    def use(self, of: int, key: UsageKey, micro: int) -> None:
        """Add to what is known of a content's use."""
        self._used[of, key] = self._used.get((of, key), 0) + micro

    def report(self, of: int, key: EvidenceKey, micro: int) -> None:
        """Add to what was reported outright."""
        self._reported[of, key] = self._reported.get((of, key), 0) + micro

    def freeze(self) -> list[Evidence]:
        """What was noted so far, as values, by number."""
        counts: list[dict[EvidenceKey, int]] = [{} for _ in range(self.opened)]
        usage: list[dict[UsageKey, int]] = [{} for _ in range(self.opened)]
        for (of, reported), mass in self._reported.items():
            counts[of][reported] = mass
        for of, key, mass in self.impression_counts.counts():
            counts[of][key] = mass
        for (of, used), mass in self._used.items():
            usage[of][used] = mass
        if self.rows:
            columns = OutcomeColumns(self.rows)
            for of, key, mass in columns.parameters():
                counts[of][key] = counts[of].get(key, 0) + mass
            for of, key, mass in columns.products():
                counts[of][key] = mass
            for of, used, mass in columns.contents():
                usage[of][used] = usage[of].get(used, 0) + mass
            for of, key, mass in columns.sizes():
                counts[of][key] = mass
            for of, key, mass in columns.matches():
                counts[of][key] = counts[of].get(key, 0) + mass
        return [Evidence(*masses) for masses in zip(counts, usage, strict=True)]


class Tally:
    """One tally of several, or one by itself."""

    __slots__ = ("_all", "number", "rows")

    def __init__(self, tallies: Tallies | None = None, number: int = 0) -> None:
        self.number = number
        if tallies is None:
            tallies = Tallies()
            tallies.opened = 1
        self._all = tallies
        self.rows = tallies.rows

    def note(
        self,
        result: ShownResult,  # what the outcome is about
        under: OutcomeScope,  # what it is kept under
        *,
        day: int,  # it happened on
        good: bool,  # which of the two it was
        weight: float,  # in observations, >= 0
        surplus: bool = False,  # whether its principal's allowance was used up, so that no parameter moves
        judged: int = UNJUDGED,  # whether somebody said so outright of this very result, and was asked to
        page: Sequence[ShownResult] = (),
    ) -> None:
        """Note one outcome whose values are known to be in their ranges."""
        self.rows.append((self.number, day, under, surplus, good, judged, weight, result, page, 1))

    def note_use(
        self, day: int, content_hash: str, bin_: str, weight: float, principal: str = "", *, question: str = ""
    ) -> None:
        """Note that a content was used in some way, or what came of it, `weight` >= 0 times."""
        self._all.use(self.number, UsageKey(day, content_hash, bin_, principal, question), round(weight * MICRO))

    def note_usage(self, key: UsageKey, micro: int) -> None:
        """Note one mass of use in micro-units."""
        self._all.use(self.number, key, micro)

    def note_report(self, evidence: Evidence, *, surplus: bool = False) -> None:
        """Note what was reported outright."""
        for reported, micro in evidence.counts.items():
            self.note_mass(reported, micro, surplus=surplus)
        for used, micro in evidence.usage.items():
            self._all.use(self.number, used, micro)

    def note_mass(self, key: EvidenceKey, micro: int, *, surplus: bool = False) -> None:
        """Note one mass in micro-units."""
        stored = key._replace(parameter=SURPLUS + key.parameter) if surplus else key
        self._all.report(self.number, stored, micro)

    def show(self, page: ImpressionBuckets, results: Sequence[ShownResult]) -> None:
        """Note that results were shown."""
        self._all.impression_counts.show(self.number, page, results)

    def click(
        self, page: ImpressionBuckets, result: ShownResult, results: Sequence[ShownResult], *, times: int = 1
    ) -> None:
        """Note that one of the results which were shown was clicked; −1 times takes that back."""
        self._all.impression_counts.click(self.number, page, result, results, times=times)

    def freeze(self) -> Evidence:
        """What was noted so far, as a value; several tallies are frozen more cheaply together."""
        return self._all.freeze()[self.number]
