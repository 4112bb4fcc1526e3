"""Events to changes: what a batch of one partition does to its state. Pure: no clock, no store, no broker.

Every record meets exactly one fate. Which one depends on the records before it in the log and on nothing else: not
on where batches begin, nor on when or how often an updater ran. That is what makes a replay give the same bits.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from weft.domain.errors import InvalidEventError
from weft.domain.events import (
    FEEDBACK,
    LESSON_EVENTS,
    Accuracy,
    AnyEvent,
    Correction,
    Explicit,
    Feedback,
    Impression,
    Inclusion,
    LessonChange,
    LessonEvent,
    ModelQuality,
    Report,
    Retrieval,
    Review,
    Selection,
    SessionPhase,
    TriggerRemoval,
    Trust,
)
from weft.domain.ids import principal_fingerprint
from weft.domain.ranking import Scope
from weft.feedback.fold.batch import (
    Arrivals,
    BatchState,
    Change,
    DeadLetter,
    Fate,
    LogMoment,
    PendingFeedback,
    PendingImpression,
    RecordTimes,
    advance,
    effective_ms,
    forgets,
    unlearns,
)
from weft.feedback.fold.credit import (
    Attribute,
    ContentVerdict,
    CountedSelection,
    Credit,
    EqualVerdicts,
    QuestionText,
    attributed,
    choice_credits,
    chosen_place,
    corrected,
    credits_of,
    drawn_by,
    in_context,
    is_sweep,
    learned_terms,
    note_choice,
    note_credits,
    note_excluded,
    note_question,
    question_of_text,
    tally_shown,
    under,
)
from weft.feedback.fold.lessons import lesson_usage
from weft.feedback.fold.names import OVERFLOW, SWEEP, Draw, NameKind, kind_of, source_counts
from weft.feedback.fold.sessions import Sessions, Timeline
from weft.feedback.settings import DAY_MS, EVENT_ID_RECORDS, WEIGHTS, FeedbackSettings, milliseconds
from weft.learning.evidence import MICRO, Evidence
from weft.learning.families.gaussian_process import quality_masses
from weft.learning.families.survival import survival_masses
from weft.learning.families.threshold import threshold_masses
from weft.learning.observe.accuracy import accuracy_use
from weft.learning.observe.outcomes import OutcomeScope
from weft.learning.observe.tallies import Tally
from weft.learning.observe.triggers import REMOVED
from weft.learning.parameters import (
    DECAY,
    QUALITY,
    REFUTED,
    SPEAKER,
    THRESHOLD,
    TRUST,
    VERIFIED,
    Masses,
    reported_evidence,
)
from weft.runtime.kafka.log import Record

# What is evidence by itself, without an impression: reviews, accuracy, model quality, trust.


def report_evidence(report: Report, *, day: int, principal: str = "") -> Evidence:
    """The evidence of one report, one observation each, under the scope that the event names."""
    parameter, masses = _MASSES[type(report)](report)
    reported = reported_evidence(day, Scope(report.domain, report.model, report.agent), parameter, masses)
    if not isinstance(report, Accuracy) or report.content_hash is None:
        return reported
    return replace(reported, usage=accuracy_use(day, report.content_hash, principal, accurate=report.accurate))


def allowance_of(report: Report) -> str:
    """The allowance that a report draws on: of its type of event; where it is about a source, of that one."""
    tag = str(type(report).__struct_config__.tag)
    return f"{tag}.{report.source}" if isinstance(report, Trust) else tag


def speaker_evidence(report: Report, *, day: int, principal: str) -> Evidence:
    """That somebody reported something, by fingerprint: whom there is to be protected from others (LRN-20)."""
    return reported_evidence(day, Scope(report.domain), SPEAKER, {principal: MICRO})


def _review(event: Review) -> tuple[str, Masses]:
    return THRESHOLD, threshold_masses(event.confidence, good=event.good)


def _accuracy(event: Accuracy) -> tuple[str, Masses]:
    return DECAY, survival_masses(event.age_hours, accurate=event.accurate)


def _quality(event: ModelQuality) -> tuple[str, Masses]:
    return QUALITY, quality_masses(event.turn, event.quality)


def _trust(event: Trust) -> tuple[str, Masses]:
    return f"{TRUST}.{event.source}", {VERIFIED if event.verified else REFUTED: MICRO}


_MASSES: Mapping[type[Report], Callable[[Any], tuple[str, Masses]]] = MappingProxyType(
    {Review: _review, Accuracy: _accuracy, ModelQuality: _quality, Trust: _trust}
)


def fold(
    stored: BatchState,  # the state as far as the batch mentions it; it is used up
    arrivals: Arrivals,  # the batch, none of it consumed before
    rules: FeedbackSettings,  # times, limits and weights
    *,
    skipped: int = 0,  # offsets before and between its records that the log explains
    attribute: Attribute | None = None,
) -> Change:
    """What a batch changes."""
    batch = _Batch(stored, rules, attribute)
    batch.consume(arrivals, skipped)
    return batch.change


class _Batch:
    """One pass over a batch: `stored` is read and kept current, `change` collects what is to be written."""

    def __init__(self, stored: BatchState, rules: FeedbackSettings, attribute: Attribute | None = None) -> None:
        self.stored = stored
        self._attribute = attribute
        sessions = Sessions(rules, stored.lifecycles)
        self.change = Change(stored.clock, stored.next_offset, sessions, stored.names, stored.stored_queries)
        self._sessions = sessions
        self._rules = rules
        self._limits = rules.limits
        self._names = stored.names
        self._window_ms = milliseconds(rules.time.window_s)
        self._clock_ms, self._next_offset = stored.clock.now_ms, stored.next_offset
        self._seen = self.change.seen
        self._sources: defaultdict[tuple[str, str, str], int] = defaultdict(int)
        self._verdicts: list[EqualVerdicts] = []

    def consume(self, arrivals: Arrivals, skipped: int) -> None:
        records, change, rules = arrivals.records, self.change, self._rules
        claims = RecordTimes(records.offsets, arrivals.principals, records.timestamps, records.by_broker)
        clocks_ms, change.clock = advance(change.clock, claims, rules.time)
        change.sessions.timeline = Timeline(records.offsets, clocks_ms)
        fates = list(self._fates(arrivals, clocks_ms))
        change.fates = Counter({fate: times for fate in Fate if (times := fates.count(fate))})
        self._note_verdicts()
        change.skipped = skipped
        change.holes = records.offsets[-1] + 1 - change.next_offset - len(records) - skipped
        change.consumed, change.sources = len(records), source_counts(self._sources)
        change.next_offset = records.offsets[-1] + 1

    def _fates(self, arrivals: Arrivals, clocks_ms: Sequence[int]) -> Iterator[Fate]:
        records, lead_ms, names = arrivals.records, milliseconds(self._rules.time.lead_s), self._names
        columns = (arrivals.events, arrivals.fingerprints, arrivals.queries, records.offsets, records.timestamps)
        for place, (event, fingerprint, query, offset, record_ms) in enumerate(zip(*columns, strict=True)):
            clock_ms = clocks_ms[place]
            self._clock_ms, self._next_offset, names.today = clock_ms, offset + 1, clock_ms // DAY_MS
            if isinstance(event, InvalidEventError):
                yield self._refuse(records[place], event)
                continue
            try:
                at_ms = effective_ms(event.ts, record_ms, clock_ms, lead_ms=lead_ms)
                yield self._fate(event, fingerprint, query, offset, at_ms)
            except InvalidEventError as error:
                yield self._refuse(records[place], error)

    def _refuse(self, record: Record, error: InvalidEventError) -> Fate:
        self.change.dead_letters.append(DeadLetter(record, error.reason, str(error)))
        return Fate.DEAD_LETTERED

    def _fate(self, event: AnyEvent, fingerprint: bytes, query: bytes, offset: int, at_ms: int) -> Fate:
        if at_ms < self._clock_ms - self._window_ms:
            return Fate.LATE
        before = self._seen.get(fingerprint) or self.stored.seen.get(fingerprint)
        if before and self._remembered(before, EVENT_ID_RECORDS, self._window_ms):
            return Fate.DUPLICATE
        self._sessions.touch(event.session_id, offset, self._clock_ms)
        if type(event) is Explicit or isinstance(event, FEEDBACK):
            if type(event) is Correction and event.query_id is None:
                self._correct(event, at_ms)
            elif (fate := self._answer(query, event, offset, at_ms)) is not Fate.APPLIED:
                return fate
        elif isinstance(event, LESSON_EVENTS):
            self._note_lesson(event, at_ms)
        else:
            self._apply(event, query, LogMoment(offset, at_ms))
        names = self._names
        who = names.principals.get(event.principal)
        if who is None or who is OVERFLOW:
            who = names.counted(event.principal)
        self._sources[who, names.agent(event.agent), kind_of(event)] += 1
        self._seen[fingerprint] = (offset, at_ms)
        return Fate.APPLIED

    def _correct(self, event: Correction, at_ms: int) -> None:
        by, asked = self._names.principal(event.principal), question_of_text(event.question or "")
        word = corrected(event, at_ms, principal=by, question=asked)
        word.note_with_question(self._sessions.tally_of(event.session_id))

    def _note_lesson(self, event: LessonEvent, at_ms: int) -> None:
        if isinstance(event, LessonChange) and event.lesson_id is not None and forgets(event):
            self.change.forgotten.add(event.lesson_id)
            self._sessions.merges += 1  # what is published changes
        tally, principal = self._sessions.tally_of(event.session_id), self._names.principal(event.principal)
        for key, micro in lesson_usage(event, at_ms, principal=principal):
            tally.note_usage(key, micro)

    def _apply(
        self, event: Impression | Report | SessionPhase | TriggerRemoval, query: bytes, moment: LogMoment
    ) -> None:
        if unlearns(event):
            self._unlearn(event.principal, moment.offset)
        elif isinstance(event, SessionPhase):
            self._sessions.turn(
                event.session_id, event.phase, principal=event.principal, offset=moment.offset, clock_ms=self._clock_ms
            )
        elif isinstance(event, TriggerRemoval):
            self._remove_trigger(event, moment)
        elif isinstance(event := self._names.bounded(event), Impression):
            self._show(query, event, moment)
        else:
            day = moment.at_ms // DAY_MS
            principal, allowance = self._names.principal(event.principal), allowance_of(event)
            tally, within = self._drawn(event.session_id, principal, day, MICRO, allowance=allowance)
            evidence = report_evidence(event, day=day, principal=principal)
            tally.note_report(evidence, surplus=not within)
            tally.note_report(speaker_evidence(event, day=day, principal=principal), surplus=not within)

    def _remove_trigger(self, event: TriggerRemoval, moment: LogMoment) -> None:
        # It takes an effect away and gives none: no allowance bounds it.
        tally, principal = self._sessions.tally_of(event.session_id), self._names.principal(event.principal)
        tally.note_use(moment.at_ms // DAY_MS, event.content_hash, REMOVED + event.term, 1.0, principal)

    def _unlearn(self, principal: str, offset: int) -> None:
        """Take out what a principal said; the batch begins here, so that all of it is in the state."""
        fingerprint = principal_fingerprint(principal)
        if (NameKind.PRINCIPAL, fingerprint) in self._names.existing:  # else nothing is there, or it shares a name
            self.change.unlearned[principal] = fingerprint
            for shown in self.stored.shown.values():
                shown.forget(principal, fingerprint)
        for query, some in self.stored.waiting.items():
            self.stored.waiting[query] = [each for each in some if each.feedback.principal != principal]
        self._sessions.unlearn_all(principal, offset, self._clock_ms)

    def _show(self, query: bytes, impression: Impression, moment: LogMoment) -> None:
        before = self.stored.shown.get(query)
        if before and self._remembered(before.moment, self._limits.waiting_records, self._window_ms):
            # The first one stands: whoever answers later may not change what was shown.
            raise InvalidEventError("repeated_impression", f"query {impression.query_id!r} was shown before")
        shown = self.stored.shown[query] = self.change.shown[query] = PendingImpression(moment, impression)
        tally = self._sessions.tally_of(impression.session_id)
        tally_shown(tally, impression, day=moment.at_ms // DAY_MS)
        for waiting in self.stored.waiting.pop(query, ()):
            self._join_waiting(query, shown, waiting)

    def _join_waiting(self, query: bytes, shown: PendingImpression, waiting: PendingFeedback) -> None:
        if self.change.waiting.pop(waiting.moment.offset, None) is None:
            self.change.joined.append(waiting.moment.offset)
        try:
            if not self._remembered(waiting.moment, self._limits.waiting_records, self._window_ms):
                self.change.unjoined += 1
            else:
                self._credit(query, shown, waiting.feedback, waiting.moment.at_ms)
        except InvalidEventError:
            # It was consumed, and counted, when it came; all that is left to say is that it answers nothing.
            self.change.unjoined += 1

    def _answer(self, query: bytes, feedback: Feedback, offset: int, at_ms: int) -> Fate:
        shown = self.stored.shown.get(query)
        if shown is None or not self._remembered(shown.moment, self._limits.waiting_records, 2 * self._window_ms):
            waiting = PendingFeedback(LogMoment(offset, at_ms), feedback)
            self.stored.waiting.setdefault(query, []).append(waiting)
            self.change.waiting[offset] = (query, waiting)
        elif shown.moment.at_ms < self._clock_ms - self._window_ms:
            return Fate.LATE
        else:
            self._credit(query, shown, feedback, at_ms)
        return Fate.APPLIED

    def _credit(self, query: bytes, shown: PendingImpression, feedback: Feedback, at_ms: int) -> None:
        impression, day = shown.impression, at_ms // DAY_MS
        if self._attribute is not None:
            feedback = attributed(feedback, impression, self._attribute)
        if type(feedback) is Explicit and feedback.content_hash is not None:
            self._judge(query, shown, feedback, at_ms)
            return
        if isinstance(feedback, Selection):
            self._choose(query, shown, feedback, at_ms)
            return
        where = self._under(shown, feedback.principal)
        if isinstance(feedback, Correction):
            word = corrected(feedback, at_ms, principal=where.principal, question=shown.asked())
            word.note_with_question(self._sessions.tally_of(impression.session_id))
            return
        credited = credits_of(feedback, impression, chosen=shown.chosen, rules=self._rules)
        if not credited:
            tally = self._sessions.tally_of(impression.session_id)  # where it counts as an event, if it says nothing
            self._note_context(query, shown, feedback, tally, day)
            return
        tally, within = self._drawn(impression.session_id, where.principal, day, drawn_by(credited))
        note_question(tally, day, shown.asked())
        note_credits(tally, credited, where, impression.results, day=day, surplus=not within)
        self._note_context(query, shown, feedback, tally, day)

    def _choose(self, query: bytes, shown: PendingImpression, selection: Selection, at_ms: int) -> None:
        """A result was chosen; who opens the whole page chose none, and what was noted before is taken back (FBK-11).

        It is taken back where it was noted since the session began, or began again: what it noted before that stays
        what it was, or was dropped.
        """
        impression, who = shown.impression, self._names.principal(selection.principal)
        place, mine = chosen_place(selection, impression), shown.choices.get(who, [])
        tally = self._sessions.tally_of(impression.session_id)  # where it counts as an event, if it says nothing
        if who in shown.swept or any(each.place == place for each in mine):
            return
        self.change.shown[query] = shown
        life, result = self._sessions.life_of(impression.session_id), impression.results[place]
        if is_sweep([*(each.at_ms for each in mine), at_ms], len(impression.results)):
            for each in shown.withdraw(who):
                if each.life == life:
                    self._note_choice(shown, each, selection.principal, tally, times=-1)
            shown.swept.append(who)
            self._sources[who, self._names.agent(selection.agent), SWEEP] += 1
            return
        choice = CountedSelection(place, at_ms, life)
        if result.rank not in shown.chosen:
            terms = learned_terms(selection, result, shown.impression, self._rules.triggers)
            choice = choice._replace(after=max(shown.chosen, default=0), terms=terms)
            choice = self._note_choice(shown, choice, selection.principal, tally)
            shown.chosen = (*shown.chosen, result.rank)
        shown.choices[who] = [*mine, choice]

    def _note_choice(
        self, shown: PendingImpression, choice: CountedSelection, principal: str, free: Tally, *, times: int = 1
    ) -> CountedSelection:
        """Note a choice, or take it back with −1 times; the choice with whether it is within its allowance."""
        if choice.after is None:
            return choice
        impression, where = shown.impression, self._under(shown, principal)
        credited = choice_credits(impression.results[choice.place], impression, choice.after, self._rules)
        micro = times * drawn_by(credited)
        tally, within = self._draw(free, impression.session_id, where.principal, choice.day, micro)
        if times > 0:
            choice = choice._replace(within=within)
        shown_day = shown.moment.at_ms // DAY_MS
        note_choice(tally, choice, impression, where, credited, shown_day=shown_day, times=times)
        return choice

    def _judge(self, query: bytes, shown: PendingImpression, verdict: Explicit, at_ms: int) -> None:
        """A verdict on one result. Those that say the same on one day are noted together, at the end of the batch."""
        day, session = at_ms // DAY_MS, shown.impression.session_id
        key = verdict.principal, verdict.content_hash, verdict.signal, verdict.asked
        same = shown.judged.get(key)
        if same is None or same.day != day or shown.verdicts[same.about] is not same.last:
            credited = credits_of(verdict, shown.impression, chosen=shown.chosen, rules=self._rules)
            if not credited:
                self._sessions.tally_of(session)  # where it counts as an event, if it says nothing
                return
            same = shown.judged[key] = self._equal_verdicts(query, shown, verdict, credited[0], at_ms)
            self._verdicts.append(same)
        where = self._drawn(session, same.word.principal, day, same.micro)
        same.noted[where] = same.noted.get(where, 0) + 1

    def _equal_verdicts(
        self, query: bytes, shown: PendingImpression, verdict: Explicit, credit: Credit, at_ms: int
    ) -> EqualVerdicts:
        """A principal's last word on a result; said again on the same day, it is the same word."""
        where, content = self._under(shown, verdict.principal), credit.result.content_hash
        about = f"{where.principal}:{content}"
        last = shown.verdicts.get(about)
        if last is None or last[0] is not credit.good or at_ms // DAY_MS > last[1] // DAY_MS:
            since = at_ms if last is None else max(at_ms, last[1] + 1)
            last = shown.verdicts[about] = credit.good, since
            self.change.shown[query] = shown
        share = shown.share_of_best(credit.result)
        word = ContentVerdict(content, credit.good, last[1], credit.weight, where.principal, shown.asked(), share)
        return EqualVerdicts(word, credit, where, shown.impression.results, at_ms // DAY_MS, about, last)

    def _note_context(self, query: bytes, shown: PendingImpression, feedback: Feedback, tally: Tally, day: int) -> None:
        """What whoever made the answer says of its context: what was left out earns nothing of what comes (FBK-1)."""
        if not isinstance(feedback, Inclusion | Retrieval):
            return
        if isinstance(feedback, Retrieval):
            where = self._under(shown, feedback.principal)
            note_excluded(tally, feedback, shown.impression, where, self._rules.credit, day=day)
        shown.impression = in_context(feedback, shown.impression, named=shown.named)
        shown.named = shown.named or isinstance(feedback, Inclusion)
        self.change.shown[query] = shown

    def _note_verdicts(self) -> None:
        questions: Counter[tuple[Tally, int, QuestionText]] = Counter()
        for each in self._verdicts:
            for (tally, within), times in each.noted.items():
                each.note(tally, within=within, times=times)
                questions[tally, each.word.at_ms // DAY_MS, each.word.question] += times
        for (tally, day, asked), times in questions.items():
            note_question(tally, day, asked, times=times)

    def _drawn(
        self, session: str, principal: str, day: int, micro: int, *, allowance: str = WEIGHTS
    ) -> tuple[Tally, bool]:
        """Where evidence goes that draws on an allowance, and whether there was any left, as far as that is decided."""
        return self._draw(self._sessions.tally_of(session), session, principal, day, micro, allowance=allowance)

    def _draw(
        self, tally: Tally, session: str, principal: str, day: int, micro: int, *, allowance: str = WEIGHTS
    ) -> tuple[Tally, bool]:
        """The same, where the session's tally is at hand; what is taken back draws less than nothing."""
        owner = self._names.allowance_owner(principal, day)
        if tally is self._sessions.shared:
            return tally, self._names.allowance(owner, day, allowance).draw(micro, self._limits.daily_of(allowance))
        return self._sessions.drawing(session, tally, Draw(owner, allowance, day), micro), True

    def _under(self, shown: PendingImpression, principal: str) -> OutcomeScope:
        """What feedback is kept under: the impression's scope and question, and who gives it."""
        if (where := shown.under.get(principal)) is None:
            by, slope = self._names.principal(principal), self._rules.credit.choice_slope
            where = shown.under[principal] = under(shown.impression, slope=slope, principal=by)
        return where

    def _remembered(self, moment: tuple[int, int], records: int, window_ms: int) -> bool:
        offset, at_ms = moment
        return at_ms >= self._clock_ms - window_ms and offset >= self._next_offset - records
