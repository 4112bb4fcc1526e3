"""The short way of a verdict on one result, which most events are. Pure.

Whatever happens to a batch, an impression that is still remembered when the batch ends is remembered by each of its
records: the clock and the offsets only grow. So what feedback on it meets is looked up once per batch, and a verdict
that is neither repeated, nor late, nor about a session with evidence of its own, needs no further decision. All others
go the long way, in `updates`, which would say the same of these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pipelines.domain.events import Explicit, ShownResult
from pipelines.domain.ranking import ANY
from pipelines.feedback.known import Known, Moment, Shown
from pipelines.feedback.names import Allowance, Names
from pipelines.feedback.sessions import Sessions
from pipelines.feedback.settings import DAY_MS, FeedbackSettings
from pipelines.feedback.sources import BLAME, PRAISE
from pipelines.learning.evidence import MICRO
from pipelines.learning.outcomes import Under


class Ballot(NamedTuple):
    """What verdicts on one impression meet, for one batch and one day.

    Attributes:
        results: By content hash.
        under: What evidence is kept under.
        day: Since the epoch.
        from_ms: Verdicts of this effective time and later are in time, and of this day.
        until_ms: Those of this time and later are of another day.
        allowance: Of the principal whom it was shown to.
    """

    results: dict[str, ShownResult]
    under: Under
    day: int
    from_ms: int
    until_ms: int
    allowance: Allowance


class Votes:
    """Verdicts of one batch that are applied without further ado.

    Args:
        known: The state as far as the batch mentions it.
        sessions: Those of the batch.
        rules: Times, limits and weights.
        under_of: What feedback on an impression is kept under.
        ends_at: Offset behind the batch, and the partition's clock by then.

    Attributes:
        said: Who said what, as `sources.heard_of` counts it.
        seen: What the batch applied: offset and effective time by fingerprint.
    """

    def __init__(
        self,
        known: Known,
        sessions: Sessions,
        rules: FeedbackSettings,
        under_of: Callable[[Shown], Under],
        ends_at: Moment,
    ) -> None:
        self.said: list[tuple[str, str, str]] = []
        self.seen: dict[bytes, tuple[int, int]] = {}
        self._known = known
        self._stored = known.seen
        self._names: Names = known.names
        self._works, self._lives = sessions.works, sessions.lives
        self._shared = sessions.shared.number
        self._rows = sessions.shared.rows
        self._weight = rules.credit.explicit
        self._daily = rules.limits.daily_micro
        self._under_of = under_of
        self._oldest = Moment(ends_at.offset - rules.limits.impression_records, ends_at.at_ms - rules.time.window_ms)
        self._ballots: dict[bytes, Ballot] = {}

    def cast(self, event: Explicit, fingerprint: bytes, query: bytes, offset: int, at_ms: int) -> bool:
        """Apply a verdict, where nothing is left to decide; whether that was so."""
        signal, content_hash = event.signal, event.content_hash
        weight = abs(signal) * self._weight
        if not weight or content_hash is None or fingerprint in self._stored or fingerprint in self.seen:
            return False
        if (self._works or self._lives) and (event.session_id in self._works or event.session_id in self._lives):
            return False
        ballot = self._ballots.get(query)
        if ballot is None or not ballot.from_ms <= at_ms < ballot.until_ms:
            ballot = self._opened(query, content_hash, at_ms)
            if ballot is None:
                return False
        result = ballot.results.get(content_hash)
        if result is None:
            return False
        allowance = ballot.allowance
        surplus = allowance.before + allowance.drawn >= self._daily
        allowance.drawn += round(weight * MICRO)
        self._rows.append((self._shared, ballot.day, ballot.under, surplus, signal > 0.0, True, weight, result))
        agent = event.agent if event.agent == ANY else self._names.agent(event.agent)
        self.said.append((self._names.heard(event.principal), agent, PRAISE if signal > 0.0 else BLAME))
        self.seen[fingerprint] = (offset, at_ms)
        return True

    def _opened(self, query: bytes, content_hash: str, at_ms: int) -> Ballot | None:
        """What verdicts of a time meet; None where that is not the same for the whole batch, or where this one errs."""
        shown = self._known.shown.get(query)
        if shown is None or shown.moment.offset < self._oldest.offset or shown.moment.at_ms < self._oldest.at_ms:
            return None
        day = at_ms // DAY_MS
        results = {result.content_hash: result for result in reversed(shown.impression.results)}
        if content_hash not in results or at_ms < self._oldest.at_ms:
            return None
        under = self._under_of(shown)
        allowance = self._names.allowance(under.principal, day)
        from_ms, until_ms = max(day * DAY_MS, self._oldest.at_ms), (day + 1) * DAY_MS
        ballot = self._ballots[query] = Ballot(results, under, day, from_ms, until_ms, allowance)
        return ballot
