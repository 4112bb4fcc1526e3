"""Feedback events as they travel on the topic (FBK-1): one JSON object each, told apart by `type`."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from pipelines.domain.documents import Domain
from pipelines.domain.ranking import ANY
from pipelines.domain.sizing import MadeBy

SCHEMA_VERSION = 1
"""The newest event schema; older ones keep working."""

Identifier = Annotated[str, Meta(min_length=1, max_length=128)]
Name = Annotated[str, Meta(min_length=1, max_length=64)]
Hash = Annotated[str, Meta(pattern="^[0-9a-f]{64}$", max_length=64)]  # `$` alone lets a line end through
Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Satisfaction = Annotated[float, Meta(ge=-1.0, le=1.0)]
Rank = Annotated[int, Meta(ge=1, le=10_000)]


class Event(Struct, kw_only=True, frozen=True, tag_field="type", rename=None):
    """What every event carries.

    Attributes:
        ts: When it happened, milliseconds since the epoch, by the producer's clock.
        principal: Who stands behind the session, user or service: caps count per principal.
    """

    schema: Annotated[int, Meta(ge=1)] = SCHEMA_VERSION
    event_id: Identifier
    ts: int
    session_id: Identifier
    principal: Identifier
    domain: Domain = Domain.GENERAL
    model: Name = ANY
    agent: Name = ANY
    tenant: Name | None = None


class ShownResult(Struct, kw_only=True, frozen=True):
    """One result as it was shown.

    Attributes:
        score: Its relevance in [0, 1], which means the same under every fusion mode: calibration is learned on it.
        signals: Value in [0, 1] of every signal by name.
        propensity: Probability of showing it at this rank under the policy in force; 1 without exploration.
        included: Whether it was handed to the user or into the context.
        examination: Probability that its rank is looked at, by the beliefs it was ranked with: implicit feedback is
            weighed by it (FBK-10).
        made: Its size and the learned sizes behind it, so that feedback on it is evidence about them (LRN-9).
    """

    content_hash: Hash
    rank: Rank
    domain: Domain
    score: Share
    signals: dict[str, Share]
    included: bool = True
    propensity: Share = 1.0
    examination: Share = 1.0
    made: MadeBy | None = None


class Attribution(Struct, kw_only=True, frozen=True):
    """How much of a response rests on each result it was given, by whoever held both texts (FBK-9).

    Attributes:
        method: What it was made from; the updater relies on it as far as its own settings say.
        shares: By content hash; of results left out, 0.
    """

    method: Literal["counterfactual", "attention", "semantic"]
    shares: Annotated[dict[Hash, Share], Meta(max_length=200)]


class Impression(Event, kw_only=True, frozen=True, tag="impression"):
    """What was shown for one query; emitted by the search service itself."""

    query_id: Identifier
    query_hash: Hash
    intent: Name = ANY
    results: Annotated[list[ShownResult], Meta(max_length=200)]


class Explicit(Event, kw_only=True, frozen=True, tag="explicit"):
    """A verdict: thumbs up (1) to thumbs down (−1), on one result, or on the answer as a whole.

    Attributes:
        attribution: Of a verdict on the whole, how it is shared among results; without one, equally.
    """

    query_id: Identifier
    signal: Satisfaction
    content_hash: Hash | None = None
    attribution: Attribution | None = None


class Selection(Event, kw_only=True, frozen=True, tag="selection"):
    """A result was opened or chosen."""

    query_id: Identifier
    content_hash: Hash
    rank: Rank


class SessionPhase(Event, kw_only=True, frozen=True, tag="session"):
    """The session's lifecycle moved on."""

    phase: Literal["start", "suspend", "resume", "complete", "abandon"]


AnyEvent = Impression | Explicit | Selection | SessionPhase
