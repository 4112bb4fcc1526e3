"""Feedback: events for the topic (FBK-2)."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends

from weft.app.stated_events import StatedEvents
from weft.feedback.events.codec import EVENT_TYPES
from weft.service.bodies import Accepted
from weft.service.problems import RefusedError
from weft.service.state import WITHOUT_BROKER, Service, service_of

router = APIRouter(tags=["feedback"])
Shared = Annotated[Service, Depends(service_of)]

MOST_EVENTS = 500
"""Of one request."""

_EVENT = {
    "type": "object",
    "required": ["type"],
    "properties": {
        "type": {"enum": sorted(EVENT_TYPES)},
        "answer": {"type": "string", "description": "The `token` of the answer that it is about."},
    },
    "description": "An event (docs/feedback.md). `event_id` and `ts` may be left out; with `answer`, `query_id`, "
    "`session_id`, `principal` and `token` as well.",
}
_EXAMPLES = {
    "verdict": {
        "summary": "A result is right",
        "value": {"type": "explicit", "answer": "the token of the answer", "signal": 1.0, "content_hash": "0" * 64},
    },
    "opened": {
        "summary": "A result was opened",
        "value": {"type": "selection", "answer": "the token of the answer", "content_hash": "0" * 64},
    },
}
_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "anyOf": [
                        _EVENT,
                        {"type": "array", "items": _EVENT, "minItems": 1, "maxItems": MOST_EVENTS},
                    ]
                },
                "examples": _EXAMPLES,
            }
        },
    }
}


def events_of(service: Service) -> StatedEvents:
    """What takes events; `RefusedError` where no broker is named."""
    if service.events is None:
        raise RefusedError(
            HTTPStatus.CONFLICT,  # asked again in a moment, it has none either
            f"expected a broker for feedback, found none: {WITHOUT_BROKER}",
        )
    return service.events


async def taken(service: Service, stated: list[dict[str, Any]]) -> list[str]:
    """Events handed over and counted; their ids."""
    events = await asyncio.to_thread(events_of(service).take, stated)
    for event in events:
        service.metrics.events.labels(event.__struct_config__.tag).inc()
    return [event.event_id for event in events]


@router.post(
    "/v1/feedback", summary="Say what became of an answer.", status_code=HTTPStatus.ACCEPTED, openapi_extra=_BODY
)
async def feedback(body: Annotated[Any, Body()], service: Shared) -> Accepted:
    """Take an event, or a list of them, for the topic: all of them or none. What it moves is seen within seconds."""
    stated = body if isinstance(body, list) else [body]
    if not 1 <= len(stated) <= MOST_EVENTS or not all(isinstance(each, dict) for each in stated):
        received = f"a list of {len(stated)}" if isinstance(body, list) else type(body).__name__
        raise RefusedError(
            HTTPStatus.UNPROCESSABLE_ENTITY,
            f"expected an event, or a list of 1 to {MOST_EVENTS} of them, each an object, found {received}",
        )
    return Accepted(event_ids=await taken(service, stated))
