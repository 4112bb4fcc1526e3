"""The short way of a verdict on one result, which most events are. Pure.

Whatever happens to a batch, an impression that is still remembered when the batch ends is remembered by each of its
records: the clock and the offsets only grow. So what feedback on it meets is looked up once per batch, and a verdict
that is neither repeated, nor late, nor about a session with evidence of its own, needs no further decision. All others
go the long way, in `updates`, which would say the same of these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from pipelines.domain.events import Explicit, ShownResult
from pipelines.domain.ranking import ANY
from pipelines.feedback.events.codec import Decoded
from pipelines.feedback.fold.batch import Arrivals, BatchState, LogMoment, PendingImpression
from pipelines.feedback.fold.clock import Times
from pipelines.feedback.fold.credit import page_of
from pipelines.feedback.fold.names import OVERFLOW, Allowance
from pipelines.feedback.fold.sessions import Sessions
from pipelines.feedback.fold.sources import BLAME, PRAISE, Heard, heard_of
from pipelines.feedback.settings import DAY_MS, FeedbackSettings
from pipelines.learning.evidence import MICRO
from pipelines.learning.observe.outcomes import VOLUNTEERED, Under

Verdict = tuple[float, bool, bool, str, str]
"""Signal, whether it was asked for, whether its principal's allowance was used up; and the principal and the agent that
it is counted under."""


class Ballot(NamedTuple):
    """What verdicts on one impression meet, for one batch and one day.

    Attributes:
        from_ms: Verdicts of this effective time and later are in time, and of this day.
        until_ms: Those of this time and later are of another day.
        results: By content hash, with the verdicts on each that were cast so far.
        page: What their signals are measured against.
        under: What evidence is kept under.
        day: Since the epoch.
        allowance: Of the principal whom it was shown to.
    """

    from_ms: int
    until_ms: int
    results: dict[str | None, tuple[ShownResult, dict[Verdict, int]]]
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
        said: Who said what, of the events that go the long way.
        seen: What the batch applied: offset and effective time by fingerprint.
    """

    def __init__(
        self,
        known: BatchState,
        sessions: Sessions,
        rules: FeedbackSettings,
        arrivals: Arrivals,
        times: Times,
        *,
        under_of: Callable[[PendingImpression], Under],
    ) -> None:
        self.said: list[tuple[str, str, str]] = []
        self.seen: dict[bytes, tuple[int, int]] = {}
        self._known, self._sessions, self._rules, self._under_of = known, sessions, rules, under_of
        records = arrivals.records
        self._rest: Iterator[tuple[int, Decoded, bytes, bytes, int, int, bool]] = zip(
            *(range(len(records)), arrivals.events, arrivals.fingerprints, arrivals.queries),
            *(records.offsets, times.at_ms, times.believed),
            strict=True,
        )
        ends_at, clock_ms = records.offsets[-1] + 1, times.clock_ms[-1]
        self._oldest = LogMoment(ends_at - rules.limits.impression_records, clock_ms - rules.time.window_ms)
        self._ballots: dict[bytes, Ballot] = {}
        self._opened_so_far: list[Ballot] = []
        self._micro: dict[float, int] = {}

    def cast(self) -> int | None:
        """Apply the verdicts that come next; the place of the event behind them, which has to go the long way."""
        # Nearly all events pass here, and all that is looked up in the loop costs: hence no calls and no attributes.
        sessions, names = self._sessions, self._known.names
        works, lives, principals, stored = sessions.works, sessions.lives, names.principals, self._known.seen
        seen, ballots, micros, daily = self.seen, self._ballots, self._micro, self._rules.limits.daily_micro
        isolated = bool(works or lives)
        for place, event, fingerprint, query, offset, at_ms, believed in self._rest:
            if type(event) is not Explicit or not believed or fingerprint in stored or fingerprint in seen:
                return place
            if isolated and (event.session_id in works or event.session_id in lives):
                return place
            signal, content_hash, agent = event.signal, event.content_hash, event.agent
            ballot = ballots.get(query)
            if ballot is None or not ballot[0] <= at_ms < ballot[1]:
                ballot = self._opened(query, content_hash, at_ms)
            if ballot is None or content_hash not in ballot[2]:
                return place
            micro = micros.get(signal)
            if micro is None:
                micro = micros[signal] = round(self._weight(signal) * MICRO)
            if not micro and not self._weight(signal):
                return place
            allowance = ballot[6]
            surplus = allowance.before + allowance.drawn >= daily
            allowance.drawn += micro
            who = principals.get(event.principal, OVERFLOW)
            if who is OVERFLOW:
                who = names.heard(event.principal)
            # Verdicts that are alike are counted: all but the first of them cost nothing more.
            alike = ballot[2][content_hash][1]
            verdict = signal, event.asked, surplus, who, agent if agent == ANY else names.agent(agent)
            alike[verdict] = alike.get(verdict, 0) + 1
            seen[fingerprint] = (offset, at_ms)
        return None

    def counted(self) -> Heard:
        """Note everything that was cast; who said what, as `sources.heard_of` counts it."""
        sessions, said = self._sessions, Counter(self.said)
        for ballot in self._opened_so_far:
            for result, verdicts in ballot.results.values():
                for (signal, asked, surplus, who, agent), times in verdicts.items():
                    good, weight = signal > 0.0, self._weight(signal)
                    said[who, agent, PRAISE if good else BLAME] += times
                    kept = (sessions.shared.number, ballot.day, ballot.under, surplus, good)
                    sessions.shared.rows.append((*kept, VOLUNTEERED + asked, weight, result, ballot.page, times))
        return heard_of(said)

    def _weight(self, signal: float) -> float:
        return abs(signal) * self._rules.credit.explicit

    def _opened(self, query: bytes, content_hash: str | None, at_ms: int) -> Ballot | None:
        """What verdicts of a time meet; None where that is not the same for the whole batch, or where this one errs."""
        shown = self._known.shown.get(query)
        if shown is None or shown.moment.offset < self._oldest.offset or shown.moment.at_ms < self._oldest.at_ms:
            return None
        day = at_ms // DAY_MS
        results: dict[str | None, tuple[ShownResult, dict[Verdict, int]]] = {
            result.content_hash: (result, {}) for result in reversed(shown.impression.results)
        }
        if content_hash not in results or at_ms < self._oldest.at_ms:
            return None
        under = self._under_of(shown)
        allowance = self._known.names.allowance(under.principal, day)
        from_ms, until_ms = max(day * DAY_MS, self._oldest.at_ms), (day + 1) * DAY_MS
        page = page_of(shown.impression, compared=self._rules.credit.compared)
        ballot = self._ballots[query] = Ballot(from_ms, until_ms, results, page, under, day, allowance)
        self._opened_so_far.append(ballot)
        return ballot
