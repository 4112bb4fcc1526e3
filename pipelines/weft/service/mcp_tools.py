"""The tools of MCP (OPS-5a): they ask the routes as any client does, so that tokens, limits and counts are the same.

One server for both transports: over HTTP it asks the application that it is mounted in, in the name of whoever called;
on stdio it asks a running service, or an application of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Annotated, Any, Literal, TypeVar

import httpx
from fastapi import FastAPI
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import ToolAnnotations
from pydantic import BaseModel, Field

from weft import __version__
from weft.client import calls
from weft.client.calls import Call
from weft.client.http import AsyncClient
from weft.domain.documents import Domain
from weft.domain.errors import WeftError
from weft.domain.lesson import LessonSource
from weft.domain.ranking import ANONYMOUS

T = TypeVar("T")

PATH = "/mcp"

INSTRUCTIONS = (
    "Search what is indexed with `search`. When a result helped, or was wrong, say so with `tell`: later searches, of "
    "everybody, rank by it. Before work that others may have done before, ask for `lessons`; what was learned the hard "
    "way, `remember`."
)

_START_S = 60  # attempts, a second apart, while search processes start


class SearchHit(BaseModel):
    """A result."""

    rank: int
    uri: str
    start_line: int
    end_line: int
    title: str | None
    symbol: str | None
    text: str
    why: str = Field(description="Why it stands where it does.")
    score: float
    doubtful: bool = Field(description="It matches no better than results of questions that have no answer.")
    content_hash: str = Field(description="Names it in `tell`; weft://contents/{content_hash} is its whole text.")


class SearchHits(BaseModel):
    """What was found."""

    query_id: str = Field(description="Names the answer in `explain`.")
    token: str = Field(description="Names the answer in `tell`.")
    gap: str | None = Field(description="Says so where nothing is likely enough to be an answer.")
    results: list[SearchHit]
    lessons: list[str] = Field(description="What people and agents learned that fits the question.")


class Addend(BaseModel):
    """A part of a score."""

    name: str
    value: float
    weight: float
    amount: float = Field(description="What it added.")


class ExplainedHit(BaseModel):
    """What a score is made of."""

    rank: int
    uri: str
    score: float
    reasons: list[str]
    contributions: list[Addend]


class Explanation(BaseModel):
    """What the scores of an answer are made of."""

    query: str
    generation: str
    learned: str
    results: list[ExplainedHit]


class FeedbackReceipt(BaseModel):
    """Feedback that was taken."""

    event_id: str


class FittingLesson(BaseModel):
    """A lesson that fits, and why."""

    lesson_id: str
    why: str


class FittingLessons(BaseModel):
    """What to heed; the text is empty where nothing fits."""

    text: str
    lessons: list[FittingLesson]


class Remembered(BaseModel):
    """What became of a lesson that was said."""

    lesson_id: str | None = Field(description="None where it was not taken.")
    problems: list[str] = Field(description="Why it was not taken, or what contradicts it.")


class Tools:
    """What agents may call; each asks a route, and what it refuses is the tool's error."""

    def __init__(self, client: AsyncClient, principal: str) -> None:
        self._client = client
        self._principal = principal

    async def search(
        self,
        ctx: Context[Any, Any],
        query: Annotated[str, Field(description='A question, or words; "a phrase", +word and -word are followed.')],
        k: Annotated[int, Field(ge=1, le=50, description="Results.")] = 5,
        domain: Annotated[Domain | None, Field(description="Whose learned weights rank.")] = None,
        session_id: Annotated[str | None, Field(description="The conversation, whose own learning ranks.")] = None,
    ) -> SearchHits:
        """Search what is indexed: passages with their places, best first, and why each stands where it does."""
        stated = {"text": query, "k": k, "domain": domain, "session_id": session_id, "principal": self._principal}
        page = await self._ask(ctx, calls.page({name: value for name, value in stated.items() if value is not None}))
        return SearchHits.model_validate({**page, "lessons": [each["content"] for each in page["lessons"]]})

    async def explain(
        self,
        ctx: Context[Any, Any],
        query_id: Annotated[str, Field(description="Of an answer of `search`.")],
        rank: Annotated[int | None, Field(ge=1, description="Of this result alone.")] = None,
    ) -> Explanation:
        """Say what made the scores of an answer: every addend with its value and its learned weight."""
        whole = await self._ask(ctx, calls.explanation(query_id))
        shown = [each for each in whole["results"] if rank is None or each["rank"] == rank]
        return Explanation.model_validate({**whole, "results": [{**each, "uri": each["uris"][0]} for each in shown]})

    async def tell(
        self,
        ctx: Context[Any, Any],
        token: Annotated[str, Field(description="Of an answer of `search`.")],
        verdict: Annotated[Literal["right", "wrong", "opened"], Field(description="What became of it.")],
        content_hash: Annotated[str | None, Field(description="Of the result; left out: the whole answer.")] = None,
        place: Annotated[
            str | None, Field(description="Instead: a document, perhaps with #heading or #L12, shown or not.")
        ] = None,
    ) -> FeedbackReceipt:
        """Say that a result, or a place not shown, is right or wrong for the question: searches learn of it."""
        if place is not None:
            uri = await self._ask(ctx, calls.place(place))
            event: Any = {"type": "correction", "answer": token, "uri": uri, "right": verdict != "wrong"}
        elif verdict != "opened":
            event = calls.verdict(token, 1.0 if verdict == "right" else -1.0, content_hash, asked=False)
        elif content_hash is not None:
            event = calls.selection(token, content_hash)
        else:
            raise ToolError("expected the content_hash of the result that was opened, found none")
        return FeedbackReceipt(event_id=(await self._ask(ctx, calls.feedback([event])))[0])

    async def lessons(
        self,
        ctx: Context[Any, Any],
        tool: Annotated[str, Field(description="That is about to be used.")] = "",
        context: Annotated[str, Field(description="What is to be done, and why.")] = "",
        files: Annotated[list[str] | None, Field(description="That it touches.")] = None,
        budget: Annotated[int | None, Field(ge=0, le=100_000, description="Tokens at most.")] = None,
    ) -> FittingLessons:
        """Get what people and agents learned that fits a piece of work, before it is begun."""
        stated = {"tool": tool, "context": context, "files": files or [], "budget": budget}
        return FittingLessons.model_validate(await self._ask(ctx, calls.lesson_prompt(stated)))

    async def remember(
        self,
        ctx: Context[Any, Any],
        content: Annotated[str, Field(description="What to do, or not to, in one line.")],
        section: Annotated[str, Field(description="What it is about, such as testing.")] = "general",
        why: Annotated[str | None, Field(description="What it was learned from.")] = None,
    ) -> Remembered:
        """Keep a lesson for later work, of other agents too; how sure it is grows with what comes of it."""
        lesson = {"section": section, "content": content, "source": LessonSource.AGENT_INFERENCE}
        operation = {"kind": "add", "lesson": lesson | ({"reasoning": why} if why else {})}
        applied = await self._ask(ctx, calls.lesson_operations([operation], {"principal": self._principal}))
        ids = [each["lesson_id"] for each in applied["accepted"]]
        problems = [str(each["problem"]) for each in applied["errors"]] + [str(each) for each in applied["conflicts"]]
        return Remembered(lesson_id=ids[0] if ids else None, problems=problems)

    async def content(self, content_hash: str, ctx: Context[Any, Any]) -> str:
        """The whole text of a content, by the hash that results give."""
        try:
            return str((await self._ask(ctx, calls.content(content_hash)))["text"])
        except ToolError as error:
            raise ResourceNotFoundError(str(error)) from error

    async def _ask(self, ctx: Context[Any, Any], call: Call[T]) -> T:
        try:
            return await self._client.send(call, token=_bearer(ctx))
        except WeftError as error:
            raise ToolError(" ".join(str(error).split())) from error


def mcp_server(
    client: AsyncClient,
    *,
    principal: str = ANONYMOUS,
    lifespan: Callable[[Any], AbstractAsyncContextManager[Any]] | None = None,
) -> MCPServer[Any]:
    """A server of MCP over a client of a service.

    Args:
        principal: Who asks and says.
        lifespan: Entered before the first request, and left after the last one.
    """
    tools = Tools(client, principal)
    server: MCPServer[Any] = MCPServer(
        "weft", version=__version__, instructions=INSTRUCTIONS, lifespan=lifespan, log_level="WARNING"
    )
    for reads in (tools.search, tools.explain, tools.lessons):
        server.add_tool(reads, annotations=ToolAnnotations(read_only_hint=True))
    for writes in (tools.tell, tools.remember):
        server.add_tool(writes, annotations=ToolAnnotations(read_only_hint=False, destructive_hint=False))
    server.resource("weft://contents/{content_hash}", name="content", mime_type="text/plain")(tools.content)
    return server


def _bearer(ctx: Context[Any, Any]) -> str | None:
    """The token of whoever called over HTTP; None on stdio, where the client has its own."""
    request = ctx.request_context.request
    header = "" if request is None else request.headers.get("authorization", "")
    kind, _, token = header.partition(" ")
    return token.strip() if kind.lower() == "bearer" else None


def mounted(application: FastAPI) -> AbstractAsyncContextManager[None]:
    """Serve MCP at `/mcp` of an application; within the block requests are answered.

    Requests stand alone: no session is kept, so that any process may answer any of them.
    """
    server = mcp_server(inside(application))
    inner = server.streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        stateless_http=True,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),  # the gate sees to it
    )
    application.router.routes.extend(inner.routes)
    return server.session_manager.run()


def inside(application: FastAPI) -> AsyncClient:
    """A client of an application of this process."""
    return AsyncClient(
        "http://127.0.0.1", transport=httpx.ASGITransport(application, raise_app_exceptions=False), retries=_START_S
    )
