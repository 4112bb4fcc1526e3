"""Events as programs state them over HTTP: what everybody would fill in alike is filled in here (OPS-5)."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from weft.domain.errors import InvalidEventError
from weft.domain.events import AnyEvent
from weft.domain.ranking import ANONYMOUS, AnswerToken
from weft.feedback.events.codec import EVENT_TYPES, decode_all, encode
from weft.feedback.events.producer import Publisher
from weft.feedback.settings import MS
from weft.runtime.clock import Clock, system_clock
from weft.runtime.traces import event_spans


class StatedEvents:
    """Takes events for the topic; threads may share it.

    An event may leave out its id and its time. With `answer`, the token of an answer, it may leave out the query, the
    session, the principal and its proof as well: the token says them.
    """

    def __init__(self, publisher: Publisher, *, max_bytes: int, clock: Clock = system_clock) -> None:
        self._publisher = publisher
        self._max_bytes = max_bytes
        self._clock = clock

    @property
    def waiting(self) -> int:
        """Events that no broker has acknowledged yet."""
        return self._publisher.waiting

    @property
    def lost(self) -> int:
        """Events that no broker will have."""
        return self._publisher.lost

    def take(self, stated: Sequence[Mapping[str, Any]]) -> list[AnyEvent]:
        """Hand events over, all or none of them.

        Raises:
            InvalidEventError: One is none; the message names its place.
            BrokerUnavailableError: They cannot be taken now.
        """
        began = self._clock()
        values = [json.dumps(self._whole(each)).encode() for each in stated]
        events: list[AnyEvent] = []
        for place, event in enumerate(decode_all(values, max_bytes=self._max_bytes)):
            if isinstance(event, InvalidEventError):
                raise InvalidEventError(event.reason, f"event {place}: {event}")
            events.append(event)
        for event in events:
            self._publisher.send(event.session_id.encode(), encode(event))
        event_spans("weft.send", (event.event_id for event in events), began)
        return events

    def close(self) -> int:
        """Send what waits; how many are lost over all."""
        return self._publisher.close()

    def _whole(self, stated: Mapping[str, Any]) -> dict[str, Any]:
        filled = {"event_id": uuid.uuid4().hex, "ts": round(self._clock() * MS)}
        rest = dict(stated)
        if (answer := rest.pop("answer", None)) is not None:
            if not isinstance(answer, str):
                raise InvalidEventError("invalid_token", f"expected the token of an answer, found {answer!r}")
            about = AnswerToken.read(answer)
            filled |= {"session_id": about.session_id, "model": about.model, "agent": about.agent}
            filled |= {"principal": about.principal, **({"token": about.token} if about.token else {})}
            kind = EVENT_TYPES.get(str(rest.get("type")))
            if kind is not None and "query_id" in kind.__struct_fields__ and "question" not in rest:
                filled |= {"query_id": about.query_id}
            # Whoever speaks for another than the token was given to has a proof of its own, or none.
            if rest.get("principal", about.principal) != about.principal:
                filled.pop("token", None)
        elif "principal" not in rest:
            filled |= {"principal": ANONYMOUS}
        return {**filled, **rest}
