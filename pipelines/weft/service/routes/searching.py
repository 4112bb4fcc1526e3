"""Searches, explanations and reranking."""

from __future__ import annotations

import asyncio
import uuid
from http import HTTPStatus
from typing import Annotated

import msgspec
from fastapi import APIRouter, Depends, Path
from fastapi import Query as Parameter
from msgspec import Raw
from starlette.requests import Request
from starlette.responses import Response

from weft.client.calls import OTHER_VERSION, PackedAnswers, form_of, packed_form, packed_type
from weft.domain.ranking import Query
from weft.runtime.traces import stage_spans
from weft.service.bodies import (
    AnswerPage,
    AnswerPages,
    AnySearch,
    Explained,
    OneSearch,
    RerankDocument,
    RerankedDocument,
    RerankRequest,
    RerankResponse,
    SearchRequest,
    WholeContent,
)
from weft.service.problems import RefusedError
from weft.service.state import Service, service_of
from weft.service.worker import Form, SentAnswer

router = APIRouter(tags=["search"])
Shared = Annotated[Service, Depends(service_of)]
QueryId = Annotated[str, Path(min_length=1, max_length=128)]

_JSON = "application/json"


async def answers_to(service: Service, queries: list[Query], form: Form, *, record: bool = True) -> list[SentAnswer]:
    """What is found for queries, counted."""
    try:
        answers = await service.searches.search(queries, form, record=record)
    except Exception:
        service.metrics.searches.labels("failed").inc(len(queries))
        raise
    for each in answers:
        service.metrics.searched(each.outcome, each.stages_ms)
        stage_spans(each.stages_ms)
    return list(answers)


@router.post(
    "/v1/search",
    summary="Search, one question or a batch of them.",
    response_model=AnswerPage | Explained | AnswerPages,
)
async def search(body: AnySearch, service: Shared, request: Request) -> Response:
    """Answers, best results first. Feedback on an answer takes its `token`.

    Clients of the same version may ask for `application/vnd.weft.answers+msgpack`: the answers as values, whole.
    """
    accepted = form_of(request.headers.get("accept", ""))
    if accepted not in {None, packed_form()}:
        raise RefusedError(HTTPStatus.NOT_ACCEPTABLE, OTHER_VERSION)
    form = Form.PACKED if accepted is not None else Form.WHOLE if body.explain else Form.PAGE
    asked = [body] if isinstance(body, OneSearch) else body.queries
    answers = await answers_to(
        service, [_query(service, each) for each in asked], form, record=all(each.record for each in asked)
    )
    if form is Form.PACKED:
        packed = PackedAnswers([Raw(each.body) for each in answers], service.settings.retrieval.depth)
        return Response(msgspec.msgpack.encode(packed), media_type=packed_type())
    if isinstance(body, OneSearch):
        return Response(answers[0].body, media_type=_JSON)
    return Response(b'{"answers":[' + b",".join(each.body for each in answers) + b"]}", media_type=_JSON)


def _query(service: Service, body: SearchRequest) -> Query:
    try:
        return body.query(max(service.settings.retrieval.understanding.router.limits.values()))
    except ValueError as error:
        raise RefusedError(HTTPStatus.UNPROCESSABLE_ENTITY, str(error)) from error


@router.get(
    "/v1/answers/{query_id}",
    summary="What every score of an answer was made of.",
    response_model=Explained,
)
async def explanation(query_id: QueryId, service: Shared) -> Response:
    """The answer as it was given, whole; the newest some thousand are kept."""
    answer = await asyncio.to_thread(service.answers.of, query_id)
    if answer is None:
        raise RefusedError(HTTPStatus.NOT_FOUND, f"expected the id of an answer that is kept, found {query_id!r}")
    whole = answer.to_dict()
    for name in ("token", "session_token"):  # they let whoever asked speak of it: others get none here
        whole.pop(name, None)
    return Response(msgspec.json.encode(whole), media_type=_JSON)


@router.post("/v1/rerank", summary="Put texts in order by how well they answer a query.")
async def rerank(body: RerankRequest, service: Shared) -> RerankResponse:
    """In the shape that Cohere's clients send and read: by the cross-encoder of the store, or by meaning alone."""
    texts = [each if isinstance(each, str) else each.text for each in body.documents]
    scores = await service.searches.rerank(body.query, texts)
    order = sorted(range(len(texts)), key=lambda index: (-scores[index], index))[: body.top_n]
    return RerankResponse(
        id=uuid.uuid4().hex,
        results=[
            RerankedDocument(
                index=index,
                relevance_score=scores[index],
                document=RerankDocument(text=texts[index]) if body.return_documents else None,
            )
            for index in order
        ],
        meta={"api_version": {"version": "2"}},
    )


@router.get("/v1/places", summary="The URI of a place that somebody names.", response_model=dict[str, str])
async def place(name: Annotated[str, Parameter(min_length=1, max_length=2048)], service: Shared) -> dict[str, str]:
    """Such as `README.md#Start`, for a correction that names what was not shown."""
    return {"uri": await service.searches.locate(name)}


@router.get("/v1/contents/{content_hash}", summary="A content, and everywhere it stands.", response_model=WholeContent)
async def content(
    content_hash: Annotated[str, Path(pattern="^[0-9a-f]{64}$", description="As results have it.")], service: Shared
) -> Response:
    """Of what is live: a result's whole text by its `content_hash`."""
    return Response(await service.searches.content(content_hash), media_type=_JSON)
