"""Queries, signals and ranked results with their whole derivation (ARC-7)."""

from __future__ import annotations

import base64
import json
import math
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, Self

import msgspec

from weft.domain.chunks import Context, MadeBy
from weft.domain.documents import NO_DOMAIN, Domain, DomainField
from weft.domain.errors import InvalidEventError
from weft.domain.ids import ContentHash, GenerationId, VersionName
from weft.domain.lesson_match import ChosenLesson
from weft.domain.links import Authority, RelatedDocument
from weft.domain.matching import EvidenceGap, MatchFeatures
from weft.domain.reasons import PastVerdicts, reason, reasons
from weft.domain.understanding import HandOff, SessionMemory, Understanding

MOST_RESULTS = 1000
"""Results that one query may ask for."""

QUERY_BYTES, QUERY_TERMS = 4_096, 256
"""UTF-8 bytes and terms of a query that are read (RET-21); of 256 terms in three fields Lucene compares no 1,024."""

ANY = "*"
"""The name of an unspecified model, agent or intent."""

ANONYMOUS = "anonymous"
"""The principal of who gives no name."""


_SHOWN = 40  # characters of a text that is no token


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
    NAMES = "names"  # what defines a name that the query holds, and the file of a path


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
    NAMED = "named"


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose beliefs are read or fed: the leaf of the hierarchy global → domain → model → agent (LRN-5)."""

    domain: Domain
    model: str = ANY
    agent: str = ANY
    intent: str = ANY  # what is asked for; it modifies what is read, and is a column of its own in what is fed


class FusionMode(StrEnum):
    """How the channels' scores become one."""

    RRF = "rrf"
    RSF = "rsf"
    LEARNED = "learned"


class ResultUnit(StrEnum):
    """What one result stands for."""

    DOCUMENT = "document"
    CHUNK = "chunk"


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
        domain: Whose weights rank the answer, a `Domain` or its name, such as "code"; None takes the weights of
            each candidate's own domain.
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
    domain: DomainField = NO_DOMAIN
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


def session_of(query: Query) -> str:
    """The session a query's events belong to: its own, or one of this query alone."""
    return query.session_id or query.query_id


def principal_of(query: Query) -> str:
    """Who asked: the query's principal, or the one that all share who name none."""
    return query.principal or ANONYMOUS


class AnswerToken(NamedTuple):
    """What every event about one answer holds; as text, all that whoever reports what became of it needs.

    The text is base64url (RFC 4648, unpadded) of a JSON object in ASCII whose keys are fields of events. It holds
    neither the question nor the results: the impression does, and the updater joins the two.

    Examples:
        >>> AnswerToken.of(Query(text="why", query_id="q-7", session_id="s-41", principal="ada")).text
        'eyJzZXNzaW9uX2lkIjoicy00MSIsInF1ZXJ5X2lkIjoicS03IiwicHJpbmNpcGFsIjoiYWRhIn0'
        >>> AnswerToken.read(_).query_id
        'q-7'
    """

    session_id: str
    query_id: str
    principal: str
    model: str = ANY
    agent: str = ANY
    token: str = ""  # by which the principal proves itself; empty where no key is set (FBK-13)

    @classmethod
    def of(cls, query: Query, proof: str = "") -> Self:
        """What the answer to a query gives out to whoever asked."""
        return cls(session_of(query), query.query_id, principal_of(query), query.model, query.agent, proof)

    @property
    def text(self) -> str:
        """As it travels, in a URL, a form or a header."""
        stated = {name: value for name, value in self._asdict().items() if value != self._field_defaults.get(name)}
        return base64.urlsafe_b64encode(json.dumps(stated, separators=(",", ":")).encode()).rstrip(b"=").decode()

    @classmethod
    def read(cls, text: str) -> Self:
        """The token in a text.

        Raises:
            InvalidEventError: "invalid_token": it is none.
        """
        try:
            padded = text.encode("ascii") + b"=" * (-len(text) % 4)
            stated = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
            held = {name: stated[name] for name in cls._fields if name in stated}
            token = cls(**held)
        except (ValueError, TypeError, RecursionError):
            raise _no_token(text) from None
        if not all(isinstance(each, str) for each in token):
            raise _no_token(text)
        return token


def _no_token(text: str) -> InvalidEventError:
    head = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… of {len(text):,} characters"
    expected = "expected the token of an answer, as `Answer.token` and `weft search --json` hold it"
    return InvalidEventError("invalid_token", f"{expected}, found {head!r}: pass it on whole and unchanged")


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

    def to_dict(self) -> dict[str, Any]:
        """All of it in JSON's own types."""
        facts = {name: getattr(self, name) for name in ("name", "value", "weight", "amount")}
        return facts if self.belief is None else {**facts, "belief": msgspec.to_builtins(self.belief)}


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

        Of learned weights and signals it is at most 1; what further chunks of the document add comes on top (RET-11),
        and what lifts those that stand first for a phrase or a +word (RET-22).
        """
        return math.fsum(contribution.amount for contribution in self.contributions)

    @property
    def why(self) -> str:
        """Why it stands where it does: one sentence."""
        return reason(self)

    def to_dict(self) -> dict[str, Any]:
        """All of it in JSON's own types: where each channel put it, its signals, and every addend of its score."""
        return {
            "rank": self.rank,
            "why": self.why,
            "reasons": list(reasons(self)),
            "past": None if self.past is None else msgspec.to_builtins(self.past),
            "score": self.score,
            "relevance": self.relevance,
            "probability": self.probability,
            "doubtful": self.doubtful,
            "match": None
            if (match := self.match) is None
            else {"meaning": match.dense, "words": match.lexical, "near": match.late_interaction},
            "above_next": self.above_next,
            "propensity": self.propensity,
            "examination": self.examination,
            "asked": self.asked,
            "content_hash": self.content_hash,
            "chunk_id": self.chunk_id,
            "uris": list(self.uris),
            "alike": list(self.alike),
            "authority": None if self.authority is None else msgspec.to_builtins(self.authority),
            "relations": [{**msgspec.to_builtins(each), "says": each.says} for each in self.relations],
            "start_line": self.start_line,
            "end_line": self.end_line,
            "kind": self.kind,
            "title": self.title,
            "symbol": self.symbol,
            "heading_path": list(self.heading_path),
            "domain": self.domain.value,
            "text": self.text,
            "channels": {
                channel.value: {"rank": hit.rank, "score": hit.score} for channel, hit in self.channels.items()
            },
            "signals": {signal.value: value for signal, value in self.signals.items()},
            "context": None if self.context is None else self.context.to_dict(),
            "contributions": [contribution.to_dict() for contribution in self.contributions],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a query was answered with, and by what.

    Attributes:
        truncated: The query text was cut to the limits of RET-21.
        heads: The best contents of each channel with its scores, best first: what the query log keeps of it.
        failed_channels: Channels and rerankers left out, with the reason.
        failed_shards: Shards that were searched elsewhere and did not answer in time, with the reason.
        timings_ms: Milliseconds by stage.
        understanding: How the query was read, and what that changed.
        memory: What its session remembers after it; None where the query brought no memory along.
        gap: Set where no result is likely enough to be an answer.
        uncalibrated: Why results carry no probability; empty where they do.
        hand_off: When to hand over to another model; None where the query names no turn, or nobody judged its model.
        proof: By which whoever asked proves itself, a part of `token`; empty where no key is set (FBK-13).
        session_token: Lets the same one lead its session, and report in it.
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
    failed_shards: Mapping[str, str] = field(default_factory=dict)
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    understanding: Understanding | None = None
    memory: SessionMemory | None = None
    gap: EvidenceGap | None = None
    uncalibrated: str = ""
    hand_off: HandOff | None = None
    proof: str = ""
    session_token: str = ""
    lessons: tuple[ChosenLesson, ...] = ()

    @property
    def token(self) -> str:
        """All that feedback on this answer needs, as text for a URL or a form (FBK-13).

        Methods of a producer take it in place of the query. It is signed where a key is set.
        """
        return AnswerToken.of(self.query, self.proof).text

    def to_dict(self) -> dict[str, Any]:
        """All of it in JSON's own types: what `weft search --json` prints."""
        gap, advice = self.gap, self.hand_off
        return {
            "query": self.query.text,
            "query_id": self.query.query_id,
            "token": self.token,
            **({"session_token": self.session_token} if self.session_token else {}),
            "generation": self.generation,
            "learned": self.learned,
            "fusion": self.fusion,
            "explored": self.query.explore,
            "truncated": self.truncated,
            "failed_channels": dict(self.failed_channels),
            "failed_shards": dict(self.failed_shards),
            "gap": None if gap is None else {**asdict(gap), "missing": list(gap.missing)},
            "hand_off": None if advice is None else {**asdict(advice), "due": advice.due},
            "uncalibrated": self.uncalibrated,
            "timings_ms": dict(self.timings_ms),
            "heads": {
                channel.value: [{"content_hash": content, "score": score} for content, score in head]
                for channel, head in self.heads.items()
            },
            "understanding": None if self.understanding is None else self.understanding.to_dict(),
            "results": [result.to_dict() for result in self.results],
            **({"lessons": [lesson.to_dict() for lesson in self.lessons]} if self.lessons else {}),
        }
