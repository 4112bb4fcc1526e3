"""Generations and learned versions: what there is, what is live, and making another one live."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Request
from fastapi import Query as Parameter
from pydantic import BaseModel, ConfigDict, Field

from weft.app.tracking import tracking_of
from weft.app.views.beliefs import PRIORS, FamilyName, change_as_json, readings_of
from weft.catalog.catalog import Catalog
from weft.consolidation import champion
from weft.domain.ids import PRIORS_VERSION, GenerationId, VersionName
from weft.learning.reading import moves
from weft.runtime.clock import system_clock
from weft.service.gate import current
from weft.service.state import Service, service_of

router = APIRouter(tags=["versions"])
Shared = Annotated[Service, Depends(service_of)]
Version = Annotated[str, Path(pattern=r"^[A-Za-z0-9._-]{1,64}$", description="A learned version, `live` or `priors`.")]
GenerationName = Annotated[str, Path(pattern=r"^[A-Za-z0-9._-]{1,128}$")]
Family = Annotated[FamilyName | None, Parameter(description="Only beliefs of this kind.")]
Where = Annotated[str, Parameter(max_length=200, description="Only what begins with it, such as code.")]

_BRIEF = {"parent", "content_hash", "created_at", "counts", "models"}


class DecisionRequest(BaseModel):
    """Why somebody decides so."""

    model_config = ConfigDict(extra="forbid")

    why: str = Field(default="", max_length=500, description="Kept with the version.")


class Moved(BaseModel):
    """What is live now, and what was."""

    live: str
    former: str | None


@router.get("/v1/generations", summary="Every generation, oldest first.")
async def generations(service: Shared) -> list[dict[str, Any]]:
    """As `weft generations list --json` prints them."""
    return await asyncio.to_thread(generations_of, service.catalog)


def generations_of(catalog: Catalog) -> list[dict[str, Any]]:
    """Every generation, oldest first."""
    live = catalog.pointer().generation
    return [
        {"id": one.id, "live": one.id == live, **one.model_dump(mode="json", include=_BRIEF)}
        for one in catalog.generations()
    ]


@router.post("/v1/generations/{generation}/rollback", summary="Make an older generation live again.")
async def rollback(generation: GenerationName, service: Shared) -> Moved:
    """After verifying it; searches follow within a second, and none fails."""
    pointer = await asyncio.to_thread(service.catalog.rollback, GenerationId(generation))
    return Moved(live=str(pointer.generation), former=pointer.previous)


@router.get("/v1/learned", summary="Every learned version, oldest first.")
async def learned(service: Shared) -> list[dict[str, Any]]:
    """As `weft learned list --json` prints them; the first is the priors."""
    return await asyncio.to_thread(versions_of, service.catalog)


def versions_of(catalog: Catalog) -> list[dict[str, Any]]:
    """Every learned version, oldest first."""
    live = catalog.pointer().learned or PRIORS_VERSION
    manifests = map(catalog.learned.manifest, (PRIORS_VERSION, *catalog.learned.versions()))
    return [{**one.model_dump(mode="json", exclude={"files"}), "live": one.version == live} for one in manifests]


@router.get("/v1/learned/{version}", summary="What is believed, with intervals.")
async def beliefs(version: Version, service: Shared, family: Family = None, scope: Where = "") -> list[dict[str, Any]]:
    """Every belief, the observations behind it, and the level that it comes from."""
    priors = service.settings.priors
    readings = await asyncio.to_thread(readings_of, service.catalog, priors, version, family, scope)
    return [asdict(each) for each in readings]


@router.get("/v1/learned/{version}/changes", summary="What is believed otherwise than before.")
async def changes(
    version: Version, service: Shared, since: Annotated[str, Parameter(max_length=64)] = PRIORS, family: Family = None
) -> list[dict[str, Any]]:
    """The surest change first."""
    return await asyncio.to_thread(_changes, service, since, version, family)


def _changes(service: Service, before: str, after: str, family: FamilyName | None) -> list[dict[str, Any]]:
    priors = service.settings.priors
    old, new = (readings_of(service.catalog, priors, each, family, None) for each in (before, after))
    return [change_as_json(each) for each in moves(old, new, level=priors.interval.level)]


@router.post("/v1/learned/{version}/promote", summary="Make a learned version live.")
async def promote(version: Version, service: Shared, request: Request, body: DecisionRequest | None = None) -> Moved:
    """Move the alias `champion` to it, after verifying it: to one that waits, or back to an older one."""
    by, why = f"token {current(request.state).name}", "" if body is None else body.why
    former = await asyncio.to_thread(moved, service, version, by, why)
    return Moved(live=version, former=former)


def moved(service: Service, version: str, by: str, why: str) -> str | None:
    """Make a version live; which one was."""
    catalog = service.catalog
    tracking = tracking_of(service.settings.tracking, service.root)
    return champion.promote(catalog, tracking, VersionName(version), by=by, why=why, now=system_clock())


@router.post("/v1/learned/{version}/refuse", summary="Leave out a version that waits.", status_code=HTTPStatus.OK)
async def refuse(version: Version, service: Shared, request: Request, body: DecisionRequest | None = None) -> Moved:
    """It will not go live, and nothing of it counts."""
    by, why = f"token {current(request.state).name}", "" if body is None else body.why

    live = await asyncio.to_thread(refused, service, version, by, why)
    return Moved(live=live, former=version)


def refused(service: Service, version: str, by: str, why: str) -> str:
    """Leave out a version that waits; which one is live."""
    catalog, tracking = service.catalog, tracking_of(service.settings.tracking, service.root)
    champion.refuse(catalog, tracking, VersionName(version), by=by, why=why, now=system_clock())
    return catalog.pointer().learned or PRIORS
