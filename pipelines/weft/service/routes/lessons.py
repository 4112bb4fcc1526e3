"""Lessons: what agents are told, what is believed of it, and saying more (LES-10)."""

from __future__ import annotations

import asyncio
import json
import random
import uuid
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path
from fastapi import Query as Parameter
from pydantic import Field
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from weft.app.lessons.operations import LessonSender, apply_operations, lesson_page, read_operations, say_operations
from weft.app.lessons.pairs import reviewed
from weft.app.lessons.view import lesson_document, listed, live_lessons, prompted, to_review
from weft.client.calls import MOST_LISTED, MOST_REVIEWED, TOTAL, TOTAL_PAIRS
from weft.domain.lesson import LessonStatus
from weft.domain.ranking import ANONYMOUS
from weft.feedback.events.producer import FeedbackProducer
from weft.learning.lessons.beliefs import LessonBeliefs
from weft.lessons.finding import ToolUse
from weft.service.bodies import Name, RequestBody
from weft.service.gate import current
from weft.service.problems import RefusedError
from weft.service.state import WITHOUT_BROKER, Service, service_of
from weft.service.tokens import TokenScope

router = APIRouter(tags=["lessons"])
Shared = Annotated[Service, Depends(service_of)]
LessonName = Annotated[str, Path(pattern=r"^[A-Za-z0-9._-]{1,64}$")]

MOST_OPERATIONS = 200
"""Of one request."""


class PromptRequest(RequestBody):
    """What an agent is about to do."""

    tool: str = Field(default="", max_length=64)
    files: list[Annotated[str, Field(max_length=1024)]] = Field(default_factory=list, max_length=100)
    context: str = Field(default="", max_length=20_000, description="What is done, and why.")
    budget: int | None = Field(default=None, ge=0, le=100_000, description="Tokens at most.")
    record: bool = Field(default=False, description="Tell the topic that they were injected.")
    principal: str = Field(default=ANONYMOUS, min_length=1, max_length=128)
    session_id: Name | None = None


class OperationsRequest(RequestBody):
    """What is said of lessons."""

    operations: list[dict[str, Any]] = Field(
        min_length=1,
        max_length=MOST_OPERATIONS,
        description="Each has a `kind` (add, revise, tag, merge, keep_apart, retire, restore) and what it needs.",
        examples=[[{"kind": "add", "lesson": {"section": "testing", "content": "Run the tests before a commit."}}]],
    )
    principal: str = Field(default=ANONYMOUS, min_length=1, max_length=128)
    session_id: Name | None = None
    dry_run: bool = False


def beliefs_of(service: Service) -> LessonBeliefs:
    """What is believed of lessons now."""
    return live_lessons(service.catalog, service.settings)


def producer_of(service: Service) -> FeedbackProducer:
    """What speaks of lessons; `RefusedError` where no broker is named."""
    if service.producer is None:
        raise RefusedError(
            HTTPStatus.CONFLICT,  # asked again in a moment, it has none either
            f"expected a broker for lessons, found none: {WITHOUT_BROKER}",
        )
    return service.producer


@router.get("/v1/lessons", summary="Every lesson that has a text, the surest first.")
async def lessons(
    service: Shared,
    response: Response,
    status: LessonStatus | None = None,
    section: Annotated[str | None, Parameter(max_length=64)] = None,
    limit: Annotated[int, Parameter(ge=1, le=MOST_LISTED)] = 100,
) -> list[dict[str, Any]]:
    """As `weft lessons list --json` prints them; the header `X-Total-Count` says how many there are."""
    documents, total = await asyncio.to_thread(lambda: listed(beliefs_of(service), status, section, limit))
    response.headers[TOTAL] = str(total)
    return documents


@router.get("/v1/lessons/review", summary="Lessons that a person could decide on, the least sure first.")
async def review(
    service: Shared,
    response: Response,
    limit: Annotated[int, Parameter(ge=1, le=MOST_REVIEWED)] = 20,
    pairs: Annotated[bool, Parameter(description="Then pairs of lessons about the same, too.")] = False,
) -> list[dict[str, Any]]:
    """As `weft lessons review --json` prints them; headers say how many there are."""

    def open_ones() -> list[dict[str, Any]]:
        if pairs:
            all_ = reviewed(beliefs_of(service), service.settings, limit)
            response.headers[TOTAL], response.headers[TOTAL_PAIRS] = str(all_["open"]), str(all_["open_pairs"])
            return [*all_["lessons"], *all_["pairs"]]
        rows = to_review(beliefs_of(service))
        response.headers[TOTAL] = str(len(rows))
        return [lesson_document(*row) for row in rows[:limit]]

    return await asyncio.to_thread(open_ones)


@router.get("/v1/lessons/{lesson_id}", summary="A lesson, what is believed of it and why, and its history.")
async def lesson(lesson_id: LessonName, service: Shared) -> dict[str, Any]:
    """As `weft lessons show --json` prints it."""
    return await asyncio.to_thread(lambda: lesson_page(beliefs_of(service), lesson_id))


@router.post("/v1/lessons/prompt", summary="What an agent is told before it uses a tool.")
async def prompt(body: PromptRequest, service: Shared, request: HttpRequest) -> dict[str, Any]:
    """Within a budget of tokens; an empty text where nothing fits. Recording needs the scope `feedback` as well."""
    if body.record and TokenScope.FEEDBACK not in current(request.state).scopes:
        raise RefusedError(HTTPStatus.FORBIDDEN, "expected a token with scope feedback for `record`, found another")
    return await asyncio.to_thread(prompt_of, service, body)


def prompt_of(service: Service, body: PromptRequest) -> dict[str, Any]:
    """The lessons that fit what an agent is about to do."""
    use = ToolUse(body.tool, tuple(body.files), body.context)
    rng = random.SystemRandom()
    chosen = prompted(beliefs_of(service), service.settings, use, budget=body.budget, rng=rng)
    injection = None
    if body.record and chosen.shown:
        injection = uuid.uuid4().hex
        session = body.session_id or f"injection-{injection}"
        tool, principal = body.tool or None, body.principal
        producer_of(service).lessons_injected(session, injection, chosen.injected(), principal=principal, tool=tool)
    return chosen.to_dict(injection)


@router.post("/v1/lessons", summary="Add, revise, judge, merge or retire lessons.", status_code=HTTPStatus.ACCEPTED)
async def say(body: OperationsRequest, service: Shared) -> dict[str, Any]:
    """What `weft lessons apply` does: what is accepted is said to the topic, what is refused is named by its index."""
    return await asyncio.to_thread(apply_stated, service, body)


def apply_stated(service: Service, body: OperationsRequest) -> dict[str, Any]:
    """What came of operations on lessons."""
    read = read_operations("\n".join(map(json.dumps, body.operations)))
    applied = apply_operations(read.operations, beliefs_of(service), service.settings)
    if applied.accepted and not body.dry_run:
        say_operations(LessonSender(producer_of(service), body.principal, body.session_id), applied.accepted)
    errors = sorted([*read.errors, *applied.errors], key=lambda each: each.index)
    return {
        "accepted": [
            {"kind": each.kind.value, "lesson_id": each.lesson_id or (each.lesson and each.lesson.id)}
            for each in applied.accepted
        ],
        "errors": [{"index": each.index, "problem": each.problem} for each in errors],
        "conflicts": list(applied.conflicts),
        "proposals": list(applied.proposals),
        "sent": bool(applied.accepted) and not body.dry_run,
    }
