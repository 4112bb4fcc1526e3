"""The short way of a verdict on one result, which most events are. Pure.

Whatever happens to a batch, an impression that is still remembered when the batch ends is remembered by each of its
records: the clock and the offsets only grow. So what feedback on it meets is looked up once per batch, and a verdict
that is neither repeated, nor late, nor about a session with evidence of its own, needs no further decision. All others
go the long way, in `updates`, which would say the same of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from pipelines.domain.events import Explicit, ShownResult
from pipelines.domain.ranking import ANY
from pipelines.feedback.arrivals import Arrivals
from pipelines.feedback.codec import Decoded
from pipelines.feedback.credit import page_of
from pipelines.feedback.known import Known, Moment, Shown
from pipelines.feedback.names import OVERFLOW, Allowance
from pipelines.feedback.sessions import Sessions
from pipelines.feedback.settings import DAY_MS, FeedbackSettings
from pipelines.feedback.sources import BLAME, PRAISE
from pipelines.feedback.timing import Times
from pipelines.learning.evidence import MICRO
from pipelines.learning.outcomes import VOLUNTEERED, Under
from pipelines.runtime.log import Record


class Ballot(NamedTuple):
    """What verdicts on one impression meet, for one batch and one day.

    Attributes:
        from_ms: Verdicts of this effective time and later are in time, and of this day.
        until_ms: Those of this time and later are of another day.
        results: By content hash.
        page: What their signals are measured against.
        under: What evidence is kept under.
        day: Since the epoch.
        allowance: Of the principal whom it was shown to.
    """

    from_ms: int
    until_ms: int
    results: dict[str | None, ShownResult]
    page: Sequence[ShownResult]
    under: Under
    day: int
    allowance: Allowance


class Votes:
    """Verdicts of one batch that are applied without further ado.

    Args:
        known: The state as far as the batch mentions it.
        sessions: Those of the batch.
        rules: Times, limits and weights.
        arrivals: The batch.
        times: When its events happened.
        under_of: What feedback on an impression is kept under.

    Attributes:
        said: Who said what, as `sources.heard_of` counts it.
        seen: What the batch applied: offset and effective time by fingerprint.
    """

    def __init__(
        self,
        known: Known,
        sessions: Sessions,
        rules: FeedbackSettings,
        arrivals: Arrivals,
        times: Times,
        *,
        under_of: Callable[[Shown], Under],
    ) -> None:
        self.said: list[tuple[str, str, str]] = []
        self.seen: dict[bytes, tuple[int, int]] = {}
        self._known, self._sessions, self._rules, self._under_of = known, sessions, rules, under_of
        records, events, fingerprints, queries = arrivals
        places = range(len(records))
        self._rest: Iterator[tuple[int, Decoded, bytes, bytes, Record, int, bool]] = zip(
            places, events, fingerprints, queries, records, times.at_ms, times.believed, strict=True
        )
        ends_at, clock_ms = records[-1].offset + 1, times.clock_ms[-1]
        self._oldest = Moment(ends_at - rules.limits.impression_records, clock_ms - rules.time.window_ms)
        self._ballots: dict[bytes, Ballot] = {}

    def cast(self) -> int | None:
        """Apply the verdicts that come next; the place of the event behind them, which has to go the long way."""
        # Nearly all events pass here, and all that is looked up in the loop costs: hence no calls and no attributes.
        sessions, names, rules = self._sessions, self._known.names, self._rules
        works, lives, principals, stored = sessions.works, sessions.lives, names.principals, self._known.seen
        seen, ballots, note, say = self.seen, self._ballots, sessions.shared.rows.append, self.said.append
        shared, scale, daily = sessions.shared.number, rules.credit.explicit, rules.limits.daily_micro
        isolated = bool(works or lives)
        for place, event, fingerprint, query, record, at_ms, believed in self._rest:
            if type(event) is not Explicit or not believed or fingerprint in stored or fingerprint in seen:
                return place
            if isolated and (event.session_id in works or event.session_id in lives):
                return place
            signal, content_hash = event.signal, event.content_hash
            weight = abs(signal) * scale
            ballot = ballots.get(query)
            if ballot is None or not ballot[0] <= at_ms < ballot[1]:
                ballot = self._opened(query, content_hash, at_ms)
            if ballot is None or not weight or content_hash not in ballot[2]:
                return place
            _, _, results, page, under, day, allowance = ballot
            surplus = allowance.before + allowance.drawn >= daily
            allowance.drawn += round(weight * MICRO)
            good = signal > 0.0
            note((shared, day, under, surplus, good, VOLUNTEERED + event.asked, weight, results[content_hash], page))
            who = principals.get(event.principal, OVERFLOW)
            if who is OVERFLOW:
                who = names.heard(event.principal)
            agent = event.agent
            say((who, agent if agent == ANY else names.agent(agent), PRAISE if good else BLAME))
            seen[fingerprint] = (record.offset, at_ms)
        return None

    def _opened(self, query: bytes, content_hash: str | None, at_ms: int) -> Ballot | None:
        """What verdicts of a time meet; None where that is not the same for the whole batch, or where this one errs."""
        shown = self._known.shown.get(query)
        if shown is None or shown.moment.offset < self._oldest.offset or shown.moment.at_ms < self._oldest.at_ms:
            return None
        day = at_ms // DAY_MS
        results: dict[str | None, ShownResult] = {
            result.content_hash: result for result in reversed(shown.impression.results)
        }
        if content_hash not in results or at_ms < self._oldest.at_ms:
            return None
        under = self._under_of(shown)
        allowance = self._known.names.allowance(under.principal, day)
        from_ms, until_ms = max(day * DAY_MS, self._oldest.at_ms), (day + 1) * DAY_MS
        page = page_of(shown.impression, compared=self._rules.credit.compared)
        ballot = self._ballots[query] = Ballot(from_ms, until_ms, results, page, under, day, allowance)
        return ballot
