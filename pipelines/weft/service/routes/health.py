"""Whether the service runs, whether it is ready, and what is counted of it."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.responses import Response

from weft.app.views.status import status_of
from weft.service.bodies import Health, Readiness
from weft.service.problems import RefusedError
from weft.service.state import Service, service_of

router = APIRouter(tags=["operations"])
Shared = Annotated[Service, Depends(service_of)]


@router.get("/healthz", summary="Whether the process runs.")
async def health() -> Health:
    """Needs no token."""
    return Health(status="ok")


@router.get("/readyz", summary="Whether searches are answered.")
async def ready(service: Shared) -> Readiness:
    """Needs no token; 503 while it starts, and from the moment that it is asked to end."""
    trouble = "the service is ending" if service.draining else service.searches.trouble
    if trouble is not None:
        raise RefusedError(503, trouble)  # type: ignore[arg-type]
    generation = await asyncio.to_thread(lambda: service.catalog.pointer().generation)
    return Readiness(status="ready", generation=generation, feedback=service.events is not None)


@router.get("/metrics", summary="Metrics for Prometheus.", response_class=Response)
async def metrics(service: Shared) -> Response:
    """In Prometheus' text format."""
    return Response(await asyncio.to_thread(service.metrics.text), media_type=CONTENT_TYPE_LATEST)


@router.get("/v1/status", summary="What is live, its age, lag, last night, alarms, disk.")
async def status(service: Shared) -> dict[str, Any]:
    """What `weft status --json` prints."""
    return await asyncio.to_thread(status_of, service.root, service.settings)
