"""A small typed producer of feedback events (FBK-2). What was shown is emitted by the search service itself."""

from __future__ import annotations

import copy
import logging
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, Self

from msgspec import structs

from weft.domain.documents import Domain
from weft.domain.errors import InvalidEventError, WeftError
from weft.domain.events import (
    Accuracy,
    AnyEvent,
    Attribution,
    Correction,
    Explicit,
    Impression,
    Inclusion,
    ModelQuality,
    Reference,
    Retrieval,
    Review,
    Selection,
    SessionPhase,
    Success,
    TriggerRemoval,
    Trust,
)
from weft.domain.ids import ContentHash
from weft.domain.ranking import ANY, Answer, AnswerToken, Query, principal_of, session_of
from weft.domain.signatures import SigningKey, is_same, proof_in
from weft.feedback.events.authenticity import UNAUTHORISED, signed, token_of
from weft.feedback.events.codec import encode
from weft.feedback.events.lesson_events import LessonEvents, one_to_a_partition
from weft.feedback.events.trigger_terms import BEYOND_RANK, trigger_terms
from weft.feedback.settings import MS, FeedbackSettings, TriggerSettings
from weft.runtime.clock import Clock, system_clock
from weft.runtime.kafka.writer import KafkaPublisher
from weft.runtime.settings import KafkaSettings
from weft.runtime.traces import event_spans

if TYPE_CHECKING:
    from weft.feedback.events.attributor import Attributor
from weft.domain.event_fields import MOST_SHOWN
from weft.domain.events import ShownResult
from weft.domain.ids import question_hash
from weft.domain.ranking import RankedResult

# What a search shows, as the event that says so (FBK-1).


def impression_of(answer: Answer, *, question_characters: int = 0, **stamp: Any) -> Impression:
    """The impression of an answer: what was shown, at which rank, with which signals."""
    query = answer.query
    return Impression(
        **stamp,
        domain=query.domain or Domain.GENERAL,
        model=query.model,
        agent=query.agent,
        query_id=query.query_id,
        query_hash=question_hash(query.text) if query.text.strip() else None,
        question=query.text.strip()[:question_characters] or None,
        intent=query.intent,
        results=[_shown(result) for result in answer.results[:MOST_SHOWN]],
    )


def _shown(result: RankedResult) -> ShownResult:
    return ShownResult(
        content_hash=result.content_hash,
        rank=result.rank,
        domain=result.domain,
        score=_share(result.relevance),
        signals={signal.value: _share(value) for signal, value in result.signals.items()},
        propensity=_share(result.propensity),
        examination=_share(result.examination),
        asked=_share(result.asked),
        made=result.made,
        match=result.match,
        precedent=None if result.precedent is None else _share(result.precedent),
    )


def _share(value: float) -> float:
    # Rounding may carry a sum of shares past its ends by a few ulps.
    return min(1.0, max(0.0, value))


_log = logging.getLogger(__name__)


class Publisher(Protocol):
    """Carries keyed records to one topic, in the order they were sent per key."""

    @property
    def waiting(self) -> int:
        """Records that `send` took, neither acknowledged nor lost yet."""

    @property
    def lost(self) -> int:
        """Records that `send` took, and that no broker will have."""

    def send(self, key: bytes, value: bytes) -> None:
        """Hand a record over; BrokerUnavailableError when it cannot be taken in a bounded time."""

    def flush(self) -> None:
        """Wait until all are acknowledged; BrokerUnavailableError or ConfigurationError when one was not."""

    def close(self) -> int:
        """Flush, and release the connection; never raises. How many that `send` took were not acknowledged."""


class FeedbackProducer(LessonEvents):
    """Sends events of a service's users, a method per type. Keys are session ids, so that a session's events stay in
    order.

    Feedback about an answer takes its `Answer.token`, from wherever that went, or its `Query`: both say which session
    and which query it is about, and the updater joins the two. What is reported outright belongs to a session alone.
    With the updaters' key (`feedback.signing_key`) impressions are signed, and all else has the token of whomever it
    names, but for what a token speaks of, which counts if the token is signed; without it, see `bearing`. Each method
    returns the event's id; each raises `BrokerUnavailableError` where it cannot be sent, `ConfigurationError` where the
    broker refuses this client, and `InvalidEventError` where it is none, or a text is no token.
    """

    def __init__(
        self,
        publisher: Publisher,
        *,
        clock: Clock = system_clock,
        new_id: Callable[[], str] = lambda: uuid.uuid4().hex,
        triggers: TriggerSettings | None = None,
        question_characters: int = 0,
        key: SigningKey | None = None,
    ) -> None:
        """Send to a publisher.

        Args:
            key: The updaters', of a service that knows its users: it speaks for whomever it names (FBK-13).
            triggers: Which words of a query go with a selection from far down; None sends none (RET-17).
            question_characters: Of a question's text that go with what was shown (LRN-19); 0 sends none.
        """
        self._publisher = publisher
        self._triggers = triggers
        self._question_characters = question_characters
        self._last_ms = 0
        self._key = key
        self._token: str | None = None
        self._clock = clock
        self._new_id = new_id
        self._unsent = 0

    @classmethod
    def connect(cls, kafka: KafkaSettings, feedback: FeedbackSettings) -> Self:
        """A producer for the configured broker and topic, at once: a service may start before its broker.

        While no broker answers, events wait, 32 MiB of them at most, and are sent in their order once one
        does. `waiting` counts them; `flush` raises and `close` counts where they are not acknowledged.
        """
        return cls._opened(KafkaPublisher(kafka, feedback.topic, patient=True), feedback)

    @classmethod
    def connect_now(cls, kafka: KafkaSettings, feedback: FeedbackSettings) -> Self:
        """The same for who has nothing to do without a broker, such as a job that says one thing and ends.

        Raises:
            BrokerUnavailableError: The broker does not answer, or holds no such topic.
            ConfigurationError: The broker refuses this client.
        """
        return cls._opened(KafkaPublisher(kafka, feedback.topic), feedback)

    @classmethod
    def _opened(cls, publisher: Publisher, rules: FeedbackSettings) -> Self:
        return cls(publisher, triggers=rules.triggers, question_characters=rules.question_characters, key=rules.key)

    @property
    def waiting(self) -> int:
        """Events that are neither acknowledged nor lost yet."""
        return self._publisher.waiting

    @property
    def lost(self) -> int:
        """Events that are not in the topic, and will not be: what `emit` could not hand over, and what was given up."""
        return self._unsent + self._publisher.lost

    def bearing(self, token: str) -> Self:
        """The same producer, for what its user proves by a token that came with an answer (FBK-13).

        Args:
            token: `Answer.token` for feedback on that answer by its query, `Answer.session_token` for its session's
                phases and for reports in it. Where no key is set, neither proves anything, and nothing needs to.
        """
        other = copy.copy(self)
        other._token = proof_in(token) or None
        return other

    def impression(self, answer: Answer) -> str:
        """Say what was shown."""
        stamp = self._stamp(session_of(answer.query), principal_of(answer.query))
        return self._send(impression_of(answer, question_characters=self._question_characters, **stamp))

    def explicit(
        self,
        query: Query | str,
        signal: float,
        *,
        content_hash: str | None = None,
        attribution: Attribution | None = None,
        asked: bool = False,
        principal: str | None = None,
    ) -> str:
        """A verdict in [−1, 1], on one result or on the answer as a whole, and what the answer rests on (FBK-9).

        Args:
            asked: Whether it answers the request to judge this result that the answer carries (RET-15).
        """
        facts = self._answering(query, principal)
        return self._send(
            Explicit(**facts, signal=signal, content_hash=content_hash, attribution=attribution, asked=asked)
        )

    def selection(
        self, query: Query | str, content_hash: str, rank: int | None = None, *, principal: str | None = None
    ) -> str:
        """A result was opened or chosen; from far down it takes words of the query along.

        Args:
            rank: Where it stood; may be left out, since the updater knows, which then finds the words, too.
        """
        facts, rules = self._answering(query, principal), self._triggers
        terms: tuple[str, ...] | None = None
        if rules is None and rank is None:
            terms = ()
        elif isinstance(query, Query) and rules is not None and isinstance(rank, int) and rank > BEYOND_RANK:
            terms = trigger_terms(query.text, rules)
        return self._send(Selection(**facts, content_hash=content_hash, rank=rank, terms=terms))

    def retrieval(self, query: Query | str, content_hashes: Iterable[str], *, principal: str | None = None) -> str:
        """Results were retrieved, and left out of the context."""
        return self._send(Retrieval(**self._answering(query, principal), content_hashes=tuple(content_hashes)))

    def inclusion(self, query: Query | str, content_hashes: Iterable[str], *, principal: str | None = None) -> str:
        """Results were put into the context."""
        return self._send(Inclusion(**self._answering(query, principal), content_hashes=tuple(content_hashes)))

    def reference(
        self,
        query: Query | str,
        *,
        content_hashes: Iterable[str] | None = None,
        match: float = 1.0,
        response: str | None = None,
        attribution: Attribution | None = None,
        principal: str | None = None,
    ) -> str:
        """The answer used results: those named, or those that its text or its attribution speaks for."""
        named = None if content_hashes is None else tuple(content_hashes)
        facts = self._answering(query, principal)
        return self._send(
            Reference(**facts, content_hashes=named, match=match, response=response, attribution=attribution)
        )

    def success(
        self,
        query: Query | str,
        *,
        response: str | None = None,
        attribution: Attribution | None = None,
        principal: str | None = None,
    ) -> str:
        """Nobody had to ask again."""
        return self._send(Success(**self._answering(query, principal), response=response, attribution=attribution))

    def served(
        self,
        answer: Answer,
        response: str,
        attributor: Attributor,
        *,
        attention: Mapping[ContentHash, float] | None = None,
        principal: str | None = None,
    ) -> str:
        """A success of a response, shared by what it rests on among the answer's results (FBK-9).

        Args:
            answer: What the response was made from.
            response: Its text, which stays here.
            attributor: Compares the two.
            attention: Weights in [0, 1] by the model that wrote the response.
            principal: Who says so; the query's principal where it is left out.
        """
        attribution = attributor.of_answer(answer, response, attention)
        speaker = self.bearing(answer.token) if principal is None else self
        return speaker.success(answer.query, attribution=attribution, principal=principal)

    def correction(
        self,
        query: Query | str,
        *,
        right: bool,
        content_hash: str | None = None,
        uri: str | None = None,
        principal: str | None = None,
    ) -> str:
        """A content is right, or wrong, for what a query asks, shown or not (LRN-23).

        Args:
            content_hash: The content; or else `uri`.
            uri: Of a document, perhaps with "#anchor" of a heading or "#L12" for a line.
        """
        if isinstance(query, str):
            facts = self._answering(query, principal)
            return self._send(Correction(**facts, content_hash=content_hash, uri=uri, right=right))
        stamp = self._stamp(session_of(query), principal_of(query) if principal is None else principal)
        return self._send(Correction(**stamp, question=query.text, content_hash=content_hash, uri=uri, right=right))

    def review(
        self, session_id: str, domain: Domain | str, *, confidence: float, good: bool, principal: str, agent: str = ANY
    ) -> str:
        """A decision made with that confidence in [0, 1] turned out good or bad."""
        stamp = self._stamp(session_id, principal)
        return self._send(Review(**stamp, domain=_domain(domain), agent=agent, confidence=confidence, good=good))

    def accuracy(
        self,
        session_id: str,
        domain: Domain | str,
        *,
        age_hours: float,
        accurate: bool,
        principal: str,
        content_hash: str | None = None,
    ) -> str:
        """Something of that age was still accurate, or not."""
        stamp = self._stamp(session_id, principal)
        return self._send(
            Accuracy(**stamp, domain=_domain(domain), age_hours=age_hours, accurate=accurate, content_hash=content_hash)
        )

    def model_quality(
        self, session_id: str, model: str, *, turn: int, quality: float, principal: str, agent: str = ANY
    ) -> str:
        """How good a model was, in [0, 1], at a turn from 1 on."""
        stamp = self._stamp(session_id, principal)
        return self._send(ModelQuality(**stamp, model=model, agent=agent, turn=turn, quality=quality))

    def trust(self, session_id: str, source: str, *, verified: bool, principal: str, model: str = ANY) -> str:
        """A source of that type held when it was verified, or did not."""
        return self._send(Trust(**self._stamp(session_id, principal), model=model, source=source, verified=verified))

    def trigger_removal(self, content_hash: str, term: str, *, principal: str) -> str:
        """A content is no longer to be found by a word that it was picked by (RET-17)."""
        stamp = self._stamp(f"trigger-{content_hash}", principal)
        return self._send(TriggerRemoval(**stamp, content_hash=content_hash, term=term))

    def session(self, session_id: str, phase: str, *, principal: str) -> str:
        """The session starts, suspends, resumes, completes, is abandoned, or is to be unlearned."""
        return self._send(SessionPhase(**self._stamp(session_id, principal), phase=phase))  # type: ignore[arg-type]

    def unlearn(self, principal: str, *, partitions: int) -> list[str]:
        """Take out again what a principal said; the ids of the events, one to a partition (LRN-17a).

        Args:
            partitions: How many the topic has.
        """
        sessions = one_to_a_partition(partitions)
        return [self.session(session_id, "unlearn_principal", principal=principal) for session_id in sessions]

    def emit(self, answer: Answer) -> None:
        """Say what was shown, and never let a search fail over it: what cannot be sent is counted in `lost`."""
        try:
            self.impression(answer)
        except WeftError as error:
            self._unsent += 1
            _log.warning("impression of query %s lost: %s", answer.query.query_id, error)

    def flush(self) -> None:
        """Wait until everything sent is acknowledged.

        Raises:
            BrokerUnavailableError: An event was not.
            ConfigurationError: An event was not, since the broker refuses this client.
        """
        self._publisher.flush()

    def close(self) -> int:
        """Flush and release the connection; never raises. What was not acknowledged is lost, and logged.

        Returns:
            How many events were lost over all, as `lost` counts them.
        """
        self._publisher.close()
        return self.lost

    def _answering(self, query: Query | str, principal: str | None) -> dict[str, Any]:
        about = self._read(query) if isinstance(query, str) else AnswerToken.of(query)
        stamp = self._stamp(about.session_id, about.principal if principal is None else principal)
        proof = {"token": about.token} if about.token and stamp["principal"] == about.principal else {}
        return {**stamp, **proof, "query_id": about.query_id, "model": about.model, "agent": about.agent}

    def _read(self, token: str) -> AnswerToken:
        """What a token speaks of. It comes from outside: who holds the key must sign for none that it did not give."""
        about = AnswerToken.read(token)
        if self._key is not None and not is_same(self._key.query_token(about.query_id, about.principal), about.token):
            raise InvalidEventError(
                UNAUTHORISED,
                f"expected a token signed with `feedback.signing_key`, found {'another' if about.token else 'a plain'} "
                f"one for {about.principal!r}: give the services that answer the same key, and pass on `Answer.token` "
                "unchanged",
            )
        return about

    def _stamp(self, session_id: str, principal: str) -> dict[str, Any]:
        # No two events of one producer at one time: the last word on a content is told by its time.
        self._last_ms = now = max(round(self._clock() * MS), self._last_ms + 1)
        facts = {"event_id": self._new_id(), "ts": now, "session_id": session_id, "principal": principal}
        return facts if self._token is None else {**facts, "token": self._token}

    def _send(self, event: AnyEvent) -> str:
        began, value = self._clock(), self._encoded(event)
        self._publisher.send(event.session_id.encode(), value)
        event_spans("weft.send", [event.event_id], began)
        return event.event_id

    def _encoded(self, event: AnyEvent) -> bytes:
        if self._key is None:
            return encode(event)
        if isinstance(event, Impression):
            return signed(encode(event), self._key)
        return encode(event if event.token else structs.replace(event, token=token_of(event, self._key)))


def _domain(name: str) -> Domain:
    try:
        return Domain(name)
    except ValueError:
        expected = f"expected a domain, one of {', '.join(Domain)}"
        raise InvalidEventError("invalid", f"{expected}, found {name!r} - at `$.domain`") from None
