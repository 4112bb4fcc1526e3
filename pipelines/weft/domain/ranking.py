"""Queries, signals and ranked results with their whole derivation (ARC-7)."""

from __future__ import annotations

import math
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

import msgspec

from weft.domain.chunks import Context, MadeBy
from weft.domain.documents import Domain
from weft.domain.ids import ContentHash, GenerationId, VersionName
from weft.domain.lesson_match import ChosenLesson
from weft.domain.links import Authority, RelatedDocument
from weft.domain.matching import EvidenceGap, MatchFeatures
from weft.domain.understanding import HandOff, SessionMemory, Understanding

MOST_RESULTS = 1000
"""Results that one query may ask for."""

QUERY_BYTES, QUERY_TERMS = 4_096, 256
"""UTF-8 bytes and terms of a query that are read (RET-21); of 256 terms in three fields Lucene compares no 1,024."""

ANY = "*"
"""The name of an unspecified model, agent or intent."""

ANONYMOUS = "anonymous"
"""The principal of who gives no name."""


class Channel(StrEnum):
    """One way to produce ranked candidates."""

    ANSWERED = "answered"  # what was called right when this or a near question was asked
    DENSE = "dense"
    DENSE_2 = "dense_2"  # the first further encoder, in the order of `embedding.further`
    DENSE_3 = "dense_3"
    LEXICAL = "lexical"
    SPARSE = "sparse"  # by learned weights of terms
    GRAPH = "graph"
    DEGREE = "degree"
    TRIGGERS = "triggers"


RANKING_ONLY = frozenset({Channel.DEGREE})
"""Channels that find nothing: they rank what others found."""


class Signal(StrEnum):
    """A number in [0, 1] about a candidate that may speak for it; each has a learned weight."""

    VECTOR = "vector"
    VECTOR_2 = "vector_2"
    VECTOR_3 = "vector_3"
    LEXICAL = "lexical"
    SPARSE = "sparse"
    GRAPH = "graph"
    DEGREE = "degree"
    TRIGGER = "trigger"
    CROSS_VALIDATION = "cross_validation"
    FRESHNESS = "freshness"
    TRUST = "trust"
    AUTHORITY = "authority"
    STRUCTURE = "structure"
    PROPAGATED = "propagated"
    NOVELTY = "novelty"
    TIER = "tier"
    VALIDATION = "validation"
    CONGRUENCE = "congruence"
    SESSION = "session"
    LATE_INTERACTION = "late_interaction"
    CROSS_ENCODER = "cross_encoder"
    PSEUDO_RELEVANCE = "pseudo_relevance"
    ISOLATION = "isolation"
    MOMENTUM = "momentum"


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose beliefs are read or fed: the leaf of the hierarchy global → domain → model → agent (LRN-5)."""

    domain: Domain
    model: str = ANY
    agent: str = ANY
    intent: str = ANY  # what is asked for; it modifies what is read, and is a column of its own in what is fed


class Repeats(StrEnum):
    """What becomes of results that a session was given before (RET-19)."""

    KEEP = "keep"
    LOWER = "lower"
    SUPPRESS = "suppress"


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One question. Its fields are checked when it is made.

    Attributes:
        query_id: Under which what was shown and what became of it are joined; a new one unless it is given.
        k: Results, from 1 to 1,000.
        domain: Whose weights rank the answer; None takes the weights of each candidate's own domain.
        explore: Draw the weights from their posterior (Thompson) instead of taking the mean; seeded by `query_id`.
        filters: Metadata that a document must have, value by name (RET-4).
        adaptive: The router decides over channels and over the number of results, which is then at most `k` (RET-2).
        across_domains: An agent that has a home domain asks for all of them (RET-5).
        memory: What the session remembers of its earlier queries; an answer holds what to remember after it.
        repeats: What becomes of results that the memory holds as given already (RET-19).
        context: Results shall come with what surrounds them (RET-16).
        turn: Of its conversation with the model, from 1; the answer then says when to hand over to another (LRN-8).

    Raises:
        ValueError: A field is of another type or out of its range; the message names it.

    Examples:
        >>> Query(text="how is a lock released", k="5")
        Traceback (most recent call last):
        ValueError: Query.k: expected a number from 1 to 1000, found '5'
    """

    text: str
    query_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    k: int = 10
    domain: Domain | None = None
    model: str = ANY
    agent: str = ANY
    intent: str = ANY
    session_id: str | None = None
    principal: str = ""
    explore: bool = False
    filters: Mapping[str, str] = field(default_factory=dict)
    adaptive: bool = False
    across_domains: bool = False
    memory: SessionMemory | None = None
    repeats: Repeats = Repeats.KEEP
    context: bool = False
    turn: int | None = None

    def __post_init__(self) -> None:
        for name in ("text", "query_id", "model", "agent", "intent", "principal"):
            self._require(name, isinstance(getattr(self, name), str), "a text")
        self._require("query_id", bool(self.query_id), "a text with characters in it")
        self._require("session_id", self.session_id is None or isinstance(self.session_id, str), "a text or None")
        whole = isinstance(self.k, int) and not isinstance(self.k, bool)
        self._require("k", whole and 1 <= self.k <= MOST_RESULTS, f"a number from 1 to {MOST_RESULTS}")
        counted = isinstance(self.turn, int) and not isinstance(self.turn, bool)
        self._require("turn", self.turn is None or (counted and self.turn >= 1), "a number from 1, or None")
        domains = [domain.value for domain in Domain]
        self._require("domain", self.domain is None or self.domain in domains, f"None or one of {', '.join(domains)}")
        if self.domain is not None:
            object.__setattr__(self, "domain", Domain(self.domain))
        self._require("repeats", self.repeats in list(Repeats), f"one of {', '.join(Repeats)}")
        object.__setattr__(self, "repeats", Repeats(self.repeats))
        texts = isinstance(self.filters, Mapping) and all(
            isinstance(text, str) for pair in self.filters.items() for text in pair
        )
        self._require("filters", texts, "texts by name")
        for name in ("explore", "adaptive", "across_domains", "context"):
            self._require(name, isinstance(getattr(self, name), bool), "True or False")

    def _require(self, name: str, holds: bool, expected: str) -> None:
        if not holds:
            raise ValueError(f"Query.{name}: expected {expected}, found {getattr(self, name)!r}")


class ChannelHit(msgspec.Struct, frozen=True, gc=False):
    """Where one channel put a candidate: rank from 1, and the channel's own score (higher is better)."""

    rank: int
    score: float


class WeightBelief(msgspec.Struct, frozen=True, gc=False):
    """What is believed about one signal's weight, or about an effect of what came of a content before."""

    # expected share of the score, in [0, 1]; the shares of all active signals sum to 1. Of an effect, log-odds
    mean: float
    low: float  # 90 % credible interval of it
    high: float
    n_effective: float  # observations behind it, in pseudo-counts beyond the prior
    # what informs it most: a level of the hierarchy, "prior", "global", "domain", "model", "agent" or "session";
    # "fit", the regression of the night before; below the ranking "content" or "question" (LRN-18)
    level: str


class Contribution(msgspec.Struct, frozen=True, gc=False):
    """One addend of a score.

    Attributes:
        name: A signal, a channel or a boost.
        value: The signal's value, or the rank-based share of a channel.
        weight: What it was multiplied with.
        amount: What it added: the score is the sum of all amounts.
        belief: For a learned weight, the belief it came from.
    """

    name: str
    value: float
    weight: float
    amount: float
    belief: WeightBelief | None = None


class NewcomerVerdicts(msgspec.Struct, frozen=True):
    """What those called a result who are new, and too many on one day to count one by one (FBK-13)."""

    right: int  # How many names, as in `PastVerdicts`
    wrong: int
    near_right: int
    near_wrong: int
    counts_as: int  # as how many people they count at most, all together; 0 where they hardly count


class PastVerdicts(msgspec.Struct, frozen=True):
    """What people called a result before (LRN-18)."""

    right: int = 0  # How many, when this very question was asked
    wrong: int = 0
    near_right: int = 0  # How many, when a near question was asked (LRN-19)
    near_wrong: int = 0
    nearest: str = ""  # the nearest of these; "" where there is none, or its text is private
    own: bool | None = None  # the asker's own word; None without one
    rank_before: int | None = None  # where it would stand without all that; None where no channel finds it
    new: NewcomerVerdicts | None = None  # A crowd of new names beside those counted so far; None without one
    edited: int = 0  # how many of all of them said so before its text was edited (ARC-4)


class ScoredResult(NamedTuple):
    """One result by its place alone: what a `RankedResult` says of it without why."""

    content_hash: ContentHash
    uris: tuple[str, ...]  # every document the content stands in, the best one first
    score: float


ScoredResults = tuple[ScoredResult, ...]
"""The results for one query, best first."""


class RankedResult(msgspec.Struct, frozen=True, kw_only=True):
    """One result and why it stands where it does.

    Attributes:
        uris: Every document the content stands in (ARC-4), the best one first.
        title: What the best one of them is called; None where nothing says so.
        signals: Value of every signal in [0, 1], whether it was weighted or not.
        relevance: Σ expected weight · signal in [0, 1]: the same measure under every fusion mode.
        probability: P(good) of its match by the live calibration; None where that was not learned, or where matches do
            not tell good from bad.
        above_next: Probability that it belongs above the next result, by the posterior of the weights; None for the
            last one, and where no learned weight ranks.
        propensity: Probability of showing it at this rank: 1 unless the query explores.
        examination: Probability that its rank is looked at, by the live beliefs (FBK-10).
        alike: Documents of near-duplicates that are left out for it, aliases (CON-2) and others (RET-12).
        authority: How much others rely on its document; None where the generation knows of no citations (CIT-3).
        relations: What its document, or this part of it, has to do with others; what supersedes it first.
        made: Its size and the learned sizes behind it; None where no learned size decided over it.
        asked: Probability with which a verdict on it is asked for, where one is; else 0.
        match: How well it matches the query's own words; None where no channel of the kind answered.
        precedent: How good it was by what came of it before, 1 / (1 + e^−u) of its effects; None where nothing had.
        past: What people called it before, where anybody did.
        doubtful: Whether it matches no better than results of queries that have no answer and people did not call it
            right, or confidence in it is below what reviews of its domain ask for (LRN-7).
        context: It and what surrounds it, where the query asked for that.
    """

    rank: int
    content_hash: ContentHash
    chunk_id: str
    uris: tuple[str, ...]
    text: str
    kind: str
    symbol: str | None
    heading_path: tuple[str, ...]
    start_line: int
    end_line: int
    domain: Domain
    channels: Mapping[Channel, ChannelHit]
    signals: Mapping[Signal, float]
    contributions: tuple[Contribution, ...]
    title: str | None = None
    relevance: float = 0.0
    probability: float | None = None
    above_next: float | None = None
    propensity: float = 1.0
    examination: float = 1.0
    asked: float = 0.0
    made: MadeBy | None = None
    match: MatchFeatures | None = None
    precedent: float | None = None
    past: PastVerdicts | None = None
    doubtful: bool = False
    alike: tuple[str, ...] = ()
    authority: Authority | None = None
    relations: tuple[RelatedDocument, ...] = ()
    context: Context | None = None

    @property
    def full_text(self) -> str:
        """What it says, with the headings it stands under."""
        return "\n".join([*self.heading_path, self.text])

    @property
    def confidence(self) -> float:
        """That it is good, in [0, 1]: its probability, or its relevance where that is not known."""
        return self.relevance if self.probability is None else self.probability

    @property
    def score(self) -> float:
        """Sum of the contributions; there is no other definition of the score (RET-18).

        Of learned weights and signals it is at most 1; what further chunks of the document add comes on top (RET-11).
        """
        return math.fsum(contribution.amount for contribution in self.contributions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a query was answered with, and by what.

    Attributes:
        truncated: The query text was cut to the limits of RET-21.
        heads: The best contents of each channel with its scores, best first: what the query log keeps of it.
        failed_channels: Channels and rerankers left out, with the reason.
        timings_ms: Milliseconds by stage.
        understanding: How the query was read, and what that changed.
        memory: What its session remembers after it; None where the query brought no memory along.
        gap: Set where no result is likely enough to be an answer.
        answered: P(answered) as the generation tells it of its own questions, where answers and gaps are as likely;
            None where it had too few.
        uncalibrated: Why results carry no probability; empty where they do.
        hand_off: When to hand over to another model; None where the query names no turn, or nobody judged its model.
        token: All that feedback on this answer needs, as text for a URL or a form: methods of a producer take it in
            place of the query. Signed where a key is set (FBK-13).
        session_token: Lets whoever asked lead its session, and report in it; empty where no key is set.
        lessons: What people and agents learned that fits the question, best first; no result stands elsewhere for it.
    """

    query: Query
    results: tuple[RankedResult, ...]
    generation: GenerationId
    learned: VersionName
    fusion: str
    truncated: bool = False
    heads: Mapping[Channel, tuple[tuple[ContentHash, float], ...]] = field(default_factory=dict)
    failed_channels: Mapping[str, str] = field(default_factory=dict)
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    understanding: Understanding | None = None
    memory: SessionMemory | None = None
    gap: EvidenceGap | None = None
    answered: float | None = None
    uncalibrated: str = ""
    hand_off: HandOff | None = None
    token: str = ""
    session_token: str = ""
    lessons: tuple[ChosenLesson, ...] = ()
