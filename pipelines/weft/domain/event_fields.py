"""The fields of feedback events: their types and bounds, and those that every event has (FBK-1)."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from weft.domain.documents import Domain
from weft.domain.ranking import ANY

SCHEMA_VERSION = 3
"""The newest event schema; older ones keep working.

    1   impression, explicit, selection, session
    2   retrieval, inclusion, reference, success, review, accuracy, model_quality, trust, lesson_outcome; attributions;
        examination of results, and results without a score; terms of selections
    3   correction, trigger_removal, lesson, injection; questions of impressions; precedent of results; origin of lesson
        outcomes

A field that may be left out joins the newest version: who does not know it passes it over.
"""

MOST_SHOWN = 200
"""Results that one impression tells of."""

Identifier = Annotated[str, Meta(min_length=1, max_length=128)]
Code = Annotated[str, Meta(min_length=1, max_length=64)]  # of signatures: hex digits
Token = Annotated[str, Meta(min_length=1, max_length=4_096)]  # hex digits, or the whole token of an answer
Name = Annotated[str, Meta(min_length=1, max_length=64)]
Text = Annotated[str, Meta(min_length=1, max_length=65_536)]
HEXADECIMAL = "^[0-9a-f]{64}$"  # `$` alone lets a line end through: lengths are checked beside it
# A pattern is matched in Python at more than all the rest of an event costs: the codec checks many hashes at once.
Hash = Annotated[str, Meta(min_length=64, max_length=64, extra_json_schema={"pattern": HEXADECIMAL})]
Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Satisfaction = Annotated[float, Meta(ge=-1.0, le=1.0)]
Rank = Annotated[int, Meta(ge=1, le=10_000)]
Turn = Annotated[int, Meta(ge=1, le=1_000_000)]
Hours = Annotated[float, Meta(ge=0.0, le=10_000_000.0)]  # a thousand years: what is older is a wrong unit
Term = Annotated[str, Meta(min_length=1, max_length=40)]
Contents = Annotated[tuple[Hash, ...], Meta(min_length=1, max_length=200)]
Question = Annotated[str, Meta(min_length=1, max_length=4_096)]
Place = Annotated[str, Meta(min_length=1, max_length=2_048)]
Note = Annotated[str, Meta(min_length=1, max_length=2_000)]
Section = Annotated[str, Meta(min_length=1, max_length=64, pattern=r"^[a-z0-9]+(?:[-_.][a-z0-9]+)*$")]
Condition = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"\S")]
LessonOrigin = Literal["person", "detection", "report", "silence"]
ConditionValues = Annotated[tuple[Condition, ...], Meta(max_length=32)]


class Event(Struct, kw_only=True, frozen=True, gc=False, tag_field="type", rename=None):
    """What every event carries."""

    schema: Annotated[int, Meta(ge=1, le=SCHEMA_VERSION)] = SCHEMA_VERSION
    event_id: Identifier
    ts: int  # when it happened, milliseconds since the epoch, by the producer's clock
    session_id: Identifier
    principal: Identifier  # who says so, user or service: caps count per principal
    domain: Domain = Domain.GENERAL
    model: Name = ANY
    agent: Name = ANY
    tenant: Name | None = None
    # by which the principal proves itself, where updaters have a key: as the answer gave it out (FBK-13)
    token: Token | None = None
