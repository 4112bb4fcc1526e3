"""Which results a piece of feedback speaks about, for or against, and how loudly."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from msgspec import Struct, structs

from weft.domain.errors import InvalidEventError
from weft.domain.events import (
    Attribution,
    Correction,
    Explicit,
    Feedback,
    Impression,
    Inclusion,
    Reference,
    Retrieval,
    Selection,
    ShownResult,
    Success,
)
from weft.domain.ids import ContentHash, question_fingerprint, question_of
from weft.feedback.events.attribution import Method
from weft.feedback.events.trigger_terms import BEYOND_RANK, MOST_TERMS, learnable, trigger_terms
from weft.feedback.settings import DAY_MS, CreditSettings, FeedbackSettings, TriggerSettings
from weft.learning.evidence import MICRO
from weft.learning.observe.impressions import ImpressionBuckets
from weft.learning.observe.outcomes import UNJUDGED, VOLUNTEERED, OutcomeScope
from weft.learning.observe.tallies import Tally
from weft.learning.observe.triggers import LEARNED
from weft.learning.observe.verdicts import VerdictBin, question_bin
from weft.learning.parameters import INCLUSION, NEGATIVE, REFERENCE, RETRIEVAL
from weft.learning.uses import UsageKey

RESPONSES = (Success, Reference)
"""Events that may hold a response."""
Attribute = Callable[[Sequence[ContentHash], str], Attribution | None]
"""What a response rests on among the contents that it was given; the same for the same, whenever it is asked."""


class Credit(Struct, frozen=True, gc=False):
    """One shown result found good or bad, with a weight >= 0 in observations."""

    result: ShownResult
    good: bool
    weight: float
    use: str = ""  # what was done with it, where that is counted beside the outcome: a bin of usage, else ""
    used: float = 1.0  # how much of one use that was, in [0, 1]
    # whether somebody said outright of this very result that it is good, or that it is bad, and was asked to.
    # Other feedback speaks up for one side more than for the other, and says nothing about probabilities
    judged: int = UNJUDGED


def credits_of(
    feedback: Feedback, impression: Impression, *, chosen: Collection[int], rules: FeedbackSettings
) -> list[Credit]:
    """What one piece of feedback says about the results of its impression.

    A verdict with a content hash is about that result; one without is shared by all results that were included, as
    its attribution says, or equally; so is success. Retrieval, inclusion and reference are about the results they
    name; a reference that names none is shared. What was retrieved and left out is weakly bad: being found is never
    good by itself (FBK-12); contents that were never shown are for `note_excluded`. A selection speaks for the chosen
    result, and against each result ranked above it that was passed over (skip-above: Joachims et al., Accurately
    interpreting clickthrough data as implicit feedback, SIGIR 2005), each weighed by how often its rank is looked at.
    A result is passed over once and chosen once, however often its answer is clicked.

    Raises:
        InvalidEventError: "unknown_result": it is about something that was never shown.
    """
    if isinstance(feedback, Selection):
        return _selection(feedback, impression, chosen, rules)
    return _RULES[type(feedback)](feedback, impression, rules)


def unattributed(feedback: object) -> str | None:
    """The response whose outcome feedback tells without saying what it rests on; None where there is none."""
    if not isinstance(feedback, RESPONSES) or feedback.attribution is not None:
        return None
    named = isinstance(feedback, Reference) and feedback.content_hashes is not None
    return None if named or not feedback.response else feedback.response


def attributed(feedback: Feedback, impression: Impression, attribute: Attribute) -> Feedback:
    """The same feedback with what its response rests on among what was included, where nobody said so yet (FBK-9)."""
    response = unattributed(feedback)
    if response is None:
        return feedback
    included = [ContentHash(result.content_hash) for result in impression.results if result.included]
    return structs.replace(feedback, attribution=attribute(included, response))


def in_context(feedback: Inclusion | Retrieval, impression: Impression, *, named: bool) -> Impression:
    """The impression with what its answer's context held, as whoever made the answer says."""
    hashes, includes = set(feedback.content_hashes), isinstance(feedback, Inclusion)
    results = [
        structs.replace(
            each, included=includes if each.content_hash in hashes else each.included and (named or not includes)
        )
        for each in impression.results
    ]
    return structs.replace(impression, results=results)


def note_excluded(
    tally: Tally, retrieval: Retrieval, impression: Impression, where: OutcomeScope, rules: CreditSettings, *, day: int
) -> None:
    """Note what was found and left out before anything was shown: without signals it says nothing about weights."""
    shown = {result.content_hash for result in impression.results}
    for content_hash in dict.fromkeys(retrieval.content_hashes):
        if content_hash not in shown:
            tally.note_use(day, content_hash, RETRIEVAL, 1.0, where.principal)
            tally.note_use(day, content_hash, NEGATIVE, rules.retrieved, where.principal, question=where.question)


def under(impression: Impression, *, slope: float, principal: str = "") -> OutcomeScope:
    """What feedback on an impression is kept under."""
    question = "" if impression.query_hash is None else question_fingerprint(impression.query_hash)
    return OutcomeScope(impression.model, impression.agent, impression.intent, principal, question, slope)


def note_credits(
    tally: Tally,  # where they go
    credited: Iterable[Credit],  # what one piece of feedback says
    where: OutcomeScope,  # what they are kept under
    page: Sequence[ShownResult],  # what signals are measured against: what was shown together, or nothing
    *,
    day: int,  # it happened on
    surplus: bool,  # whether the principal's allowance of the day is used up, so that no parameter moves
    times: int = 1,  # how many events say the same
) -> None:
    """Add credits to a tally, each under its result's own domain and the impression's model and agent."""
    rows, number = tally.rows, tally.number
    for credit in credited:
        # Ranges were checked when the events were decoded.
        rows.append(
            (number, day, where, surplus, credit.good, credit.judged, credit.weight, credit.result, page, times)
        )
        if credit.use:
            tally.note_use(day, credit.result.content_hash, credit.use, credit.used, where.principal)


def drawn_by(credited: Sequence[Credit]) -> int:
    """How much of its principal's allowance a piece of feedback takes, in micro-units."""
    if len(credited) == 1:
        return round(credited[0].weight * MICRO)
    return sum(round(credit.weight * MICRO) for credit in credited)


def tally_shown(tally: Tally, impression: Impression, *, day: int) -> None:
    """Count what was shown where: the ground that clicks are counted on (FBK-10)."""
    tally.show(ImpressionBuckets(day, impression.model, impression.agent), impression.results)


def tally_click(tally: Tally, clicked: ShownResult, impression: Impression, *, day: int, times: int = 1) -> None:
    """Count a click that its impression knows nothing of yet; −1 times takes it back."""
    tally.click(ImpressionBuckets(day, impression.model, impression.agent), clicked, impression.results, times=times)


def learned_terms(
    selection: Selection, chosen: ShownResult, impression: Impression, rules: TriggerSettings
) -> tuple[str, ...]:
    """The words by which a result that was picked from far down shall be found (RET-17)."""
    if chosen.rank <= BEYOND_RANK:
        return ()
    terms = selection.terms
    if terms is None and selection.rank is None:
        # Who holds an answer's token alone knows neither the query's words nor ranks.
        terms = trigger_terms(impression.question or "", rules)
    return tuple(learnable(terms or (), rules)[:MOST_TERMS])


class CountedSelection(NamedTuple):
    """A selection that counts, as far as taking it back needs it."""

    place: int  # of the result on its page, from 0
    at_ms: int
    life: int  # of the session that has its evidence, see `Sessions.life_of`; 0 where all have it
    # the lowest rank chosen before on the page, of 0 none; None where its rank had been: nothing was noted
    after: int | None = None
    within: bool = True  # its principal's allowance
    terms: tuple[str, ...] = ()  # by which its result shall be found

    @property
    def day(self) -> int:
        """On which it happened."""
        return self.at_ms // DAY_MS


MOST_AT_ONCE, AT_ONCE_MS = 3, 2_000
"""Results of one page that a person opens within two seconds, at most: nobody looks at a fourth by then."""
FEW_SHOWN = 3
"""Of so few results, whoever opens all but one still chooses."""


def is_sweep(moments_ms: Iterable[int], shown: int) -> bool:
    """Whether who opened results of a page at these times, each once, opened the page rather than chose from it.

    That is who opened all that it shows, or of more than a few all but one, or many at once, as link scanners do: their
    order, and what they left, says nothing. Who opens half of a page, one by one, is not told from a person.

    Examples:
        >>> is_sweep([0, 60_000, 120_000], 4), is_sweep([0, 60_000], 3), is_sweep([0, 100, 200, 300], 10)
        (True, False, True)
    """
    times = sorted(moments_ms)
    opened_all = len(times) >= max(2, shown - (shown > FEW_SHOWN))
    return opened_all or any(
        last - first <= AT_ONCE_MS for first, last in zip(times, times[MOST_AT_ONCE:], strict=False)
    )


def chosen_place(selection: Selection, impression: Impression) -> int:
    """The place at which the impression shows what was selected; what the event itself says is not relied on.

    Raises:
        InvalidEventError: "unknown_result": it was never shown.
    """
    chosen = _shown(selection.content_hash, impression)
    return next(place for place, each in enumerate(impression.results) if each is chosen)


def note_choice(
    tally: Tally,  # where it goes
    choice: CountedSelection,
    impression: Impression,  # of its page
    where: OutcomeScope,  # what it is kept under
    credited: Sequence[Credit],  # what it says, as `choice_credits` tells
    *,
    shown_day: int,  # on which the page was shown: clicks are counted where the results are that they stand among
    times: int = 1,  # −1 takes it back
) -> None:
    """Add a choice to a tally: what it says of results, its click, and the words that its result shall be found by."""
    day, result = choice.day, impression.results[choice.place]
    note_question(tally, day, question_in(impression), times=times)
    note_credits(tally, credited, where, impression.results, day=day, surplus=not choice.within, times=times)
    if choice.within:
        tally_click(tally, result, impression, day=shown_day, times=times)
        for term in choice.terms:
            tally.note_use(day, result.content_hash, LEARNED + term, times, where.principal)


def shared_credits(
    signal: float, attribution: Attribution | None, impression: Impression, rules: FeedbackSettings, *, scale: float
) -> list[Credit]:
    """An outcome of the whole answer, shared by all results that were included.

    Each weighs |signal| · scale · confidence of the method · its share. No share exceeds 1, and how far a
    method is relied on is the updater's to say: a producer cannot make itself heard more loudly.

    Raises:
        InvalidEventError: "unknown_result": nothing was shown.
    """
    if not impression.results:
        raise InvalidEventError("unknown_result", f"query {impression.query_id!r} was answered with no results")
    included = [result for result in impression.results if result.included]
    if not included:
        return []  # whatever the answer was made from, it was none of them
    weight = abs(signal) * scale * rules.attribution.reliance(_method(attribution))
    if attribution is None:
        credited = [Credit(result, signal > 0.0, weight / len(included)) for result in included]
    else:
        shares = attribution.shares
        credited = [Credit(each, signal > 0.0, weight * shares.get(each.content_hash, 0.0)) for each in included]
    return [credit for credit in credited if credit.weight > 0.0]


def _method(attribution: Attribution | None) -> str:
    return Method.EQUAL if attribution is None else attribution.method


def _verdict(verdict: Explicit, impression: Impression, rules: FeedbackSettings) -> list[Credit]:
    if verdict.content_hash is None:
        return shared_credits(verdict.signal, verdict.attribution, impression, rules, scale=rules.credit.explicit)
    weight = abs(verdict.signal) * rules.credit.explicit
    shown = _shown(verdict.content_hash, impression)
    return [Credit(shown, verdict.signal > 0.0, weight, judged=VOLUNTEERED + verdict.asked)] if weight > 0.0 else []


def _success(success: Success, impression: Impression, rules: FeedbackSettings) -> list[Credit]:
    return shared_credits(1.0, success.attribution, impression, rules, scale=rules.credit.success)


def _retrieval(retrieval: Retrieval, impression: Impression, rules: FeedbackSettings) -> list[Credit]:
    left_out = set(retrieval.content_hashes)
    shown = [result for result in impression.results if result.content_hash in left_out]
    return [Credit(result, False, rules.credit.retrieved, RETRIEVAL) for result in shown]


def _inclusion(inclusion: Inclusion, impression: Impression, rules: FeedbackSettings) -> list[Credit]:
    put_in = _all_shown(inclusion.content_hashes, impression)
    return [Credit(result, True, rules.credit.included, INCLUSION) for result in put_in]


def _reference(reference: Reference, impression: Impression, rules: FeedbackSettings) -> list[Credit]:
    match, weight = reference.match, rules.credit.referenced
    if reference.content_hashes is not None:
        named = _all_shown(reference.content_hashes, impression)
        return [Credit(result, True, match * weight, REFERENCE, match) for result in named]
    shared = shared_credits(match, reference.attribution, impression, rules, scale=1.0)
    return [Credit(each.result, True, each.weight * weight, REFERENCE, each.weight) for each in shared]


def _selection(
    selection: Selection, impression: Impression, chosen: Collection[int], rules: FeedbackSettings
) -> list[Credit]:
    result = _shown(selection.content_hash, impression)
    return [] if result.rank in chosen else choice_credits(result, impression, max(chosen, default=0), rules)


def choice_credits(result: ShownResult, impression: Impression, after: int, rules: FeedbackSettings) -> list[Credit]:
    """What the choice of a result says where the lowest rank chosen before it is `after`, or 0."""
    # Everything above the lowest earlier choice was passed over then, and has been counted.
    passed_over = [other for other in impression.results if after < other.rank < result.rank]
    credit = rules.credit
    return [
        Credit(result, True, credit.selected * inverse_examination(result, credit.inverse_clip)),
        *(Credit(each, False, credit.skipped * inverse_examination(each, credit.inverse_clip)) for each in passed_over),
    ]


def inverse_examination(result: ShownResult, clip: float) -> float:
    """What implicit feedback on a result weighs: 1 / P(its rank is looked at), at most `clip` (FBK-10).

    Clicks and skips happen only where one looks; weighed inversely to how often that is, they count as if all ranks
    were looked at alike (Joachims, Swaminathan and Schnabel, Unbiased learning-to-rank with biased feedback, WSDM
    2017).
    The probability is the one the impression was stamped with, so that a replay gives the same bits.
    """
    return clip if result.examination * clip <= 1.0 else 1.0 / result.examination


def _all_shown(content_hashes: Iterable[str], impression: Impression) -> list[ShownResult]:
    """Each named result once, in the order of the names; every one of them must have been shown."""
    by_hash = {result.content_hash: result for result in impression.results}
    named = dict.fromkeys(content_hashes)
    if strange := next((each for each in named if each not in by_hash), None):
        raise InvalidEventError("unknown_result", f"{strange[:12]}… was not shown for {impression.query_id!r}")
    return [by_hash[each] for each in named]


def _shown(content_hash: str, impression: Impression) -> ShownResult:
    for result in impression.results:
        if result.content_hash == content_hash:
            return result
    raise InvalidEventError("unknown_result", f"{content_hash[:12]}… was not shown for {impression.query_id!r}")


_RULES: Mapping[type[Feedback], Callable[[Any, Impression, FeedbackSettings], list[Credit]]] = {
    Retrieval: _retrieval,
    Inclusion: _inclusion,
    Reference: _reference,
    Success: _success,
    Explicit: _verdict,
}


# What a person called right or wrong, as evidence of the content under the question (LRN-18, LRN-23). Pure.


class QuestionText(NamedTuple):
    """A question."""

    fingerprint: str  # what outcomes under it are kept by; "" where nothing was asked
    text: str  # "" where it is private


class ContentVerdict(NamedTuple):
    """One principal's word on one content under one question."""

    content: str  # its hash, or the URI of where it stands
    good: bool
    at_ms: int  # since when this is the principal's word, in milliseconds since the epoch
    weight: float  # in observations, > 0
    principal: str
    question: QuestionText
    share: float | None = None  # of the best score on its page that it was shown with, in [0, 1]; None where it was not

    def note(self, tally: Tally, *, times: int = 1) -> None:
        """Add the word, said so many times, to a tally."""
        day, ms = divmod(self.at_ms, DAY_MS)
        name = VerdictBin(self.good, ms, self.share).name
        mass = round(self.weight * MICRO) * times  # rounded one by one, wherever batches begin
        tally.note_usage(UsageKey(day, self.content, name, self.principal, self.question.fingerprint), mass)

    def note_with_question(self, tally: Tally) -> None:
        """Add the word to a tally, and the text of what was asked."""
        self.note(tally)
        note_question(tally, self.at_ms // DAY_MS, self.question)


def note_question(tally: Tally, day: int, question: QuestionText, *, times: int = 1) -> None:
    """Add a question's text, once for each outcome under it: it goes when they do."""
    if question.fingerprint and question.text:
        key = UsageKey(day, "", question_bin(question.text), question=question.fingerprint)
        tally.note_usage(key, times * MICRO)


def question_in(impression: Impression) -> QuestionText:
    """What an impression's search was asked."""
    if impression.query_hash is None:
        return QuestionText("", "")
    return QuestionText(question_fingerprint(impression.query_hash), impression.question or "")


def question_of_text(text: str) -> QuestionText:
    """A question whose text is at hand."""
    return QuestionText(question_of(text), text)


def corrected(correction: Correction, at_ms: int, *, principal: str, question: QuestionText) -> ContentVerdict:
    """What a correction says: praise or blame of a content under a question, and of nothing else."""
    content = correction.content_hash or correction.uri or ""
    return ContentVerdict(content, correction.right, at_ms, 1.0, principal, question)


@dataclass(slots=True)
class EqualVerdicts:
    """What verdicts on one result come to that say the same, by the same principal on one day."""

    word: ContentVerdict
    credit: Credit
    where: OutcomeScope
    page: Sequence[ShownResult]
    day: int
    about: str  # principal and content, by which the page keeps last words
    last: tuple[bool, int]  # the last word then: once there is another, who says the same says something new
    # how often it was said, by where that goes and whether it was within an allowance
    noted: dict[tuple[Tally, bool], int] = field(default_factory=dict)
    micro: int = field(init=False)  # that each draws on an allowance

    def __post_init__(self) -> None:
        self.micro = drawn_by((self.credit,))

    def note(self, tally: Tally, *, within: bool, times: int) -> None:
        """Add those that go to one tally."""
        self.word.note(tally, times=times)
        note_credits(tally, (self.credit,), self.where, self.page, day=self.day, surplus=not within, times=times)
