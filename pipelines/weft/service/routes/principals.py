"""People: who said what, and taking out all that a store holds of somebody (OPS-13a)."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path

from weft.app.principals import activity_of, erase, everybody, require_in_force
from weft.service.routes.lessons import producer_of
from weft.service.state import Service, service_of

router = APIRouter(tags=["people"])
Shared = Annotated[Service, Depends(service_of)]
Principal = Annotated[str, Path(min_length=1, max_length=128, description="As its events name it.")]


@router.get("/v1/principals", summary="Who said something, the most first.")
async def principals(service: Shared) -> list[dict[str, Any]]:
    """As `weft principals list --json` prints them."""

    def listed() -> list[dict[str, Any]]:
        listed_people = sorted(everybody(service.settings), key=lambda each: (-sum(each.events.values()), each.name))
        return [asdict(each) for each in listed_people]

    return await asyncio.to_thread(listed)


@router.delete("/v1/principals/{principal}", summary="Take out all that the store holds of somebody.")
async def erasure(principal: Principal, service: Shared) -> dict[str, Any]:
    """As `weft principals unlearn --json` does: what was erased, and what remains where and until when."""

    def erased() -> dict[str, Any]:
        words = activity_of(service.settings, principal)
        event_ids: list[str] = []
        if words.events:
            require_in_force(service.catalog)
            event_ids = producer_of(service).unlearn(principal, partitions=words.partitions)
        return erase(service.settings, principal, words).to_dict(event_ids)

    return await asyncio.to_thread(erased)
