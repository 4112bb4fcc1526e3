"""What routes take and give, as OpenAPI describes it. Requests have the names of `weft.Query` and of events."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from weft.domain.documents import Domain
from weft.domain.ranking import ANY, MOST_RESULTS, Query, Repeats

MOST_QUERIES = 100
"""Of one request."""

TEXT_CHARACTERS = 20_000
"""Of a question that are taken; of these, what RET-21 says is read."""

MOST_DOCUMENTS = 500
"""Texts that one request may have reranked."""

Name = Annotated[str, Field(min_length=1, max_length=128)]


class RequestBody(BaseModel):
    """What a request holds: nothing that nobody knows."""

    model_config = ConfigDict(extra="forbid")


class SearchRequest(RequestBody):
    """A question, as `weft.Query` has it."""

    text: str = Field(min_length=1, max_length=TEXT_CHARACTERS, pattern=r"\S", description="What is asked.")
    k: int = Field(default=10, ge=1, le=MOST_RESULTS, description="Results.")
    adaptive: bool = Field(default=False, description="The router decides how many, at most `k`, where that is said.")
    domain: Domain | None = Field(default=None, description="Whose weights rank; default each result's own.")
    model: Name = ANY
    agent: Name = ANY
    intent: Name = ANY
    session_id: Name | None = Field(default=None, description="Whose queries these are, and whose own learning ranks.")
    principal: str = Field(default="", max_length=128, description="Who asks.")
    explore: bool = Field(default=False, description="Draw the weights from their posterior, to try others.")
    filters: dict[str, str] = Field(default_factory=dict, max_length=20, description="Metadata that documents have.")
    across_domains: bool = False
    repeats: Repeats = Repeats.KEEP
    context: bool = Field(default=False, description="Add what surrounds each result.")
    turn: int | None = Field(default=None, ge=1, le=1_000_000)
    query_id: Name | None = Field(default=None, description="Under which feedback is given; default a new one.")
    record: bool = Field(default=True, description="Note in the query log, and to the topic, what is shown.")

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"text": "how is a lock released", "k": 3}]},
    )

    def query(self, most: int) -> Query:
        """The question as searchers take it; where nobody says how many results, the router gives `most` at most."""
        stated = self.model_dump(exclude_none=True, exclude={"explain", "record"})
        if self.adaptive and "k" not in self.model_fields_set:
            stated["k"] = most
        return Query(**stated)


class OneSearch(SearchRequest):
    """A question, and how much of the answer is sent."""

    explain: bool = Field(default=False, description="Send what every score is made of.")


class SearchBatch(RequestBody):
    """Questions that are answered from one snapshot."""

    queries: list[SearchRequest] = Field(min_length=1, max_length=MOST_QUERIES)
    explain: bool = False

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"queries": [{"text": "how is a lock released"}, {"text": "retries"}]}]},
    )


AnySearch = Annotated[
    Annotated[OneSearch, Tag("one")] | Annotated[SearchBatch, Tag("batch")],
    Discriminator(lambda stated: "batch" if isinstance(stated, dict) and "queries" in stated else "one"),
]
"""A question, or a batch of them: a batch says `queries`."""


class PageResult(BaseModel):
    """A result, and in one sentence why it stands where it does."""

    rank: int
    score: float
    probability: float | None = Field(description="That it is good; null where that was not learned.")
    doubtful: bool = Field(description="It matches no better than results of questions that have no answer.")
    why: str
    uri: str
    uris: list[str] = Field(description="Every document that the content stands in.")
    start_line: int
    end_line: int
    title: str | None
    heading_path: list[str]
    symbol: str | None
    kind: str
    domain: str
    content_hash: str = Field(description="Names it in feedback.")
    text: str
    asked: bool = Field(description="Whether a verdict on it is asked for.")
    past: dict[str, Any] | None = Field(description="What people called it before.")
    relations: list[str] = Field(description="What its document has to do with others, in words.")
    context: dict[str, Any] | None


class ShownLesson(BaseModel):
    """A lesson that fits the question."""

    id: str
    content: str


class AnswerPage(BaseModel):
    """An answer. Feedback on it takes its `token`."""

    query: str
    query_id: str
    token: str = Field(description="All that feedback on this answer needs.")
    session_token: str | None = None
    generation: str
    learned: str
    gap: str | None = Field(description="Says so where nothing is likely enough to be an answer.")
    hand_off: bool | None = Field(description="Whether to hand over to another model.")
    truncated: bool
    failed_channels: dict[str, str]
    failed_shards: dict[str, str]
    took_ms: float
    results: list[PageResult]
    lessons: list[ShownLesson]


class Explained(BaseModel):
    """An answer with what every score is made of: what `weft search --json` prints (docs/retrieval.md)."""

    query: str
    query_id: str
    generation: str
    learned: str
    results: list[dict[str, Any]]

    model_config = ConfigDict(extra="allow")


class AnswerPages(BaseModel):
    """The answers to a batch, in its order."""

    answers: list[AnswerPage | Explained]


class ContentPlace(BaseModel):
    """A place where a content stands."""

    uri: str
    title: str | None
    domain: str
    start_line: int
    end_line: int
    heading_path: list[str]
    symbol: str | None


class WholeContent(BaseModel):
    """A content, and everywhere it stands."""

    content_hash: str
    text: str
    places: list[ContentPlace]


class RerankDocument(RequestBody):
    """A text to be reranked."""

    text: str = Field(max_length=TEXT_CHARACTERS)


class RerankRequest(RequestBody):
    """Texts that are to be put in order, in the shape that Cohere's clients send."""

    query: str = Field(min_length=1, max_length=TEXT_CHARACTERS, pattern=r"\S")
    documents: list[Annotated[str, Field(max_length=TEXT_CHARACTERS)] | RerankDocument] = Field(
        min_length=1, max_length=MOST_DOCUMENTS
    )
    model: str | None = Field(
        default=None, max_length=200, description="Taken, and not looked at: the store's is used."
    )
    top_n: int | None = Field(default=None, ge=1, le=MOST_DOCUMENTS)
    return_documents: bool = False
    max_tokens_per_doc: int | None = Field(default=None, ge=1, le=1_000_000, description="Taken, and not looked at.")

    model_config = ConfigDict(
        extra="ignore",  # clients send more, which changes nothing here
        json_schema_extra={
            "examples": [{"query": "locks", "documents": ["A lock is released.", "A key."], "top_n": 1}]
        },
    )


class RerankedDocument(BaseModel):
    """A text at its place."""

    index: int = Field(description="Where it stood in the request, from 0.")
    relevance_score: float = Field(ge=0.0, le=1.0)
    document: RerankDocument | None = None


class RerankResponse(BaseModel):
    """The texts, best first, in the shape that Cohere's clients read."""

    id: str
    results: list[RerankedDocument]
    meta: dict[str, Any]


class Accepted(BaseModel):
    """Events that were taken, by their ids in the order of the request."""

    event_ids: list[str]


class Health(BaseModel):
    """Whether the process runs."""

    status: str


class Readiness(BaseModel):
    """Whether searches are answered."""

    status: str
    generation: str | None
    feedback: bool = Field(description="Whether it takes feedback: a broker is named.")
