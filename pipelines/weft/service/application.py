"""The application: routes behind the gate (OPS-5). uvicorn runs it, and so does Ray Serve."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from importlib import import_module
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.responses import PlainTextResponse

from weft import __version__
from weft.domain.errors import MissingExtraError
from weft.runtime.extras import extras_named
from weft.service import problems
from weft.service.gate import RequestGate, scope_needed
from weft.service.problems import Problem
from weft.service.routes import feedback, health, lessons, principals, searching, versions
from weft.service.state import Service

ROUTERS: Sequence[APIRouter] = (
    searching.router,
    feedback.router,
    lessons.router,
    versions.router,
    principals.router,
    health.router,
)

log = logging.getLogger(__name__)

_SAYS = "Retrieval that learns: search, say what was good, and see why anything ranks where it does."


def create_application(service: Service) -> FastAPI:
    """The application over a service. It begins the search processes when it starts, and ends them when it ends."""
    console = _console()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await service.searches.start()
        try:
            async with mcp, nullcontext() if console is None else console.running():
                yield
        finally:
            service.draining = True
            await service.searches.close()

    application = FastAPI(
        title="weft",
        version=__version__,
        description=_SAYS,
        lifespan=lifespan,
        docs_url=None,  # its page would load scripts of another host
        redoc_url=None,
        redirect_slashes=False,
        responses={"default": {"model": Problem, "description": "What went wrong.", "content": _PROBLEM}},
    )
    application.state.service = service
    problems.handle(application)
    for router in ROUTERS:
        application.include_router(router)
    mcp = _mcp(application)
    if console is None:
        application.add_api_route("/", _without_console, include_in_schema=False, response_class=PlainTextResponse)
    else:
        console.mount(application)
    application.openapi = lambda: _described(application)  # type: ignore[method-assign]
    application.add_middleware(
        RequestGate,
        tokens=service.tokens,
        metrics=service.metrics,
        per_s=service.settings.serve.requests_per_s,
        sessions=service.sessions,
    )
    service.metrics.watch(service.searches, service.facts, service.events)
    return application


def _mcp(application: FastAPI) -> AbstractAsyncContextManager[None]:
    """MCP at `/mcp`, where its library is installed."""
    tools = _of_extra("weft.service.mcp_tools", without="no tools at /mcp")
    return nullcontext() if tools is None else tools.mounted(application)


def _console() -> Any:
    """The module of the console; None where what it needs is not installed."""
    return _of_extra("weft.service.console.application", without="no console")


def _of_extra(module: str, *, without: str) -> Any:
    """A module; None, and a line on what is done without, where the extra that it needs is not installed."""
    try:
        with extras_named():
            return import_module(module)
    except MissingExtraError as error:
        log.info("%s: %s", without, error)
        return None


def _without_console() -> str:
    return "The console is not installed: pip install 'weft-retrieval[console]' brings it.\n"


_PROBLEM = {problems.MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}


def _described(application: FastAPI) -> dict[str, Any]:
    """The OpenAPI document, with the token and the scope that each route needs."""
    if application.openapi_schema is None:
        schema = get_openapi(
            title=application.title,
            version=application.version,
            description=application.description,
            routes=application.routes,
        )
        schema["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        for path, operations in schema["paths"].items():
            for method, operation in operations.items():
                operation["responses"]["default"] = {"description": "What went wrong.", "content": _PROBLEM}
                operation["responses"].pop("422", None)
                if (needed := scope_needed(method.upper(), path)) is not None:
                    operation["security"] = [{"token": []}]
                    operation["description"] += f" Needs a token with scope `{needed}`, where tokens are configured."
        application.openapi_schema = schema
    return application.openapi_schema
