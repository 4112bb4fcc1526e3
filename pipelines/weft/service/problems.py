"""What went wrong, as `application/problem+json` (RFC 9457): what was expected, and what was found (OPS-5)."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import Response

from weft.domain.errors import (
    BrokerUnavailableError,
    ConfigurationError,
    CorruptionError,
    DiskError,
    InvalidEventError,
    InvalidLessonError,
    NothingPublishedError,
    StaleVersionError,
    StoreError,
    TrackingUnavailableError,
    WeftError,
)

log = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"

STATUSES: Mapping[type[Exception], HTTPStatus] = {
    NothingPublishedError: HTTPStatus.SERVICE_UNAVAILABLE,
    BrokerUnavailableError: HTTPStatus.SERVICE_UNAVAILABLE,
    TrackingUnavailableError: HTTPStatus.SERVICE_UNAVAILABLE,
    CorruptionError: HTTPStatus.SERVICE_UNAVAILABLE,
    DiskError: HTTPStatus.SERVICE_UNAVAILABLE,
    ConfigurationError: HTTPStatus.SERVICE_UNAVAILABLE,
    StaleVersionError: HTTPStatus.CONFLICT,
    StoreError: HTTPStatus.NOT_FOUND,
    InvalidEventError: HTTPStatus.UNPROCESSABLE_ENTITY,
    InvalidLessonError: HTTPStatus.UNPROCESSABLE_ENTITY,
    WeftError: HTTPStatus.SERVICE_UNAVAILABLE,
}
"""The status of each kind of error, the narrower kinds first."""

RETRY_AFTER_S = 1
"""What is busy now may have room again so many seconds later."""


class Mistake(BaseModel):
    """One thing that is wrong with a request."""

    where: str = Field(description="The place in the request, such as `body.k`.")
    expected: str
    received: str


class Problem(BaseModel):
    """What went wrong (RFC 9457)."""

    type: str = "about:blank"
    title: str = Field(description="What kind of problem it is.")
    status: int = Field(ge=400, le=599)
    detail: str = Field(description="What was expected, what was found, and what helps.")
    kind: str | None = Field(default=None, description="The class of the error in Python, where it has one.")
    mistakes: list[Mistake] | None = Field(default=None, description="What is wrong with the request, one by one.")

    model_config = {
        "json_schema_extra": {
            "examples": [
                {
                    "type": "about:blank",
                    "title": "Unprocessable Content",
                    "status": 422,
                    "detail": "body.k: expected a number from 1 to 1000, found 0",
                    "mistakes": [{"where": "body.k", "expected": "a number from 1 to 1000", "found": "0"}],
                }
            ]
        }
    }


class RefusedError(Exception):
    """A request is not served; raised where no other error says it."""

    def __init__(self, status: HTTPStatus, detail: str, **headers: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


def problem(
    status: int,
    detail: str,
    *,
    mistakes: Sequence[Mistake] | None = None,
    headers: Mapping[str, str] | None = None,
    kind: str | None = None,
) -> Response:
    """A response that says what went wrong."""
    try:
        title = HTTPStatus(status).phrase
    except ValueError:
        title = "Error"
    stated: dict[str, Any] = {"type": "about:blank", "title": title, "status": int(status), "detail": detail}
    if kind is not None:
        stated["kind"] = kind
    if mistakes:
        stated["mistakes"] = [each.model_dump() for each in mistakes]
    waits = {"Retry-After": str(RETRY_AFTER_S)} if status in {429, 503} else {}
    body = json.dumps(stated).encode()
    return Response(body, int(status), {**waits, **(headers or {})}, MEDIA_TYPE)


def status_of(error: Exception) -> HTTPStatus:
    """The status that says what kind of error it is."""
    return next(
        (status for kind, status in STATUSES.items() if isinstance(error, kind)), HTTPStatus.INTERNAL_SERVER_ERROR
    )


def handle(application: FastAPI) -> None:
    """Have an application answer every error so."""

    async def refused(_: Request, error: Exception) -> Response:
        assert isinstance(error, RefusedError)
        return problem(error.status, error.detail, headers=error.headers)

    async def by_kind(_: Request, error: Exception) -> Response:
        return problem(status_of(error), " ".join(str(error).split()), kind=type(error).__name__)

    async def invalid(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        mistakes = [_mistake(each) for each in error.errors()[:20]]
        first = mistakes[0]
        detail = f"{first.where}: expected {first.expected}, found {first.received}"
        return problem(HTTPStatus.UNPROCESSABLE_ENTITY, detail, mistakes=mistakes)

    async def http(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return problem(error.status_code, str(error.detail), headers=error.headers)

    async def unexpected(request: Request, error: Exception) -> Response:
        log.error("%s %s failed", request.method, request.url.path, exc_info=error)
        return problem(500, "expected an answer, found an error of the service: its log has it")

    application.add_exception_handler(RefusedError, refused)
    application.add_exception_handler(WeftError, by_kind)
    application.add_exception_handler(RequestValidationError, invalid)
    application.add_exception_handler(HTTPException, http)
    application.add_exception_handler(Exception, unexpected)


_SHOWN = 100  # characters that are shown of a value


def _mistake(error: Mapping[str, Any]) -> Mistake:
    where = ".".join(str(part) for part in error["loc"] if part not in {"one", "batch"})  # tags of a union
    message = str(error["msg"]).removeprefix("Value error, ")
    if error["type"] == "value_error" and ": expected " in message:
        message = message.split(": expected ", 1)[1].split(", found ")[0]
    shown = "nothing" if error["type"] == "missing" else repr(error.get("input"))
    received = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
    expected = message[:1].lower() + message[1:]
    return Mistake(where=where, expected=expected, received=received.encode("utf-8", "replace").decode())
