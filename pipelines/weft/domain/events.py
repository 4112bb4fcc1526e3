"""Feedback events as they travel on the topic (FBK-1): one JSON object each, told apart by `type`."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, to_builtins

from weft.domain.chunks import MadeBy
from weft.domain.documents import Domain
from weft.domain.errors import InvalidLessonError
from weft.domain.event_fields import (
    MOST_SHOWN,
    Code,
    ConditionValues,
    Contents,
    Event,
    Hash,
    Hours,
    Identifier,
    LessonOrigin,
    Name,
    Note,
    Place,
    Question,
    Rank,
    Satisfaction,
    Section,
    Share,
    Term,
    Text,
    Turn,
)
from weft.domain.lesson import LONGEST_CONTENT, Lesson, LessonKind, LessonPriority, LessonResult, LessonSource
from weft.domain.matching import MatchFeatures
from weft.domain.ranking import ANY


class ShownResult(Struct, kw_only=True, frozen=True, gc=False):
    """One result as it was shown.

    Attributes:
        score: Its relevance in [0, 1], which means the same under every fusion mode: calibration is learned on it.
            None where another engine ranked it.
        signals: Value in [0, 1] of every signal by name.
        propensity: Probability of showing it at this rank under the policy in force; 1 without exploration.
        included: Whether it was handed to the user or into the context.
        examination: Probability that its rank is looked at, by the beliefs it was ranked with: implicit feedback is
            weighed by it (FBK-10).
        made: Its size and the learned sizes behind it, so that feedback on it is evidence about them (LRN-9).
        match: How well it matches by itself: what probabilities are learned on (RET-15).
        asked: Probability with which a verdict on this very result is asked for, where one is; else 0. Results to ask
            about are drawn at random: what is said of them speaks for all that was shown (RET-15).
        precedent: How good it was by what came of it before, whatever it matches: 1 / (1 + e^−u) of its effects
            (LRN-18). None where nothing had come of this question or of one near it.
    """

    content_hash: Hash
    rank: Rank
    domain: Domain
    score: Share | None = None
    signals: dict[str, Share]
    included: bool = True
    propensity: Share = 1.0
    examination: Share = 1.0
    made: MadeBy | None = None
    match: MatchFeatures | None = None
    asked: Share = 0.0
    precedent: Share | None = None


class Attribution(Struct, kw_only=True, frozen=True, gc=False):
    """How much of a response rests on each result it was given, by whoever held both texts (FBK-9).

    Attributes:
        method: What it was made from; the updater relies on it as far as its own settings say.
        shares: By content hash; of results left out, 0.
    """

    method: Literal["counterfactual", "attention", "semantic"]
    shares: Annotated[dict[Hash, Share], Meta(max_length=200)]


class Impression(Event, kw_only=True, frozen=True, gc=False, tag="impression"):
    """What was shown for one query; emitted by the search service itself.

    Attributes:
        query_hash: Of what was asked, as `questions.question_hash` makes it: outcomes under it are told apart. None
            where nothing was asked, as on a page of recommendations: outcomes are of no question.
        question: What was asked, perhaps cut: near questions are told by it (LRN-19). None keeps it private.
        signature: By the search service, over all that stands before it (FBK-13): the last field, whatever joins.
    """

    query_id: Identifier
    query_hash: Hash | None = None
    question: Question | None = None
    intent: Name = ANY
    results: Annotated[list[ShownResult], Meta(max_length=MOST_SHOWN)]
    signature: Code | None = None


class Retrieval(Event, kw_only=True, frozen=True, gc=False, tag="retrieval"):
    """Results that were retrieved, and left out of the context."""

    query_id: Identifier
    content_hashes: Contents


class Inclusion(Event, kw_only=True, frozen=True, gc=False, tag="inclusion"):
    """Results that were put into the context."""

    query_id: Identifier
    content_hashes: Contents


class Reference(Event, kw_only=True, frozen=True, gc=False, tag="reference"):
    """The answer made use of results: of those it names, or of those that its text is found to rest on.

    Attributes:
        match: How sure it is that they were used.
        response: The answer's text; without an attribution, what it rests on is told by the updater.
    """

    query_id: Identifier
    content_hashes: Contents | None = None
    match: Share = 1.0
    response: Text | None = None
    attribution: Attribution | None = None

    def __post_init__(self) -> None:
        if self.content_hashes is None and self.response is None and self.attribution is None:
            raise ValueError("expected `content_hashes`, `response` or `attribution`, found none of them")


class Success(Event, kw_only=True, frozen=True, gc=False, tag="success"):
    """The answer served its purpose: nobody had to ask again.

    Attributes:
        response: The answer's text.
        attribution: How the success is shared among results; without one, as the response says, or equally.
    """

    query_id: Identifier
    response: Text | None = None
    attribution: Attribution | None = None


class Explicit(Event, kw_only=True, frozen=True, gc=False, tag="explicit"):
    """A verdict: thumbs up (1) to thumbs down (−1), on one result, or on the answer as a whole.

    Attributes:
        attribution: Of a verdict on the whole, how it is shared among results; without one, equally.
        asked: Whether it answers the request to judge this result; nobody asked for any other.
    """

    query_id: Identifier
    signal: Satisfaction
    content_hash: Hash | None = None
    attribution: Attribution | None = None
    asked: bool = False


class Selection(Event, kw_only=True, frozen=True, gc=False, tag="selection"):
    """A result was opened or chosen.

    Attributes:
        rank: Where it stood, where whoever reports that knows it; the impression's own word is relied on.
        terms: Words of the query that a result picked from far down shall be found by (RET-17). Where neither they nor
            `rank` are said, the updater takes those of the impression's question.
    """

    query_id: Identifier
    content_hash: Hash
    rank: Rank | None = None
    terms: Annotated[tuple[Term, ...], Meta(max_length=8)] | None = None


class Correction(Event, kw_only=True, frozen=True, gc=False, tag="correction"):
    """A person names the right content for a question, or a wrong one, shown or not (LRN-23).

    Attributes:
        query_id: Whose question is meant; without it `question` says it.
        content_hash: The content; without it `uri` says where it stands.
        uri: A document, perhaps with "#anchor" of a heading or "#L12" for a line: it holds when the text is edited.
        right: Whether it answers the question.
    """

    query_id: Identifier | None = None
    question: Question | None = None
    content_hash: Hash | None = None
    uri: Place | None = None
    right: bool = True

    def __post_init__(self) -> None:
        if (self.query_id is None) == (self.question is None):
            raise ValueError("expected one of `query_id` and `question`")
        if (self.content_hash is None) == (self.uri is None):
            raise ValueError("expected one of `content_hash` and `uri`")


class Review(Event, kw_only=True, frozen=True, gc=False, tag="review"):
    """What came of a decision that was made with some confidence: evidence about thresholds (LRN-7)."""

    domain: Domain
    confidence: Share
    good: bool


class Accuracy(Event, kw_only=True, frozen=True, gc=False, tag="accuracy"):
    """Whether a content, or what its domain holds, was still accurate at an age: evidence about decay (LRN-6).

    Attributes:
        domain: Whose decay it is about; of a content, the content's.
        content_hash: Which content was looked at, where it was one of weft's.
    """

    domain: Domain
    age_hours: Hours
    accurate: bool
    content_hash: Hash | None = None


class ModelQuality(Event, kw_only=True, frozen=True, gc=False, tag="model_quality"):
    """How good a model was at one turn of a conversation (LRN-8)."""

    model: Name
    turn: Turn
    quality: Share


class Trust(Event, kw_only=True, frozen=True, gc=False, tag="trust"):
    """Whether a source of some type held when it was verified, for the model that used it (LRN-10).

    Attributes:
        source: Type of source, as documents declare it in `source_type`, or else their content type.
    """

    source: Name
    verified: bool


class LessonConditions(Struct, kw_only=True, frozen=True, gc=False, omit_defaults=True):
    """When a lesson is of use (LES-1): see `domain.lesson.Conditions`."""

    tools: ConditionValues = ()
    files: ConditionValues = ()
    actions: ConditionValues = ()
    words: ConditionValues = ()


class LessonText(Struct, kw_only=True, frozen=True, gc=False, omit_defaults=True):
    """What a lesson says (LES-1): see `domain.lesson.Lesson`; its id is made from it."""

    section: Section
    content: Annotated[str, Meta(min_length=1, max_length=LONGEST_CONTENT, pattern=r"\S")]
    kind: LessonKind = LessonKind.PATTERN
    priority: LessonPriority = LessonPriority.MEDIUM
    source: LessonSource = LessonSource.OTHER
    conditions: LessonConditions | None = None
    missed: Annotated[str, Meta(min_length=1, max_length=500)] | None = None
    reasoning: Note | None = None
    span: Note | None = None


class LessonChange(Event, kw_only=True, frozen=True, gc=False, tag="lesson"):
    """Something is said about which lessons there are (LES-7). What is added twice is one lesson, said twice.

    Attributes:
        op: `add` and `revise` say a `lesson`; `revise`, `retire` and `restore` are about `lesson_id`; `alias` says that
            `lesson_id` means the same as `other`, `apart` that it does not. `forget` takes the text of `lesson_id` and
            its history out of the partition (LES-14); what came of it stays, under its id.
        why: In words, for people.
    """

    op: Literal["add", "revise", "retire", "restore", "alias", "apart", "forget"]
    lesson: LessonText | None = None
    lesson_id: Name | None = None
    other: Name | None = None
    why: Note | None = None

    def __post_init__(self) -> None:
        missing = [name for name in LESSON_OPERANDS[self.op] if getattr(self, name) is None]
        if missing:
            raise ValueError(f"expected `{'` and `'.join(missing)}` where `op` is {self.op!r}")
        self.stated()  # what makes no lesson makes no event

    def stated(self) -> Lesson | None:
        """The lesson that it says."""
        if self.lesson is None:
            return None
        try:
            return Lesson.from_fields(
                {name: value for name, value in to_builtins(self.lesson).items() if value is not None}
            )
        except InvalidLessonError as error:
            raise ValueError(str(error)) from error


LESSON_OPERANDS = {
    "add": ("lesson",),
    "revise": ("lesson", "lesson_id"),
    "retire": ("lesson_id",),
    "restore": ("lesson_id",),
    "alias": ("lesson_id", "other"),
    "apart": ("lesson_id", "other"),
    "forget": ("lesson_id",),
}
"""Which fields each `op` of a `LessonChange` needs."""


class InjectedLesson(Struct, kw_only=True, frozen=True, gc=False):
    """A lesson as it was handed to an agent.

    Attributes:
        propensity: Probability that it was, under the policy in force: below 1 where lessons in need of validation are
            drawn (LES-3).
        p_good: What was believed of it then: calibration is measured against what comes of it (LES-11).
    """

    lesson_id: Name
    propensity: Share = 1.0
    p_good: Share | None = None


class LessonInjection(Event, kw_only=True, frozen=True, gc=False, tag="injection"):
    """Lessons were put before an agent (LES-7).

    Attributes:
        injection_id: Which outcomes name.
        tool: The tool that was about to be used, where one was.
    """

    injection_id: Identifier
    lessons: Annotated[tuple[InjectedLesson, ...], Meta(min_length=1, max_length=200)]
    tool: Name | None = None


class LessonOutcome(Event, kw_only=True, frozen=True, gc=False, tag="lesson_outcome"):
    """What came of following a lesson, or what was said about it (LES-4).

    Attributes:
        injection_id: Of the injection that it came of, where it is known.
        span: The words that it was told by.
        origin: A `person` typed it about this lesson; it was found by `detection` in a conversation; an application
            `report`s it; or it is `silence`: the condition was met, and the mistake was not made again.
        why: In words, for people.
        sure: Probability that it is so, by which it counts: below 1 where it was heard. A person's word counts whole.
    """

    lesson_id: Name
    outcome: LessonResult
    injection_id: Identifier | None = None
    span: Note | None = None
    origin: LessonOrigin = "report"
    why: Note | None = None
    sure: Share = 1.0


class TriggerRemoval(Event, kw_only=True, frozen=True, gc=False, tag="trigger_removal"):
    """A content is no longer to be found by a word that it was picked by, whoever picks it again (RET-17)."""

    content_hash: Hash
    term: Term


class SessionPhase(Event, kw_only=True, frozen=True, gc=False, tag="session"):
    """The session's lifecycle moved on; or all that its principal said in this partition is unlearned (LRN-17a)."""

    phase: Literal["start", "suspend", "resume", "complete", "abandon", "unlearn", "unlearn_principal"]


Feedback = (
    Explicit | Selection | Retrieval | Inclusion | Reference | Success | Correction
)  # the frequent ones first: they are found first
"""What means something only together with the impression it answers; a correction that states its question does not."""

Report = Review | Accuracy | ModelQuality | Trust
"""What is evidence by itself."""

LessonEvent = LessonOutcome | LessonInjection | LessonChange
"""What is evidence about lessons."""

AnyEvent = Impression | Feedback | Report | LessonEvent | SessionPhase | TriggerRemoval

FEEDBACK = (Explicit, Selection, Retrieval, Inclusion, Reference, Success, Correction)
LESSON_EVENTS = (LessonOutcome, LessonInjection, LessonChange)
"""The types of both unions: asking a tuple is faster than asking a union."""
