"""MCP on stdin and stdout, by a running service or by one of this process (OPS-5a)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from weft.client.http import AsyncClient
from weft.service.application import create_application
from weft.service.mcp_tools import inside, mcp_server
from weft.service.run import opened_service
from weft.service.tokens import TokenSet
from weft.settings import Settings


async def on_stdio(client: AsyncClient, *, principal: str) -> None:
    """Answer on stdin and stdout, by a running service, until the input ends."""
    async with client:
        await mcp_server(client, principal=principal).run_stdio_async()


async def over_store(settings: Settings, *, principal: str, feedback: bool) -> None:
    """The same by a service of this process, with one search process."""
    with opened_service(settings, processes=1, tokens=TokenSet({}), reports=feedback) as service:
        application = create_application(service)

        @asynccontextmanager
        async def living(_: object) -> AsyncIterator[None]:
            async with application.router.lifespan_context(application):
                yield

        async with inside(application) as client:
            await mcp_server(client, principal=principal, lifespan=living).run_stdio_async()
