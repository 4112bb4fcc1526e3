"""What a query was taken to ask for, and how that changed the way it was answered (RET-1 … RET-6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class QueryType(StrEnum):
    """What kind of answer a query wants."""

    SPECIFIC = "specific"  # this one thing
    EXPLORATORY = "exploratory"  # what there is
    HOW = "how_does_it_work"  # how parts play together
    DEBUG = "debug"  # why something fails


class Complexity(StrEnum):
    """How much work a query is worth."""

    SIMPLE = "simple"
    MODERATE = "moderate"
    COMPLEX = "complex"


@dataclass(frozen=True, slots=True)
class Variant:
    """A further text that is searched beside the query.

    Attributes:
        source: Where its terms come from: "feedback" of the first results, or "neighbours" of entities it names.
    """

    text: str
    source: str


@dataclass(frozen=True, slots=True)
class InferredFilter:
    """A filter that the query's text seems to ask for.

    Attributes:
        confidence: How sure that is, in [0, 1].
        applied: Whether it left documents out.
    """

    name: str
    value: str
    confidence: float
    applied: bool


@dataclass(frozen=True, slots=True)
class Shift:
    """How far a query lies from those its session asked before.

    Attributes:
        distance: 1 − cosine to the centroid of the recent queries, in [0, 2].
        threshold: Above it the topic has changed.
        recent: The topic changed some queries ago, and the new one has no history of its own yet.
    """

    distance: float
    threshold: float
    recent: bool = False

    @property
    def happened(self) -> bool:
        """Whether the topic has changed."""
        return self.distance > self.threshold

    @property
    def dampens(self) -> bool:
        """Whether what was learned before is about another topic."""
        return self.happened or self.recent


@dataclass(frozen=True, slots=True, kw_only=True)
class Understanding:
    """How a query was read.

    Attributes:
        confidence: In the type, in [0, 1].
        cues: What in the text spoke for the type.
        limit: Results and channels that the router would give: what an adaptive query gets.
        variants: Texts searched beside it.
        filters: What its text seems to ask for beyond its explicit filters.
        unknown: What reads like a filter in it, "name:value", though no document has that: words like all others.
        unmet: Filters in force, "name:value", for which nothing was found: each that no document has, or else all of
            them, joined by "and", which no document has together.
        signs: Phrases in quotation marks, +words and -words that were followed, as they are typed (RET-22).
        unheld: Those that are taken as plain words: no text has what they, and those before them, ask for.
        home: The domain that its agent searches unless it asks for more, where that was applied.
        shift: None without a session's earlier queries.
        shadowed: Content hashes that learned triggers still on trial would lead to, with the trigger (RET-17).
    """

    type: QueryType
    confidence: float
    cues: tuple[str, ...] = ()
    complexity: Complexity = Complexity.MODERATE
    limit: int
    variants: tuple[Variant, ...] = ()
    filters: tuple[InferredFilter, ...] = ()
    unknown: tuple[str, ...] = ()
    unmet: tuple[str, ...] = ()
    signs: tuple[str, ...] = ()
    unheld: tuple[str, ...] = ()
    home: str | None = None
    shift: Shift | None = None
    shadowed: Mapping[str, str] = field(default_factory=dict)
